"""A session whose model is exchanged for one of another kind has the instructions and tools of that."""

from collections.abc import Callable

import pytest
from support.driver import Place
from support.model_server import ModelServer, Text

SMALL = '[models.small]\nprovider = "openai"\nbase_url = "{}"\nmodel = "tiny-coder:1.5b"\n'


def tools_of(server: ModelServer) -> set[str]:
    """Name the tools of the newest request."""
    tools = server.requests[-1].body.get("tools", [])
    return {tool["function"]["name"] for tool in tools}


def prompt_of(server: ModelServer) -> str:
    """Return the instructions of the newest request."""
    return str(server.requests[-1].body["messages"][0]["content"])


@pytest.mark.parametrize("way", ["command", "configuration"])
def test_a_session_of_a_small_model_goes_on_with_a_large_one(
    place: Place, serve: Callable[..., ModelServer], way: str
) -> None:
    """By `/model`, and where the configuration has another one now; after that as if it began so."""
    server = serve(Text("Hi."))
    config = place.home / "config.toml"
    large = config.read_text() + SMALL.format(server.base_url)
    config.write_text(
        large.replace('[agents.assistant]\nmodel = "main"', '[agents.assistant]\nmodel = "small"')
    )
    (place.folder / "AGENTS.md").write_text("Write in verse.\n")
    chat = place.chat()
    chat.completes("hello")
    assert tools_of(server) == set()
    if way == "configuration":
        assert chat.close() == 0
        config.write_text(large.replace("[models.small]", "[models.other]"))
        chat = place.chat("--continue")
        chat.wait(
            "notice", text=lambda text: text.startswith("Instructions and tools are those for")
        )
    else:
        assert "Instructions and tools are those for main now" in chat.ask("/model main")["text"]
    chat.completes("and now?")
    assert {"edit", "delegate", "shell"} <= tools_of(server)
    assert "Write in verse." in prompt_of(server)
    prompt = prompt_of(server)
    assert chat.close() == 0
    assert place.stored(chat.session)["model"].startswith("main")
    again = place.chat("--continue")
    again.completes("still?")
    assert (prompt_of(server), "edit" in tools_of(server)) == (prompt, True)
    assert [one for one in again.seen("notice") if "Instructions and tools" in one["text"]] == []
