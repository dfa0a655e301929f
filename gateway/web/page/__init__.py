"""The page for people: files that are sent as they are, and need nothing from elsewhere."""
