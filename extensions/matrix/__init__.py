"""Matrix: chat rooms, also encrypted ones; the extra `matrix`, docs/gateways.md."""
