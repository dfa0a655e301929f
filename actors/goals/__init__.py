"""What a session works for: the goal, its judge, and how far and how fast it goes on."""
