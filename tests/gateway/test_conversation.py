"""What is said while a session ends, and how it ends."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gateway.conftest import Begin, awaited, replied
from pykka import ThreadingActor
from support.patience import seconds

from steersman.gateway.client import SessionClient
from steersman.gateway.events.contract import Event


def test_a_session_that_is_about_to_be_let_go_is_not_open(conversation: SessionClient) -> None:
    """Its actor has ended and it is still listed: words are given back, a command answers."""
    host = conversation.host
    live = host.runtime.sessions[conversation.session]
    heard: list[Event] = []
    host.event_bus.subscribe(heard.append)
    actor, live.ref = live.ref, ThreadingActor.start()
    live.ref.stop(block=True)

    conversation.say("hello")
    queue = replied(conversation, "/queue")
    live.ref = actor

    assert [event["text"] for event in heard if event["type"] == "rejected"] == ["hello"]
    assert (queue.ok, "is finalized" in queue.text) == (False, True)


def test_who_hears_that_a_session_has_started_reaches_it(begin: Begin, tmp_path: Path) -> None:
    """New or taken up again: its conversation is there before anybody is told."""
    host = begin()
    reached = list[bool]()
    host.event_bus.subscribe(
        lambda event: (
            event["type"] == "session_started"
            and reached.append(host.open_conversation(event["session"]) is not None)
        )
    )

    talk = host.begin(tmp_path / "project")
    talk.leave()
    host.resume(talk.session)

    assert reached == [True, True]


DELEGATES = """
[[answer]]
match = "^go$"
[[answer.tool_calls]]
tool = "delegate"
arguments = { task = "look", name = "kid" }
[[answer]]
text = "Done."
"""


def test_leaving_needs_no_thread_for_each_subagent(begin: Begin, tmp_path: Path) -> None:
    """Where one thread does all that blocks, a session with a subagent of its own ends as well."""
    host = begin()
    (tmp_path / "answers.toml").write_text(DELEGATES)
    host.runtime.loop.call_soon_threadsafe(
        host.runtime.loop.set_default_executor, ThreadPoolExecutor(1)
    )
    talk = host.begin(tmp_path / "project")
    with awaited(talk, "child_ended"):
        talk.say("go")

    leaving = threading.Thread(target=talk.leave, daemon=True)
    leaving.start()
    leaving.join(seconds(10))

    assert not leaving.is_alive()
