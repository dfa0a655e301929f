"""How long ago, in words."""

__all__ = ["age"]

UNITS = ((86_400.0, "day"), (3_600.0, "hour"), (60.0, "minute"))


def age(seconds: float) -> str:
    """Say a duration as people do: `just now`, `23 minutes ago`, `2 days ago`."""
    for size, unit in UNITS:
        count = int(seconds // size)
        if count:
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"
