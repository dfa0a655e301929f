"""External agents: their processes, and this program's hooks in their configurations."""
