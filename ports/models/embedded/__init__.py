"""The embedded model: its catalogue, how its weights are fetched, and the process that serves it."""
