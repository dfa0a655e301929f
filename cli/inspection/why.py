"""`steersman why`: the history of one message, and the reason for its position in the queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...gateway.wording.formats import clock
from ...gateway.wording.redaction import redactor_of
from ...machines.errors import UsageError
from ..output import show, show_document
from ..stored import stored

FORMATS = ("text", "json", "toml", "mermaid")


def tell_why(environ: Mapping[str, str], session: str, message: str, form: str) -> int:
    """Print the history of a message: each entry, its transitions, and its time. Raises `UsageError`."""
    if form not in FORMATS:
        raise UsageError(f"there is no format `{form}`", f"formats: {', '.join(FORMATS)}")
    from ...gateway.home.home import named_session
    from ...gateway.views.story import story_of

    with stored(environ) as store:
        row = named_session(store, session)
        redactor = redactor_of(environ, row.folder)
        is_owned = store.is_owned(row.session)
        story, entries = story_of(store, row, message, redactor, is_owned=is_owned)
    view = redactor.data(story)
    match form:
        case "json":
            show_document(view)
        case "toml":
            from ..output import show_toml

            show_toml(view)
        case "mermaid":
            from ...gateway.views.sequence import sequence

            show(redactor.text(sequence(story.get("turn", ""), entries)).rstrip("\n"))
        case _:
            show("\n".join(_lines(view)))
    return 0


def _lines(view: dict[str, Any]) -> list[str]:
    message = view["message"]
    number = f"#{message['number']} " if "number" in message else ""
    sender = f", from {message['user']}" if message["user"] else ""
    about = f"({message['id']}, {message['state']}{sender})"
    text = " ".join(message["text"].split())
    lines = [f"session {view['session']}, message {number}{about}"]
    lines += [f'  "{text}"'] if text else []
    lines.append("")
    times = [
        f"+{hop['after']:.3f} s" if hop["after"] else clock(hop["time"]) for hop in view["hops"]
    ]
    width = max(14, *map(len, times))
    for time, hop in zip(times, view["hops"], strict=True):
        lines.append(f"  {time:>{width}}  entry {hop['seq']:<5} {hop['text']}")
        lines += [
            f"{'':>{width + 16}}{move['what']}: {move['from'] or '(new)'} -> {move['to']}"
            for move in hop["moved"]
        ]
    lines += ["", view["outlook"]]
    return [*lines, f"  {view['hint']}"] if view.get("hint") else lines
