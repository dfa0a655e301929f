"""What the hooks of other programs told of their sessions, so that these can be resumed."""
