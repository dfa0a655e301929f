"""A session's folder, looked at around the calls that may change it."""
