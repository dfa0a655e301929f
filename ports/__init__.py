"""The outside world behind small protocols: models, tools, processes."""
