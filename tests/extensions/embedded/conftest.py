"""A model that is asked, and the weights of the smallest one, as the tests of models have them."""

from models.conftest import asker, weights

__all__ = ["asker", "weights"]
