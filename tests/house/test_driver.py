"""The driver of the black-box tests refuses at once what it would wait for in vain."""

import threading
from collections.abc import Callable

import pytest
from support.driver import Chat, Place, shape
from support.served import Served

Use = Callable[[Chat], object]


@pytest.fixture
def silent(place: Place) -> Chat:
    """A chat in which no event comes but those that are sent to it."""
    chat = Chat(place, ("cat",))
    place.chats.append(chat)
    return chat


@pytest.fixture
def no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail a test that begins to wait for an event."""

    def refuse(*given: object) -> None:
        raise AssertionError("it begins to wait")

    monkeypatch.setattr(threading.Condition, "wait_for", refuse)


UNKNOWN_KINDS = {
    "wait": lambda chat: chat.wait("turn_end"),
    "wait_any": lambda chat: chat.wait_any("turn_end"),
    "ended_without": lambda chat: chat.ended_without("turn_end"),
    "seen": lambda chat: chat.seen("turn_started", "turn_end"),
    "kinds": lambda chat: chat.kinds("turn_end"),
    "shape": lambda chat: shape(chat.events, "turn_end"),
    "until": lambda chat: Served.until(Served.__new__(Served), "s1", "turn_end"),
}
UNKNOWN_FIELDS = {
    "wait": lambda chat: chat.wait("turn_ended", sttaus="completed"),
    "wait_any": lambda chat: chat.wait_any("turn_ended", sttaus="completed"),
    "seen": lambda chat: chat.seen("turn_ended", sttaus="completed"),
}


@pytest.mark.usefixtures("no_wait")
@pytest.mark.parametrize("use", UNKNOWN_KINDS.values(), ids=UNKNOWN_KINDS)
def test_a_kind_that_no_event_has_is_refused(use: Use, silent: Chat) -> None:
    """Each way to wait or to look names the kind, and the nearest one that exists."""
    with pytest.raises(
        ValueError, match=r"^no event is a `turn_end`; did you mean `turn_ended`\?$"
    ):
        use(silent)


@pytest.mark.usefixtures("no_wait")
@pytest.mark.parametrize("use", UNKNOWN_FIELDS.values(), ids=UNKNOWN_FIELDS)
def test_a_field_that_no_event_of_the_kind_has_is_refused(use: Use, silent: Chat) -> None:
    """Each way to wait or to look names the kind, the field, and the nearest one that exists."""
    text = r"^no `turn_ended` has a field `sttaus`; did you mean `status`\?$"
    with pytest.raises(ValueError, match=text):
        use(silent)
