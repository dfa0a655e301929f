"""A runtime and a command line for AI agents, made of actors and state machines.

Nothing is imported here: `steersman --version` has to answer at once.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
