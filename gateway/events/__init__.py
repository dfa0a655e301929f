"""The events that machine interfaces receive."""
