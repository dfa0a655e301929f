"""The chat screen: what scrolls away above, what is redrawn below, and the keys."""
