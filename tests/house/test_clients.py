"""A session is reached, followed and described in one way: what would do it again is counted."""

import ast
from collections.abc import Iterator
from typing import Any

SAYING = {"say", "send_message", "side_talk", "enter", "call"}
"""Methods by which a class says something to a session; `call` where it takes a `method`."""
SPEAKERS = {
    "gateway/acp/session.py": {"EditorSession"},
    "gateway/attached.py": {"AttachedSession"},
    "gateway/client.py": {"SessionClient"},
    "gateway/control.py": {"Requests"},
    "gateway/conversation.py": {"Conversation"},
    "gateway/library.py": {"SessionHandle", "SessionElsewhere"},
    "gateway/one_shot_client.py": {"OneShotClient"},
    "gateway/remote.py": {"Remote"},
    "gateway/web/application.py": {"Api"},
    "gateway/web/desk.py": {"Desk"},
    "gateway/web/edits.py": {"RequestsThere"},
    "cli/mcp_tools.py": {"HomeTools"},
}
"""The classes that may; `CommandContext` is what a plug-in sees of a `SessionClient`."""


def clients(modules: list[Any]) -> Iterator[Any]:
    """Yield the modules in which a session may be reached; chat rooms use the library."""
    for module in modules:
        if module.room in ("gateway", "cli") and not module.name.startswith("gateway/chat/"):
            yield module


def calling(modules: list[Any], *called: str) -> set[str]:
    """Name the modules that call one of these functions, as they are written."""
    return {
        module.name
        for module in clients(modules)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in called
    }


def says(node: ast.ClassDef) -> bool:
    """Whether a class has a method that says something to a session."""
    for part in node.body:
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) and part.name in SAYING:
            taken = {argument.arg for argument in part.args.args}
            if part.name != "call" or "method" in taken:
                return True
    return node.name == "EditorSession"


def test_few_classes_say_something_to_a_session(modules: list[Any]) -> None:
    """A new interface uses one of these; a class that is not there any more leaves the list."""
    found: dict[str, set[str]] = {}
    for module in clients(modules):
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and says(node) and node.name != "CommandContext":
                found.setdefault(module.name, set()).add(node.name)
    assert found == SPEAKERS


def test_one_place_decides_where_a_session_runs(modules: list[Any]) -> None:
    """Only `SessionReach` connects to the owner of a session; `serving` asks the server of a home."""
    assert calling(modules, "Remote.connect") == {"gateway/reach.py", "gateway/serving.py"}


def test_one_reader_follows_a_session(modules: list[Any]) -> None:
    """Only `Follower` reads a journal and then what happens."""
    assert calling(modules, "Feed") == {"gateway/follow.py"}
    assert calling(modules, "remote.events", "link.events") == {"gateway/reach.py"}


def test_a_session_is_described_in_one_place(modules: list[Any]) -> None:
    """All lists show a `SessionInfo`; that of the editor protocol is made of it."""
    assert calling(modules, "SessionInfo") == {"gateway/session_info.py", "gateway/acp/agent.py"}


def making(modules: list[Any], called: str) -> list[str]:
    """Name the functions that call a constructor, once for each."""
    return [
        f"{module.name}:{function.name}"
        for module in modules
        for function in ast.walk(module.tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        and any(
            isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == called
            for node in ast.walk(function)
        )
    ]


def test_an_outcome_is_computed_in_one_function(modules: list[Any]) -> None:
    """What became of a message is computed once, from the record; nothing computes it from events.

    Rooms of a chat and stories tell what happened; the command line waits until nothing runs.
    """
    assert making(modules, "Outcome") == ["gateway/outcome.py:_outcome"]
    found: set[str] = set()
    for module in clients(modules):
        words = {node.value for node in ast.walk(module.tree) if isinstance(node, ast.Constant)}
        if {"steered", "turn_ended", "withdrawn"} <= words:
            found.add(module.name)
    assert found == {"gateway/views/story.py"}
