"""A home, a project, a model server, as the black-box tests have them."""

from blackbox.conftest import gate, place, serve

__all__ = ["gate", "place", "serve"]
