"""A session is reached, followed and described in one way: what would do it again is counted."""

import ast
from collections.abc import Iterator
from typing import Any

SAYING = {"say", "send_message", "side_talk", "enter", "call"}
"""Methods by which a class says something to a session; `call` where it takes a `method`."""
SPEAKERS = {
    "extensions/acp/session.py": {"EditorSession"},
    "gateway/attached.py": {"AttachedSession"},
    "gateway/client.py": {"SessionClient"},
    "gateway/control.py": {"Requests"},
    "gateway/library.py": {"SessionHandle"},
    "gateway/remote_session.py": {"RemoteSession"},
    "gateway/web/desk.py": {"Desk"},
    "extensions/mcp/home_tools.py": {"HomeTools"},
}
"""The classes that may. `SessionClient` is a session here, `Requests` the same by methods of the control
socket, `RemoteSession` one elsewhere or nobody's; the others are interfaces.

`CommandContext` is what a plug-in sees of a `SessionClient`. The routes of HTTP take requests, and say
them by a `Desk`.
"""


def clients(modules: list[Any]) -> Iterator[Any]:
    """Yield the modules in which a session may be reached; chat rooms use the library."""
    rooms = ("gateway/", "cli/", "extensions/acp/", "extensions/mcp/")
    for module in modules:
        if module.name.startswith(rooms) and not module.name.startswith("gateway/chat/"):
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
            taken = {argument.arg for argument in part.args.args} - {"self"}
            if "method" in taken or (part.name != "call" and "request" not in taken):
                return True
    return node.name == "EditorSession"


def test_few_classes_say_something_to_a_session(modules: list[Any]) -> None:
    """A new interface uses one of these; a class that is not there any more leaves the list."""
    assert sum(map(len, SPEAKERS.values())) <= 8
    found: dict[str, set[str]] = {}
    for module in clients(modules):
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and says(node) and node.name != "CommandContext":
                found.setdefault(module.name, set()).add(node.name)
    assert found == SPEAKERS


def test_one_place_decides_where_a_session_runs(modules: list[Any]) -> None:
    """Only `SessionReach` says who has a session, and only it and what it returns connect to that.

    Its module asks the server of a home, too.
    """
    assert calling(modules, "RemoteSession") == {"gateway/reach.py"}
    assert calling(modules, "ControlConnection.connect") == {
        "gateway/reach.py",
        "gateway/remote_session.py",
    }


def test_one_reader_follows_a_session(modules: list[Any]) -> None:
    """Only `Follower` reads a journal and then what happens; `control` tells it to another process."""
    assert calling(modules, "Feed") == {"gateway/follow.py", "gateway/control.py"}
    assert calling(modules, "connection.events") == {"gateway/reach.py"}


def test_a_session_is_described_in_one_place(modules: list[Any]) -> None:
    """All lists show a `SessionInfo`; that of the editor protocol is made of it."""
    assert calling(modules, "SessionInfo") == {"gateway/session_info.py", "extensions/acp/agent.py"}


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
