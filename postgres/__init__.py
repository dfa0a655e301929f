"""A home in a PostgreSQL database, for many machines; an extra, imported where it is used."""
