"""A session's queue, changed while no program has the session open: everything kept, nothing begun."""

from pathlib import Path

import pytest
from gateway.conftest import Begin, replied

from steersman.gateway.host.host import Host
from steersman.journal.codec import decode_entry


@pytest.fixture
def left(begin: Begin) -> tuple[Host, str]:
    """A host, and a session that was left in it."""
    host = begin("[auto_queue]\nmax_queue_size = 4")
    session = host.begin(host.paths.config.parent / "project").session
    host.runtime.leave(session)
    return host, session


def entries(host: Host, session: str) -> list[str]:
    """The kinds of everything journalled of a session."""
    return [type(decode_entry(entry.data)).__name__ for entry in host.store.entries(session)]


def texts(host: Host, session: str) -> list[str]:
    """What a session's queue holds on disk."""
    row = host.store.load(session).row
    return [item.text for item in host.upkeep.saved_queues.of(row).items]


def test_only_changes_of_the_queue_are_journalled(left: tuple[Host, str]) -> None:
    """Tending a session journals the changes of its queue, and no entry about its owner."""
    host, session = left
    before = entries(host, session)
    conversation = host.tend(session)
    for text in ("one", "stop", "three"):
        conversation.say(text)
    conversation.say("/queue edit 2 it's two")
    conversation.say("/queue move 3 1")
    conversation.say("/queue pop 1")
    host.runtime.leave(session)
    kinds = set(entries(host, session)[len(before) :])
    assert not kinds & {"SessionResumed", "Recovered", "SessionSuspended", "TurnStarted"}, kinds
    assert texts(host, session) == ["three", "it's two"]
    assert not host.store.is_owned(session)


@pytest.mark.parametrize("command", ["/queue resume", "/queue steer 1"])
def test_nothing_can_be_started(left: tuple[Host, str], command: str) -> None:
    """What would run something is refused, and names how to take the session up."""
    host, session = left
    conversation = host.tend(session)
    conversation.say("one")
    reply = replied(conversation, command)
    assert (reply.ok, "chat --resume" in reply.text) == (False, True)
    assert texts(host, session) == ["one"]


def test_the_limit_holds_and_a_key_counts_once(left: tuple[Host, str]) -> None:
    """More than may wait is refused as ever; a client's key said twice is one message."""
    host, session = left
    conversation = host.tend(session)
    heard: list[str] = []
    host.event_bus.subscribe(lambda event: heard.append(event["type"]))
    for n in (1, 2, 2, 3, 4, 5):
        conversation.say(f"message {n}", client_id=f"key-{n}")
    host.runtime.leave(session)
    assert texts(host, session) == [f"message {n}" for n in (1, 2, 3, 4)]
    assert sorted(one for one in heard if one != "queue") == [*["accepted"] * 5, "rejected"]


def test_an_import_is_whole_or_nothing(left: tuple[Host, str], tmp_path: Path) -> None:
    """A file with more than there is room for is refused whole."""
    host, session = left
    conversation = host.tend(session)
    conversation.say("here")
    for count, is_ok in ((4, False), (3, True)):
        items = "".join(f'[[items]]\ncontent = "{n}"\n' for n in range(count))
        (tmp_path / "queue.toml").write_text(items)
        assert replied(conversation, f"/queue import {tmp_path}/queue.toml").ok is is_ok
        assert texts(host, session) == (["here", "0", "1", "2"] if is_ok else ["here"])
