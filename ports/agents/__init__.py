"""External agents: their processes, their configurations, and how our hooks get into them."""
