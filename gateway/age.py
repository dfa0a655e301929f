"""How long ago, in words."""

__all__ = ["age"]

UNITS = ((86_400.0, "day"), (3_600.0, "hour"), (60.0, "minute"))


def age(seconds: float) -> str:
    """Say a duration as people do: `just now`, `23 minutes ago`, `2 days ago`.

    What a clock stamped that was ahead of ours, `seconds` below zero, is `2 days ahead`.
    """
    for size, unit in UNITS:
        count = int(abs(seconds) // size)
        if count:
            return f"{count} {unit}{'s' if count > 1 else ''} {'ago' if seconds > 0 else 'ahead'}"
    return "just now"
