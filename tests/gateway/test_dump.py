"""A session's dump is the same from the living actors and from the store."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest
from gateway.conftest import Begin, awaited
from msgspec.structs import replace
from support.patience import seconds

from steersman.gateway.client import SessionClient
from steersman.gateway.views.dump import dump_session
from steersman.gateway.views.tree import draw_dump
from steersman.machines import protocol as m
from steersman.machines.disposition import Intent
from steersman.machines.errors import StoreError

ONLY_LIVE = ("mailbox", "restarts", "rule", "supervised", "waiting_for", "last_message")


def bare(data: dict[str, Any]) -> dict[str, Any]:
    """Leave out what only a living session has."""
    actors = {
        name: {key: value for key, value in actor.items() if key not in ONLY_LIVE}
        for name, actor in data["actors"].items()
    }
    return {**data, "actors": actors, "dead_letters": None}


@pytest.mark.parametrize("moment", ["idle", "busy", "held"])
def test_live_and_stored_dumps_agree(begin: Begin, tmp_path: Path, moment: str) -> None:
    """At the same entry each field is the same, but for what actors say of themselves."""
    if moment != "idle":
        (tmp_path / "answers.toml").write_text('[[answer]]\ntext = "never"\ndelay = inf\n')
    conversation = begin().begin(tmp_path)
    with awaited(conversation, "turn_ended" if moment == "idle" else "turn_started"):
        conversation.say("work")
    if moment != "idle":
        conversation.say("later", "queue")
    if moment == "held":
        with awaited(conversation, "stopped"):
            conversation.say("/stop")
    live = conversation.view.inspect()
    store = conversation.store
    (row,) = store.sessions()
    stored = conversation.view.redacted(dump_session(store, replace(row, seq=live["seq"])))
    assert bare(live) == bare(stored)
    assert live["queue"]["state"] == ("held" if moment == "held" else "open")
    assert set(live["actors"]) == {"children", "session", "queue", "turn"}
    assert live["transitions"]


def test_the_mailboxes_are_the_living_ones(begin: Begin, tmp_path: Path) -> None:
    """A living session shows its own depths; in memory alone it is shown all the same."""
    host = begin("[auto_queue.persistence]\nenabled = false")
    conversation = host.begin(tmp_path)
    data = conversation.view.inspect()
    assert set(data["actors"]["queue"]["mailbox"]) == {"system", "control", "data"}
    assert data["actors"]["queue"]["restarts"] == 0
    assert data["actors"]["session"]["last_message"] in ("OpenSession", "Committed")
    assert data["owner"]["pid"] == os.getpid()
    assert conversation.say("/inspect").text.startswith(f"session {conversation.session}  idle")


def test_a_difference_to_the_journal_is_shown(
    begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing can be written any more, actors say what they do, and the journal is behind."""
    (tmp_path / "answers.toml").write_text('[[answer]]\ntext = "never"\ndelay = inf\n')
    conversation = begin().begin(tmp_path)
    is_refused = threading.Event()

    def refuse(_: Any) -> list[bool]:
        is_refused.set()
        raise StoreError("the disk is full", "make room")

    monkeypatch.setattr(conversation.store, "commit", refuse)
    said = m.UserMessage(type="normal", said=m.Said(text="work"), intent=Intent.CONVERSE)
    conversation.post(said, "work")
    assert is_refused.wait(seconds(20))
    data = conversation.view.inspect()
    session, turn = data["actors"]["session"], data["actors"]["turn"]
    assert (session["state"], session["differs"], turn["differs"]) == ("busy", "idle", "")
    assert "differs" not in data["actors"]["queue"]
    tree = draw_dump(data)
    assert "actor session  busy  journal: idle  waits for turn t1" in tree
    assert "journal: nothing" in tree


def test_an_actor_says_how_often_it_was_restarted(conversation: SessionClient) -> None:
    """A killed actor is restarted, and its dump shows the restart and its last message."""
    ref = conversation.host.runtime.sessions[conversation.session].ref
    assert ref is not None
    session: Any = ref.actor_inbox
    session.owner.children["queue"].ref.tell(m.Kill(incarnation=0))
    conversation.ask(m.Inspect(is_last=True, is_of_queue=True))
    queue = conversation.view.inspect()["actors"]["queue"]
    said = [queue[name] for name in ("restarts", "last_message", "supervised")]
    assert said == [1, "", "running"]
