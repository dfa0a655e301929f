"""The durable state: the log of entries, its fold, snapshots, recovery."""
