"""How benchmarks print: a line for each measure, with its limit and whether it was kept."""

__all__ = ["head", "row"]


def head(title: str) -> None:
    """Print what the lines below are about."""
    print(f"{title:<52}{'value':>12}  {'limit':<14}")


def row(name: str, value: float, limit: str = "", unit: str = "", ok: bool | None = None) -> None:
    """Print one measure: `limit` in words, `ok` none where there is no limit to keep."""
    number = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    verdict = {None: "", True: "ok", False: "MISSED"}[ok]
    print(f"  {name:<50}{number:>12}  {limit or unit:<14}{verdict}")
