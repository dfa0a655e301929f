"""The actor kernel: actors, their mailboxes and their supervision, on one thread."""
