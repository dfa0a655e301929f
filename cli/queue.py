"""`steersman queue …`, `send` and `stop`: a session's queue from another terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ..gateway.commands.command import CommandCall
from ..gateway.events.contract import ReceiptEvent
from ..gateway.home.home import find_session, named_session
from ..gateway.one_shot_client import OneShotClient
from ..gateway.wording.acknowledgement import rejected_text, waiting_text
from ..gateway.wording.formats import item_line
from ..journal.store import SessionRow, Store
from ..machines.errors import StoreDamaged, UsageError
from ..workflows.paths import Paths
from .output import show, show_document, warn
from .stored import stored

if TYPE_CHECKING:
    from ..gateway.views.saved_queues import Saved

WAYS_TO_SAY = ("auto", "queue", "steer", "interrupt")
TAKEN = {
    "interrupt": "Interrupting",
    "queue": "Queued",
    "side_talk": "Side talk started",
    "posted": "Posted",
    "steer": "Steering",
    "turn": "Started",
}
"""What a message was accepted as, in words that its number follows."""


def list_queue(
    environ: Mapping[str, str], session: str, *, is_all: bool = False, as_json: bool
) -> int:
    """Print a session's queue from the store, also while another process runs it."""
    with stored(environ) as store:
        row = find_for_listing(store, session)
        data = stored_queue(store, row, is_all=is_all)
    if as_json:
        show_document(data)
        return 0
    if row is None:
        return 0
    lines = [item_line(item) for item in data["items"]]
    if data["state"] == "held" and lines:
        lines.append("Held: `/queue resume` in a chat on this session runs them.")
    show("\n".join(lines) if lines else f"The queue of {data['session']} is empty.")
    return 0


def list_saved(environ: Mapping[str, str], *, as_json: bool) -> int:
    """Print the saved queues of all sessions that no process has open, newest activity first."""
    from ..gateway.home.retention import is_saved

    with stored(environ) as store:
        rows = [row for row in store.sessions() if is_saved(row)]
        rows = [row for row in rows if not store.is_owned(row.session)]
        saved = list(_readable(store, rows))
    found = [queue.view() for queue in saved if queue.items]
    if as_json:
        show_document({"saved": found})
        return 0
    lines: list[str] = []
    for queue in found:
        lines.append(f"{queue['session']}  {queue['folder']}")
        lines += [f"  {item_line(item)}" for item in queue["items"]]
    show("\n".join(lines) if lines else "No session has a saved queue.")
    return 0


def _readable(store: Store, rows: Sequence[SessionRow]) -> Iterator[Saved]:
    """Read the saved queues of sessions, and say which cannot be read."""
    from ..gateway.views.saved_queues import read_saved

    for row in rows:
        try:
            yield read_saved(store, row)
        except StoreDamaged as fault:
            warn(f"{fault.message} (`steersman home check` says more)")


def send_to(
    environ: Mapping[str, str],
    session: str,
    text: str,
    explicit: str,
    user: str = "",
    *,
    as_json: bool,
) -> int:
    """Send a message to a session, and print its receipt."""
    if explicit not in WAYS_TO_SAY:
        raise UsageError(f"there is no `--as {explicit}`", f"ways: {', '.join(WAYS_TO_SAY)}")
    if not text.strip():
        raise UsageError("there is no message to send", 'steersman send last "and the tests"')
    with stored(environ) as store:
        row = _find(store, session)
        client = OneShotClient(
            paths=Paths.of(environ),
            environ=environ,
            store=store,
            session=row.session,
            user=user,
        )
        receipt = client.say(text, explicit)
        is_open = store.is_owned(row.session)
    code = _print(receipt, as_json=as_json)
    if client.waits_because:
        warn(client.waits_because)
    elif receipt["type"] == "accepted" and not is_open:
        warn(waiting_text(row.session, is_run=bool(row.workflow)))
    return code


def run_on(environ: Mapping[str, str], session: str, call: CommandCall, *, as_json: bool) -> int:
    """Run a command on a session, also one that another process has open; print its result."""
    with stored(environ) as store:
        row = _find(store, session)
        receipt = OneShotClient(Paths.of(environ), environ, store, row.session).run(call)
    return _print(receipt, as_json=as_json)


def _find(store: Store, name: str) -> SessionRow:
    """Find a session; without a name the newest of this folder, else the newest of all.

    Raises `UsageError`.
    """
    if name:
        return named_session(store, name)
    rows = store.sessions()
    here = [row for row in rows if row.folder == str(Path.cwd())]
    return find_session(here if any(row.seq for row in here) else rows, "last")


def find_for_listing(store: Store, name: str) -> SessionRow | None:
    """Find a session to list; `None`, with a notice, if there is no session yet.

    Raises `UsageError` for a name that no session has.
    """
    if name in ("", "last") and not any(row.seq and not row.parent for row in store.sessions()):
        warn("There is no session yet; `steersman chat` starts one.")
        return None
    return _find(store, name)


def stored_queue(store: Store, row: SessionRow | None, *, is_all: bool = False) -> dict[str, Any]:
    """Return the durable queue; of a session that no process has open, as its next owner will find it."""
    if row is None:
        return {"session": None, "state": "open", "items": []}
    from ..gateway.events.translation import queue_view
    from ..gateway.views.saved_queues import read_saved
    from ..journal.recovery import load_record

    record = load_record(store, row.session)
    if store.is_owned(row.session):
        return {"session": row.session, **queue_view(record.queue, is_all=is_all)}
    saved = read_saved(store, row)
    state = "held" if saved.items and saved.is_crashed else record.queue.state
    items: list[Any] = list(saved.view()["items"])
    if is_all:
        items += queue_view(replace(record.queue, order=()), is_all=True)["items"]
    return {"session": row.session, "state": state, "items": items}


def _print(receipt: ReceiptEvent, *, as_json: bool) -> int:
    is_taken = receipt["type"] == "accepted" or (receipt["type"] == "result" and receipt["ok"])
    if as_json:
        show_document(receipt["data"] if receipt["type"] == "result" else dict(receipt))
    elif is_taken:
        show(_words(receipt))
    else:
        warn(_words(receipt))
    return 0 if is_taken else 1


def _words(receipt: ReceiptEvent) -> str:
    match receipt["type"]:
        case "result":
            return receipt["text"] or "Done."
        case "rejected":
            return rejected_text(receipt)
        case "accepted":
            number = receipt["number"]
            at = f" as #{number}" if number is not None else ""
            return f"{TAKEN.get(receipt['as'], 'Accepted')}{at} ({receipt['session']})."
