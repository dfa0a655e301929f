"""A home, a project, a model server, as the black-box tests have them."""

from blackbox.conftest import echoed, gate, place, serve

__all__ = ["echoed", "gate", "place", "serve"]
