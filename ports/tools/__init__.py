"""Tools that a model may call, and the permission rules for calls."""
