"""Replays of a home's sessions, and of exported ones: surroundings, what is kept, what is said of it."""
