"""Messages through a session's mailbox: each is decided once, whenever its owner dies."""

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from support.driver import Chat, Place
from support.fleet import decided, post
from support.model_server import Text

from steersman.gateway.home.home import open_store
from steersman.journal.store import Store
from steersman.machines import protocol as m
from steersman.workflows.paths import Paths


@contextmanager
def opened(place: Place) -> Iterator[Store]:
    """The home's store, in this process."""
    with closing(open_store(Paths.of(place.environ))) as store:
        yield store


def begun(place: Place) -> Chat:
    """A chat whose first turn has ended."""
    chat = place.chat()
    chat.completes("first")
    return chat


def test_a_message_to_a_frozen_owner_survives_it(place: Place, serve) -> None:
    """What was sent to an owner that is then killed is queued once at the next start, in order."""
    serve(Text("Done.", times=0))
    chat = begun(place)
    chat.process.send_signal(signal.SIGSTOP)
    for text in ("second", "third"):
        sent = place.run("send", chat.session, text)
        assert (sent.returncode, "The message is kept" in sent.stderr) == (0, True), sent
    chat.kill()
    again = place.chat("--resume", chat.session)
    recovered = again.wait("recovered")
    assert [item["text"] for item in recovered["items"]] == ["second", "third"]
    again.send("/queue resume")
    assert [again.wait("turn_ended")["status"] for _ in range(2)] == ["completed"] * 2
    assert again.close() == 0
    with opened(place) as store:
        assert len(decided(store, chat.session)) == 3
        assert store.unconsumed(chat.session) == ()


@pytest.mark.parametrize("answers", [1, 4, 9])
def test_no_message_is_lost_or_doubled_by_a_kill(place: Place, serve, answers: int) -> None:
    """Twelve are posted, the owner is killed after so many were answered; each is decided once."""
    serve(Text("Done.", times=0), top="[auto_queue]\nmax_queue_size = 50\n")
    chat = begun(place)
    keys = [f"key-{n}" for n in range(12)]
    with opened(place) as store:
        posted = [post(store, chat.session, f"message {key}", key) for key in keys]
        assert store.reply(posted[answers - 1], 60.0) is not None
        chat.kill()
        again = place.chat("--resume", chat.session)
        again.wait("session_started")
        assert again.close() == 0
        assert Counter(decided(store, chat.session)[1:]) == Counter(keys)
        assert store.unconsumed(chat.session) == ()


def test_the_same_key_is_one_message(place: Place, serve) -> None:
    """A message that is sent again under its key gets the answer to the first one."""
    serve(Text("Done.", times=0))
    chat = begun(place)
    with opened(place) as store:
        first = post(store, chat.session, "second", "once")
        answer = store.reply(first, 60.0)
        assert answer is not None
        assert post(store, chat.session, "second", "once") == first
        assert store.reply(first, 0.0) == answer


def test_what_is_no_request_is_answered_with_an_error(place: Place, serve) -> None:
    """A message that no session understands is answered, and harms nothing."""
    serve(Text("Done.", times=0))
    chat = begun(place)
    wrong = (
        {},
        {"method": 7},
        {"method": "say", "params": []},
        {"method": "command", "params": {"name": "fly"}},
        {"method": "answer", "params": {"id": {}, "choice": None}},
    )
    with opened(place) as store:
        for number, request in enumerate(wrong):
            posted = store.post(chat.session, m.Lane.DATA, dict(request), f"wrong-{number}")
            answer = store.reply(posted, 60.0)
            assert answer is not None
            assert "error" in answer or answer["result"].get("ok") is False, (request, answer)
    assert chat.causes("second", "turn_ended")["status"] == "completed"
