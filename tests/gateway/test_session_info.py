"""A session in a list: its state, and what needs a person."""

from typing import Any

import pytest

from steersman.gateway.session_info import info_of
from steersman.journal.lock import Owner
from steersman.journal.store import DAMAGED, SessionRow

HERE = Owner(pid=1, node="n1", started=0.0)
FAR = Owner(pid=1, node="n2", started=0.0, host="another-machine")


@pytest.mark.parametrize(
    ("row", "owner", "state", "needs"),
    [
        ({"state": "busy"}, HERE, "running", ""),
        ({"state": "interrupting"}, HERE, "running", ""),
        ({"state": "busy", "asking": 1}, HERE, "waiting", "1 question"),
        ({"state": "busy", "asking": 2}, FAR, "waiting", "2 questions"),
        ({"state": "busy"}, FAR, "elsewhere", ""),
        ({"is_held": True, "waiting": 2}, HERE, "held", ""),
        ({"is_held": True}, HERE, "idle", ""),
        ({"waiting": 2}, HERE, "idle", ""),
        ({}, HERE, "idle", ""),
        ({"state": "suspended"}, None, "left", ""),
        ({"state": "suspended", "asking": 1}, None, "left", ""),
        ({"state": "finalized"}, None, "finalized", ""),
        ({"state": "busy", "asking": 1}, None, "crashed", ""),
        ({"state": "idle"}, None, "crashed", ""),
        ({"state": "idle", "seq": 0}, None, "never began", ""),
        ({"state": DAMAGED}, None, "damaged", ""),
    ],
)
def test_a_state(row: dict[str, Any], owner: Owner | None, state: str, needs: str) -> None:
    """What a person is waited for comes before where it runs; what no program has open has ended."""
    given = {"session": "s", "folder": "/", "title": "hello", "seq": 9, **row}
    info = info_of(SessionRow(**given), owner)
    assert (info.state, info.needs) == (state, needs)


@pytest.mark.parametrize("run", ["succeeded", "failed", "interrupted"])
def test_a_run_that_has_ended_says_how(run: str) -> None:
    """Its session is left as any other; one that is open has no result yet."""
    row = SessionRow(session="s", folder="/", state="suspended", seq=9, workflow="build", run=run)
    assert (info_of(row, None).state, info_of(row, None).result) == ("left", run)
    open_row = SessionRow(
        session="s", folder="/", state="busy", seq=9, workflow="build", run="running"
    )
    assert info_of(open_row, HERE).result == ""
