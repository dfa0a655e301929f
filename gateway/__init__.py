"""How programs reach sessions: the event contract, the slash command registry."""
