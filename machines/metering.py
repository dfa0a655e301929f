"""What a model call costs. Prices are configured; nothing here knows any."""

from dataclasses import dataclass

from .conversation import Usage

__all__ = ["Price"]

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens cost, in whatever currency; cached ones as the others where not said."""

    input: float = 0.0
    output: float = 0.0
    cached: float | None = None
    cache_write: float | None = None

    def cost(self, usage: Usage) -> float:
        """Return what a usage costs."""
        read = self.input if self.cached is None else self.cached
        written = self.input if self.cache_write is None else self.cache_write
        fresh = max(0, usage.input - usage.cache_read - usage.cache_write)
        whole = (
            fresh * self.input
            + usage.cache_read * read
            + usage.cache_write * written
            + usage.output * self.output
        )
        return whole / MILLION
