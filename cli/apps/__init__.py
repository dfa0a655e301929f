"""The groups of commands, as people type them."""
