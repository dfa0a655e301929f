"""`/model`: another model answers from the next call on, and still does when the session is taken up."""

from support.driver import Chat, Place

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


def two_models(place: Place) -> None:
    """Configure two models that say their names; the first is the agent's."""
    for name in ("first", "second"):
        (place.home / f"{name}.toml").write_text(f'[[answer]]\ntext = "I am the {name}."\n')
    (place.home / "config.toml").write_text(TWO.format(home=place.home))


def heard(chat: Chat, text: str) -> str:
    """Say something and return the whole answer."""
    before = len(chat.events)
    chat.send(text)
    chat.wait("turn_ended")
    return "".join(event["delta"] for event in chat.events[before:] if event["type"] == "text")


def test_another_model_answers_from_then_on(place: Place) -> None:
    """It is said, shown, and lasts over the end of the program; a flag still goes before it."""
    two_models(place)
    chat = place.chat()
    assert heard(chat, "who?") == "I am the first."
    shown = chat.ask("/model")
    assert (shown["data"]["model"], shown["data"]["is_chosen"]) == ("first", False)
    assert shown["data"]["known"][:2] == ["first", "second"]
    assert chat.ask("/model second")["data"] == {"ok": True, "model": "second"}
    assert heard(chat, "who?") == "I am the second."
    assert chat.close() == 0
    again = place.chat("--continue")
    assert heard(again, "who?") == "I am the second."
    assert again.close() == 0
    flagged = place.chat("--continue", "--model", "first")
    assert heard(flagged, "who?") == "I am the first."


def test_a_model_that_is_not_there_changes_nothing(place: Place) -> None:
    """The error lists the known names, and the same model answers."""
    two_models(place)
    chat = place.chat()
    refused = chat.ask("/model secnd")
    assert not refused["ok"]
    assert "did you mean `second`?" in refused["text"]
    assert heard(chat, "who?") == "I am the first."


def test_each_name_that_is_listed_is_accepted(place: Place) -> None:
    """The list has all names; an embedded model whose weights are not here is refused at once."""
    two_models(place)
    chat = place.chat()
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
