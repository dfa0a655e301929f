"""Chat rooms of a session: what is the same on any platform; the platforms are extensions."""
