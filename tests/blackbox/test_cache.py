"""`why --cache`: which calls of the model missed the prompt cache, and why."""

from typing import Any

from support.driver import Place
from support.model_server import Text


def told(read: int, cached: int, text: str = "Yes.") -> Text:
    """Return an answer for which so many tokens were read, some of them from the cache."""
    return Text(text, usage={"input": read, "output": 5, "cached": cached, "reasoning": 0})


def calls_of(place: Place, session: str) -> list[dict[str, Any]]:
    """Return what is known of the calls."""
    return place.data("why", session, "--cache")["calls"]


def test_each_miss_has_its_cause(place: Place, serve: Any) -> None:
    """A summary, another model, and a server that forgot are told apart; what was found is no miss."""
    serve(
        *(told(1000, 0), told(1100, 1000), told(1200, 1100)),
        *(told(900, 0, "A summary."), told(700, 50), told(800, 0), told(900, 10)),
        rest='[models.other]\nprovider = "openai"\nmodel = "m2"\n',
    )
    text = (place.home / "config.toml").read_text()
    url = next(line for line in text.splitlines() if line.startswith("base_url"))
    (place.home / "config.toml").write_text(text.replace('model = "m2"', f'model = "m2"\n{url}'))
    chat = place.chat()
    for words in ("one", "two", "three", "/compact", "four", "/model other", "five", "six"):
        chat.causes(words, "result" if words.startswith("/model") else "turn_ended")
    assert chat.close() == 0
    found = calls_of(place, chat.session)
    assert [call["is_missed"] for call in found] == [False, False, False, True, True, True]
    first, second, third, fourth, fifth, sixth = (call["why"] for call in found)
    assert (first, second, third) == ("the first call", "", "")
    assert fourth.endswith("summed up the conversation")
    assert fifth.startswith("another model: ")
    assert sixth.startswith("the messages are the same")
    assert [call["is_whole"] for call in found] == [True, True, True, False, False, True]
    shown = place.run("why", chat.session, "--cache").stdout
    assert shown.startswith("6 calls, 2,160 of 5,700 tokens from the cache; 3 calls missed it:")


def test_a_server_that_tells_nothing(place: Place, serve: Any) -> None:
    """Without figures no call is said to have missed anything while the messages are the same."""
    serve(told(100, 0), told(200, 0))
    chat = place.chat()
    for words in ("one", "two"):
        chat.completes(words)
    assert chat.close() == 0
    shown = place.run("why", chat.session, "--cache").stdout
    assert "of which the server tells nothing; no call missed it." in shown
