"""How benchmarks print: a line for each measure, with its limit and whether it was kept."""

import statistics
from collections.abc import Sequence

__all__ = ["head", "row", "spread"]


def head(title: str) -> None:
    """Print what the lines below are about."""
    print(f"{title:<52}{'value':>12}  {'limit':<14}")


def row(name: str, value: float, limit: str = "", unit: str = "", ok: bool | None = None) -> None:
    """Print one measure: `limit` in words, `ok` none where there is no limit to keep."""
    number = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    verdict = {None: "", True: "ok", False: "MISSED"}[ok]
    print(f"  {name:<50}{number:>12}  {limit or unit:<14}{verdict}")


def spread(
    name: str, values: Sequence[float], limit: float | None = None, unit: str = "ms"
) -> float:
    """Print least and median, both in `unit`; the limit is for the median, which is returned."""
    median = statistics.median(values)
    row(f"{name}, least", min(values), unit=unit)
    if limit is None:
        row(f"{name}, median", median, unit=unit)
    else:
        row(f"{name}, median", median, f"<= {limit:g} {unit}", ok=median <= limit)
    return median
