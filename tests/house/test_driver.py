"""The driver of the black-box tests refuses at once what it would wait for in vain."""

import re
import threading
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from support.driver import Chat, Place, shape
from support.served import Served

Use = Callable[[Chat], object]

QUESTION = {"type": "question", "id": "q1", "options": ["allow", "always", "deny"]}


@pytest.fixture
def place(tmp_path: Path) -> Generator[Place]:
    """A home and a project folder, without a model."""
    here = Place(tmp_path)
    yield here
    here.close()


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


@pytest.mark.usefixtures("no_wait")
def test_a_field_of_another_kind_is_refused(silent: Chat) -> None:
    """A field has to be one of the kinds that are looked for; without a kind it may be one of any."""
    with pytest.raises(ValueError, match=r"^no `queue` or `mode` has a field `choice`$"):
        silent.seen("queue", "mode", choice="allow")
    assert silent.seen(choice="allow") == silent.seen("answered", choice="allow") == []


def test_what_the_contract_declares_is_waited_for(silent: Chat) -> None:
    """A field may be an optional one, one of every event, or one of either form of an event."""
    for kind, field in (("accepted", "as"), ("queue", "parent"), ("question", "step")):
        with pytest.raises(AssertionError, match=f"^no `{kind}` .* came"):
            silent.wait(kind, timeout=0.0, **{field: "x"})


NO_COMMANDS = {
    "one two three": "`one two three` is no slash command: `send` it",
    " /queue": "` /queue` is no slash command: `send` it",
    "/steer with tabs": "`/steer with tabs` is a message, which has no result: `send` it",
    "/smalltalk how far?": "`/smalltalk how far?` is a message, which has no result: `send` it",
}


@pytest.mark.usefixtures("no_wait")
@pytest.mark.parametrize("text", NO_COMMANDS)
def test_a_text_without_a_result_is_not_asked(text: str, silent: Chat) -> None:
    """A message has no result, so `ask` does not wait for one; nothing is sent."""
    with pytest.raises(ValueError, match=f"^{re.escape(NO_COMMANDS[text])}$"):
        silent.ask(text)
    assert silent.close() == 0
    assert silent.events == []


def test_an_unknown_command_is_refused_by_the_session(place: Place) -> None:
    """A package may bring a command, so the session is asked; the end of the message is its own hint."""
    place.configure("http://127.0.0.1:9")
    prompts = place.home / "prompts"
    prompts.mkdir()
    (prompts / "fix.md").write_text("Fix $ARGUMENTS.")
    chat = place.chat()
    with pytest.raises(ValueError, match=r"^`/quee` is no command here: .*unknown_command.*/queue"):
        chat.ask("/quee")
    with pytest.raises(ValueError, match=r"^`/fix it` is no command here: .*'as': 'turn'"):
        chat.ask("/fix it")
    assert "TEXT is missing" in chat.ask("/steer")["text"]
    assert chat.ask("/QUEUE list")["ok"]
    assert chat.ask("/quit")["name"] == "exit"
    assert chat.ended() == 0


def test_only_an_open_question_is_answered(silent: Chat) -> None:
    """A question that never came, that is closed, or that has other options is not answered."""
    with pytest.raises(ValueError, match=r"^question `q1` is not open; open: none$"):
        silent.answer("q1", "allow")
    silent.send(QUESTION)
    question = silent.wait("question")
    with pytest.raises(
        ValueError, match=r"^`yes` does not answer `q1`, but one of allow, always, deny$"
    ):
        silent.answer(question, "yes")
    with pytest.raises(ValueError, match=r"^question `q2` is not open; open: q1$"):
        silent.answer("q2", "allow")
    silent.send({"type": "answered", "id": "q1"})
    silent.wait("answered")
    with pytest.raises(ValueError, match=r"^question `q1` is not open; open: none$"):
        silent.answer(question, "allow")
    assert silent.kinds() == ["question", "answered"]
