"""The rules: states, transitions, routing tables, checks. Pure: no clock, thread or file."""
