"""Running sessions: one module per actor, the supervisors, the runtime beneath them."""
