"""Values to store and processes that can be killed, as the journal's tests have them."""

from journal.conftest import children, closing, make

__all__ = ["children", "closing", "make"]
