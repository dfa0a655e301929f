"""`find_tools` and `call_tool`: tools that no request lists."""

from typing import Any

import pytest
from msgspec.structs import replace

from steersman.machines.conversation import ToolRequest, ToolSchema
from steersman.ports.process.host import ProcessHost
from steersman.ports.tools.deferral import CALL, CALL_TOOL, DeferredTool, found, meant
from steersman.ports.tools.file_tools import READ, WRITE
from steersman.ports.tools.toolbox import Toolbox


def schema(name: str, description: str = "", size: int = 0) -> ToolSchema:
    """Make a tool of a server; `size` is the length of its schema."""
    fields = {"text": {"type": "string", "description": "x" * size}}
    return ToolSchema(name=name, description=description, parameters={"properties": fields})


ISSUE = schema("mcp__hub__create_issue", "Open a new ticket in a repository.")
MERGE = schema("mcp__hub__merge", "Merge a pull request.")
MAIL = schema("mcp__post__send", "Send a letter.")
ALL = (MAIL, MERGE, ISSUE)


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("create issue", ISSUE),
        ("ticket", ISSUE),
        ("open tickets", ISSUE),
        ("PULL", MERGE),
        ("mcp__post__send", MAIL),
        ("send a letter to the hub", MAIL),
    ],
)
def test_the_best_comes_first(words: str, first: ToolSchema) -> None:
    """By words of name and purpose, in any case and number."""
    assert found(ALL, words).startswith(f'{{"name": "{first.name}"')


def test_what_has_no_words_is_only_named() -> None:
    """Without words the names come, and none of the schemas."""
    names = "mcp__post__send, mcp__hub__merge, mcp__hub__create_issue"
    assert found(ALL, "") == f"There are also: {names}."
    assert found(ALL, "weather") == f"No tool has these words.\nThere are also: {names}."
    assert found((), "weather") == "No connected service has a tool."


@pytest.mark.parametrize("size", [0, 5_000, 100_000])
def test_a_result_is_bounded(size: int) -> None:
    """Few schemas, names of some more, and the number of the rest."""
    text = found([schema(f"mcp__big__tool_{n}", "Do it.", size) for n in range(300)], "tool")
    shown = text.count('"parameters"')
    assert shown == (5 if not size else 2 if size == 5_000 else 1)
    assert text.endswith(f", and {300 - shown - 50} more.")
    assert len(text) - shown * size < 2_500


MEANT: list[tuple[dict[str, Any], dict[str, Any] | None]] = [
    ({"name": "mcp__a__b", "arguments": {"x": 1}}, {"x": 1}),
    ({"name": "mcp__a__b"}, {}),
    ({"name": "mcp__a__b", "arguments": '{"x": 1}'}, {"x": 1}),
    ({"name": "mcp__a__b", "arguments": '{"x": '}, None),
    ({"name": "mcp__a__b", "arguments": [1]}, None),
    ({"arguments": {"x": 1}}, None),
    ({"name": "", "arguments": {}}, None),
    ({"name": 3, "arguments": {}}, None),
]


@pytest.mark.parametrize(("arguments", "means"), MEANT)
def test_what_a_call_means(arguments: dict[str, Any], means: dict[str, Any] | None) -> None:
    """The call of the tool itself, with its own id; else it stays, and has a fault. No other changes."""
    request = ToolRequest(call="t1.c1", tool=CALL, arguments=arguments)
    other = replace(request, tool="shell")
    assert meant(other) is other
    if means is None:
        assert meant(request) is request
        assert CALL_TOOL.fault(arguments)
    else:
        assert meant(request) == ToolRequest(call="t1.c1", tool="mcp__a__b", arguments=means)


def test_a_deferred_tool_is_not_listed() -> None:
    """It is there, as what it is."""
    deferred = DeferredTool(WRITE)
    box = Toolbox(ProcessHost(), grace=0.0, output_limit=0).including(deferred)
    assert box.listed(["read", "write"]) == (READ.schema,)
    assert box.schemas(["read", "write"]) == (READ.schema, WRITE.schema)
    assert (deferred.is_mutating, deferred.is_idempotent) == (
        WRITE.is_mutating,
        WRITE.is_idempotent,
    )
    assert deferred.fault({}) == WRITE.fault({}) != ""


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("find_tools", {"words": "issue"}, "No connected service has a tool."),
        (
            "call_tool",
            {"name": "x", "arguments": {}},
            "Error: name a tool that find_tools has found",
        ),
    ],
)
def test_without_servers(bench: Any, tool: str, arguments: dict[str, Any], said: str) -> None:
    """They are there, and say that nothing is."""
    assert bench.call(tool, **arguments).text == said
