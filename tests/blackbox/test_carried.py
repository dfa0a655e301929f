"""A session carries what it is made of: its model, its mode, its agent; any interface takes it up."""

import asyncio
from collections.abc import Callable

import pytest
from support.driver import Chat, Place
from support.served import Served

import steersman

TWO = """
[models.first]
provider = "scripted"
script = "{home}/first.toml"
[models.second]
provider = "scripted"
script = "{home}/second.toml"
[agents.assistant]
model = "first"
"""
Start = Callable[..., Served]


@pytest.fixture
def two(place: Place) -> Place:
    """A place with two models that say their names; the first is the agent's."""
    for name in ("first", "second"):
        (place.home / f"{name}.toml").write_text(f'[[answer]]\ntext = "I am the {name}."\n')
    (place.home / "config.toml").write_text(TWO.format(home=place.home))
    return place


def begun(place: Place, how: str, served: Start | None) -> str:
    """Begin a session with the second model and a mode of its own, and leave it."""
    if served and how == "served":
        web = served()
        session: str = web.begin(model="second")
        web.ask("POST", f"sessions/{session}/messages", {"text": "/mode plan"})
        web.ask("POST", f"sessions/{session}/messages", {"text": "hello"})
        web.until(session, "turn_ended")
        web.kill()
        return session
    chat = place.chat("--model", "second", "--mode", "plan")
    chat.completes("hello")
    if how == "killed":
        chat.kill()
    else:
        assert chat.close() == 0
    return chat.session


def answered(place: Place, session: str, by: str, served: Start) -> str:
    """Take a session up without any option, and return what its model says."""
    if by == "chat":
        assert place.stored(session)["mode"] == "plan"
        chat = place.chat("--resume", session)
        chat.completes("and now?")
        assert chat.close() == 0
        return "".join(event["delta"] for event in chat.seen("text"))
    if by == "one-shot":
        return place.run("chat", "--resume", session, "and now?").stdout
    if by == "served":
        web = served()
        last = max(event["seq"] or 0 for event in web.page(session))
        web.ask("POST", f"sessions/{session}/messages", {"text": "and now?"})
        told = web.until(session, "turn_ended", last)
        return "".join(event["text"] for event in told if event["type"] == "answer")

    async def ask() -> str:
        async with steersman.open(place.home) as runtime:
            return (await (await runtime.resume(session)).ask("and now?")).text

    return asyncio.run(ask())


@pytest.mark.parametrize("by", ["chat", "one-shot", "served", "library"])
@pytest.mark.parametrize(
    "how",
    ["killed", *(pytest.param(how, marks=pytest.mark.nightly) for how in ("closed", "served"))],
)
def test_the_model_that_was_asked_for_answers_at_every_resume(
    two: Place, served: Start, how: str, by: str
) -> None:
    """Also after a crash, in another interface, and without the option."""
    session = begun(two, how, served)
    assert "I am the second." in answered(two, session, by, served)


def test_a_resume_with_another_model_keeps_that_one(two: Place) -> None:
    """What a person says last holds; subagents of the session's own agent follow it."""
    session = begun(two, "closed", None)
    assert "first" in two.run("chat", "--resume", session, "--model", "first", "go").stdout
    assert "first" in two.run("chat", "--resume", session, "and now?").stdout


@pytest.mark.parametrize("name", ["big", "assistant"])
def test_an_agent_of_a_program_is_taken_up_without_it(two: Place, name: str) -> None:
    """Its instructions and its model are in the record; a notice says what is missing."""

    async def begin() -> str:
        agent = steersman.Agent(name, model="second", instructions="Be big.", tools=[])
        async with steersman.open(two.home) as runtime:
            session = await runtime.start(agent, folder=two.folder)
            await session.ask("hello")
            return session.id

    session = asyncio.run(begin())
    ran = two.run("chat", "--resume", session, "and now?")
    assert (ran.returncode, "I am the second." in ran.stdout) == (0, True)
    is_missing = "The agent `big` is not configured here" in ran.stderr
    assert is_missing == (name == "big")


# `/model` ------------------------------------------------------------------------------------------


def heard(chat: Chat, text: str) -> str:
    """Say something and return the whole answer."""
    before = len(chat.events)
    chat.completes(text)
    return "".join(event["delta"] for event in chat.events[before:] if event["type"] == "text")


def test_another_model_answers_from_then_on(two: Place) -> None:
    """It is said, shown, and lasts over the end of the program; a flag still goes before it."""
    chat = two.chat()
    assert heard(chat, "who?") == "I am the first."
    shown = chat.ask("/model")
    assert (shown["data"]["model"], shown["data"]["is_chosen"]) == ("first", False)
    assert shown["data"]["known"][:2] == ["first", "second"]
    assert chat.ask("/model second")["data"] == {"ok": True, "model": "second"}
    assert heard(chat, "who?") == "I am the second."
    assert chat.close() == 0
    again = two.chat("--continue")
    assert heard(again, "who?") == "I am the second."
    assert again.close() == 0
    flagged = two.chat("--continue", "--model", "first")
    assert heard(flagged, "who?") == "I am the first."


def test_a_model_that_is_not_there_changes_nothing(two: Place) -> None:
    """The error lists the known names, and the same model answers."""
    chat = two.chat()
    refused = chat.ask("/model secnd")
    assert not refused["ok"]
    assert "did you mean `second`?" in refused["text"]
    assert heard(chat, "who?") == "I am the first."


def test_each_name_that_is_listed_is_accepted(two: Place) -> None:
    """The list has all names; an embedded model whose weights are not here is refused at once."""
    chat = two.chat()
    known = chat.ask("/model")["data"]["known"]
    embedded = [name for name in known if name not in ("first", "second") and ":" not in name]
    assert "qwen2.5-coder-0.5b" in embedded
    for name in embedded:
        refused = chat.ask(f"/model {name}")
        assert not refused["ok"]
        assert "are not here" in refused["text"] or "is not installed" in refused["text"]
    assert heard(chat, "who?") == "I am the first."
    for name in known:
        if name not in embedded:
            assert chat.ask(f"/model {name.replace('MODEL', 'x')}")["ok"], name
    wrong = chat.ask("/model no-such-model-at-all")
    assert wrong["text"].endswith(f"known are: {', '.join(known)}")
