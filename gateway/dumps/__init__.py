"""A session's present and past state, for inspection."""
