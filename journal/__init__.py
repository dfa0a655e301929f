"""What is remembered: the durable log, its fold, snapshots, recovery."""
