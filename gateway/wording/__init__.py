"""The texts that people read: what is said of an event, how values are written, what is hidden."""
