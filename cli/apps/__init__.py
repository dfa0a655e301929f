"""The command line of each group of commands."""
