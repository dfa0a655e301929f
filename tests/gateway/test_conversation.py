"""What is said while a session ends."""

from collections.abc import Callable
from pathlib import Path

from pykka import ThreadingActor

from steersman.gateway.events import Event
from steersman.gateway.host import Host


def test_a_session_that_is_about_to_be_let_go_is_not_open(
    begin: Callable[..., Host], tmp_path: Path
) -> None:
    """Its actor has ended and it is still listed: words are given back, a command answers."""
    host = begin()
    talk = host.begin(tmp_path / "project")
    live = host.runtime.sessions[talk.session]
    heard: list[Event] = []
    host.hub.subscribe(heard.append)
    actor, live.ref = live.ref, ThreadingActor.start()
    live.ref.stop(block=True)

    talk.say("hello")
    queue = talk.say("/queue")
    live.ref = actor

    assert [one["text"] for one in heard if one["type"] == "rejected"] == ["hello"]
    assert queue is not None
    assert (queue.ok, "has ended" in queue.text) == (False, True)
