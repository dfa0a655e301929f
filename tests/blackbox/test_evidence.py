"""A journal is verified by its chain of hashes, also one whose program was killed in the middle."""

from __future__ import annotations

import sqlite3

import pytest
from support.driver import Gate, Place
from support.model_server import Text, shell


@pytest.mark.checks_data("sessions verify")
def test_a_killed_session_is_as_it_was_written_until_somebody_changes_it(
    place: Place, gate: Gate, serve
) -> None:
    """What was durable at the kill is chained, and so is what follows; one UPDATE is named."""
    serve(shell(gate.command), Text("Blue."))
    chat = place.at_work(gate, "which colour?")
    chat.kill()
    killed = verified(place)
    chat = place.chat("--resume", chat.session)
    chat.ask("/queue resume")
    chat.wait("turn_ended", status="completed")
    assert chat.close() == 0
    after = verified(place)

    assert (killed["fault"], after["fault"]) == (None, None)
    assert after["session"] == chat.session
    assert after["entries"] > killed["entries"] > 0
    assert after["head"] != killed["head"]
    (database,) = place.home.rglob("journal.db")
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE entries SET data = replace(data, 'Blue', 'Green')")
        found = connection.execute("SELECT min(seq) FROM entries WHERE data GLOB '*Green*'")
        (seq,) = found.fetchone()
    assert verified(place, code=1)["fault"] == {"seq": seq, "what": "was changed"}


def verified(place: Place, code: int = 0) -> dict[str, object]:
    """Look through the only session of a home."""
    (row,) = place.data("sessions", "verify", "--all", code=code)["sessions"]
    found: dict[str, object] = row
    return found
