"""What a tool says about wrong arguments, and what a toolbox holds."""

import pytest
from tools.conftest import tool_of

from steersman.machines.errors import ToolError
from steersman.ports.tools.toolbox import Toolbox
from steersman.workflows.tools import TOOLS


@pytest.mark.parametrize(
    ("tool", "arguments", "fault"),
    [
        ("read", {}, "`path` is missing"),
        ("read", {"path": None}, "`path` is missing"),
        ("read", {"path": "x"}, ""),
        ("read", {"path": "x", "limit": None}, ""),
        ("read", {"path": 3}, "`path` must be a text"),
        ("read", {"path": "x", "limit": "3"}, "`limit` must be a whole number"),
        ("read", {"path": "x", "limit": 1.5}, "`limit` must be a whole number"),
        ("read", {"path": "x", "limit": True}, "`limit` must be a whole number"),
        ("read", {"path": "x", "limit": 0}, "`limit` must be at least 1"),
        (
            "read",
            {"file_path": "x"},
            "`file_path` is not an argument of this tool; did you mean `path`?",
        ),
        (
            "read",
            {"xyz": "x"},
            "`xyz` is not an argument of this tool; known are `path`, `offset`, `limit`",
        ),
        ("write", {"path": "x"}, "`content` is missing"),
        ("write", {"path": "x", "content": ""}, ""),
        (
            "write",
            {"path": "x", "content": "\udfff"},
            "`content` holds half of a character (an unpaired surrogate)",
        ),
        ("edit", {"path": "x", "old": "", "new": "y"}, "`old` is empty"),
        ("edit", {"path": "x", "old": "y", "new": "y"}, "`old` and `new` are the same"),
        (
            "edit",
            {"path": "x", "old": "y", "new": "z", "all": "yes"},
            "`all` must be true or false",
        ),
        ("list", {}, ""),
        ("search", {"pattern": "["}, "`pattern` is not a regular expression: unterminated"),
        ("shell", {"command": "x", "timeout": "soon"}, "`timeout` must be a number"),
        ("shell", {"command": "x", "timeout": float("nan")}, "`timeout` must be at least 0.001"),
        ("shell", {"command": "x", "timeout": 2}, ""),
        ("shell", {"cmd": "x"}, "`cmd` is not an argument of this tool; did you mean `command`?"),
        ("progress", {"done": 3}, "`total` is missing"),
        ("defer", {}, "`why` is missing"),
        ("delegate", {"agent": "scout"}, "`task` is missing"),
        ("dismiss", {"wrap_up": True}, "`name` is missing"),
        ("progress", {"done": 3, "total": 2}, "`done` must not be more than `total`"),
        ("progress", {"done": -1, "total": 2}, "`done` must be at least 0"),
    ],
)
def test_fault(bench, tool, arguments, fault):
    """One sentence says what is wrong, the run fails with it, and nothing is done."""

    async def scenario(toolbox: Toolbox) -> tuple[str, str]:
        wanted = tool_of(toolbox, tool)
        said = wanted.fault(arguments)
        if not said:
            return "", ""
        return said, (await wanted.start(arguments, bench.context()).wait()).text

    said, text = bench.run(scenario)

    assert said.startswith(fault)
    assert bool(said) == bool(fault)
    assert text == (f"Error: {said}" if said else "")


def test_progress(bench):
    """Progress is reported to people as numbers and to the model as a receipt."""
    result = bench.call("progress", done=12, total=45, unit="files", note="half way")

    assert (result.text, result.progress) == (
        "Noted: 12 of 45 files.",
        (12, 45, "files", "half way"),
    )


def test_toolbox(bench):
    """A toolbox knows its tools by name and refuses names that it does not know."""

    async def scenario(toolbox: Toolbox) -> None:
        assert {"read", "write", "shell", "delegate"} <= set(toolbox.names)
        assert toolbox.names == tuple(TOOLS)
        assert [schema.name for schema in toolbox.schemas(["shell", "read"])] == ["shell", "read"]
        assert toolbox.get("fly") is None
        with pytest.raises(ToolError, match="there is no tool `fly`"):
            toolbox.schemas(["read", "fly"])
        tools = [(name, toolbox.get(name)) for name in toolbox.names]
        mutating = [name for name, tool in tools if tool and tool.is_mutating]
        assert {"write", "edit", "shell"} <= set(mutating)
        assert not {"read", "list", "search"} & set(mutating)

    bench.run(scenario)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("defer", {"why": "later"}), ("delegate", {"task": "look"}), ("dismiss", {"name": "kid"})],
)
def test_a_tool_of_the_session_does_nothing_without_it(bench, tool, arguments):
    """Where no actor carries it out, the call fails and says so."""
    result = bench.call(tool, **arguments)
    assert result.status == "failed"
    assert result.text.startswith("[")
