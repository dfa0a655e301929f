"""A turn: the agent loop, its calls, and what it may use."""
