"""Where effects are carried out: models asked, tools run, folders looked at."""
