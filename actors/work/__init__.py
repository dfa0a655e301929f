"""The execution of effects: models asked, tools run, folders looked at."""
