"""The commands: each declared beside what it does."""
