"""How many bytes something takes, as people read it."""

__all__ = ["size_text"]


def size_text(size: float) -> str:
    """Write bytes as people read them: `98 MB` (powers of ten, as disks and downloads do)."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
