"""A recorded session decided again by the real actors, models and tools answering from its journal."""
