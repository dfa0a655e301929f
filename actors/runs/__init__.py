"""A workflow's run: what of it may begin, how each attempt goes, and what followed."""
