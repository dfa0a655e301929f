"""`steersman inspect`: a session's state from the store, also while another process runs it."""

from __future__ import annotations

from collections.abc import Mapping

from ..gateway.redaction import Redactor
from ..machines.errors import UsageError
from .page import show, show_document
from .stored import stored

__all__ = ["FORMATS", "inspect_stored"]

FORMATS = ("tree", "toml", "json")


def inspect_stored(environ: Mapping[str, str], session: str, form: str) -> int:
    """Print what every part of a session does, or did last. Raises `UsageError`."""
    if form not in FORMATS:
        raise UsageError(f"there is no format `{form}`", f"formats: {', '.join(FORMATS)}")
    from ..gateway.dump import dump_session
    from ..gateway.home import find_session
    from ..gateway.tree import draw_dump

    with stored(environ) as store:
        data = dump_session(store, find_session(store.sessions(), session))
    data = Redactor(environ).data(data)
    match form:
        case "json":
            show_document(data)
        case "toml":
            import tomli_w

            show(tomli_w.dumps(data).rstrip("\n"))
        case _:
            show(draw_dump(data))
    return 0
