"""Runs a recorded session again, with the answers of models and tools from its journal."""
