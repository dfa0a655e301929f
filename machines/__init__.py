"""What may happen: states, transitions, routing rules, checks. Pure: no clock, thread or file."""
