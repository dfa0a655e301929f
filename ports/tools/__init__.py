"""Tools that a model may call, and who allows it."""
