"""The chat screen: what scrolls away above, what is drawn anew below, and the keys."""
