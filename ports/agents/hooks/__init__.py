"""This program's hooks in the configurations of external agents."""
