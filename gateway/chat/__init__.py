"""Chat rooms as faces of a session: what any platform does, and the platforms that are shipped."""
