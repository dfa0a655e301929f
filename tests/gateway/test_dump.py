"""A session's dump is the same from the living actors and from the store."""

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steersman.gateway.dumps.dump import dump_session
from steersman.gateway.host import Host

Begin = Callable[..., Host]
ONLY_LIVE = ("mailbox", "restarts")


def bare(data: dict[str, Any]) -> dict[str, Any]:
    """Leave out what only a living session has."""
    actors = {
        name: {key: value for key, value in actor.items() if key not in ONLY_LIVE}
        for name, actor in data["actors"].items()
    }
    return {**data, "actors": actors}


@pytest.mark.parametrize("moment", ["idle", "busy", "held"])
def test_live_and_stored_dumps_agree(begin: Begin, tmp_path: Path, moment: str) -> None:
    """At the same entry each field is the same, but for mailboxes and restarts."""
    if moment != "idle":
        (tmp_path / "answers.toml").write_text('[[answer]]\ntext = "never"\ndelay = inf\n')
    host = begin()
    came = {name: threading.Event() for name in ("turn_started", "turn_ended", "stopped")}
    host.hub.subscribe(lambda event: came.get(event["type"], threading.Event()).set())
    conversation = host.begin(tmp_path)
    conversation.say("work")
    assert came["turn_started"].wait(20)
    if moment == "idle":
        assert came["turn_ended"].wait(20)
    else:
        conversation.say("later", "queue")
    if moment == "held":
        conversation.say("/stop")
        assert came["stopped"].wait(20)
    live = conversation.inspect()
    (row,) = host.store.sessions()
    stored = conversation.redacted(dump_session(host.store, replace(row, seq=live["seq"])))
    assert bare(live) == bare(stored)
    assert live["queue"]["state"] == ("held" if moment == "held" else "open")
    assert set(live["actors"]) == {"children", "session", "queue", "turn"}
    assert live["transitions"]


def test_the_mailboxes_are_the_living_ones(begin: Begin, tmp_path: Path) -> None:
    """A living session shows its own depths; in memory alone it is shown all the same."""
    host = begin("[auto_queue.persistence]\nenabled = false")
    conversation = host.begin(tmp_path)
    data = conversation.inspect()
    assert set(data["actors"]["queue"]["mailbox"]) == {"system", "control", "data"}
    assert data["owner"] is None
    assert conversation.say("/inspect").text.startswith(f"session {conversation.session}  idle")
