"""How people reach it: parse, print, exit. No rule lives here."""
