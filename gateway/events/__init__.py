"""What machine interfaces are told."""
