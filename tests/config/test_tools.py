"""Tools that a configuration declares: which are there, where their command is, what is wrong in one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from steersman.workflows.config import Config, load
from steersman.workflows.flow.check import Surroundings, check_file
from steersman.workflows.paths import Paths
from steersman.workflows.trust import trust

ErrorOf = Callable[..., str]
Load = Callable[..., Config]


def tool(name: str = "ticket", run: str = '["./ticket.sh"]', more: str = "") -> str:
    """Declare a tool in TOML."""
    return f'[[tool]]\nname = "{name}"\ndescription = "Look up."\nrun = {run}\n{more}\n'


def test_a_later_layer_replaces_a_tool_or_adds_one(
    load_with: Load, paths: Paths, project: Path, tmp_path: Path
) -> None:
    """Tools of all files are there, once a name; a path in `run` belongs to the file that has it."""
    user = (
        tool() + tool("find", '["grep", "./x"]') + '[agents.assistant]\ntools = ["find", "twice"]'
    )
    in_project = tool("twice", '["../tools/twice", "./y"]', "timeout = 5") + tool(
        "ticket", '["~/ticket"]', "mutating = true"
    )
    load_with(user=user, project_file=in_project)
    trust(paths, project)
    config = load_with(user=user, project_file=in_project, named=tool("last"))
    assert [(one.name, one.run) for one in config.tool] == [
        ("find", ("grep", "./x")),
        ("twice", (f"{tmp_path}/tools/twice", "./y")),
        ("ticket", (str(Path.home() / "ticket"),)),
        ("last", (f"{tmp_path}/ticket.sh",)),
    ]
    assert [(one.timeout, one.mutating) for one in config.tool[1:3]] == [(5, False), (120, True)]
    assert config.agents["assistant"].tools == ("find", "twice")
    assert config.tool_names[-4:] == ("find", "twice", "ticket", "last")


def test_a_project_brings_no_tools_until_it_is_trusted(
    load_with: Load, paths: Paths, project: Path
) -> None:
    """Its tools, and the agents' lists that name them, are withheld; your own file may name them."""
    user = '[permissions]\nrules = [{ tool = "ticket", do = "allow" }]\n'
    in_project = tool() + '[agents.assistant]\ntools = ["ticket"]\n'
    config = load_with(user=user, project_file=in_project)
    assert config.tool == ()
    assert "ticket" not in config.agents["assistant"].tools
    assert "`tool`, `agents` not applied" in config.notices[0]
    trust(paths, project)
    config = load(paths, project, {})
    assert [one.run for one in config.tool] == [(f"{project}/ticket.sh",)]
    assert config.agents["assistant"].tools == ("ticket",)


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        (tool("read"), "2:8", "`tool[0].name` is taken: `read` is a built-in tool"),
        (tool("command"), "2:8", "`tool[0].name` is taken: `command` is a built-in tool"),
        (tool("mcp__x"), "2:8", "are for MCP servers"),
        (tool().replace('"ticket"', "[]"), "2:8", "`tool[0].name` must be a text in quotes"),
        (tool("a b"), "2:8", "`tool[0].name` must be 1 to 64 letters, digits, `_` and `-`"),
        (tool() + tool(), "7:8", "there are two tools `ticket` in this file"),
        (tool(run="[]"), "4:7", "`tool[0].run` must begin with a program"),
        (tool(run='"./x -a"'), "4:7", 'write it as a list: `["./x", "-a"]`'),
        (tool(more="parameter = {}"), "5:1", "did you mean `tool[0].parameters`?"),
        (tool(more="timeout = 0"), "5:11", "`tool[0].timeout`"),
        (
            tool(more='parameters = { id = "string" }'),
            "5:21",
            "`tool[0].parameters.id` must be a table",
        ),
        (
            tool(more='parameters = { id = { type = "text" } }'),
            "5:30",
            "`tool[0].parameters.id.type` must be one of `array`, `boolean`, `integer`, `null`, "
            '`number`, `object`, `string`, or a list of them, not "text"',
        ),
        (
            tool(more='[tool.parameters.x]\ntype = "array"\nitems = { enum = [] }'),
            "7:18",
            "`tool[0].parameters.x.items.enum` must be a list that is not empty",
        ),
        (
            tool(more="parameters = { day = { default = 2020-01-01 } }"),
            "5:34",
            "holds a date or a time, which JSON does not have",
        ),
        (
            tool(more='parameters = { n = { type = "integer", default = "1" } }'),
            "5:50",
            "`tool[0].parameters.n.default` must be a whole number",
        ),
        (
            tool(more='parameters = { id = { type = "string" } }\nrequired = ["ids"]'),
            "6:13",
            "did you mean `id`?",
        ),
        (tool(more='parameters = { "a b" = {} }'), "5:16", "`a b` is no name of an argument"),
        (
            tool() + '[agents.assistant]\ntools = ["read", "tickt"]',
            "7:18",
            "did you mean `ticket`?",
        ),
        (
            tool() + '[permissions]\nrules = [{ tool = "tickt", do = "deny" }]',
            "7:19",
            "did you mean `ticket`?",
        ),
    ],
)
def test_a_mistake_has_its_place_and_its_reason(
    error_of: ErrorOf, text: str, place: str, said: str
) -> None:
    """Each mistake in a declaration, or in a name of one, is found where it stands."""
    error = error_of(user=text)
    assert error.startswith(f"home/config.toml:{place}: ")
    assert said in error


def test_other_words_of_json_schema_are_for_the_model(load_with: Load) -> None:
    """A word that nothing is compared with is accepted, and so is any name for an argument."""
    more = '[tool.parameters.type]\ntype = "string"\nformat = "uri"\nx-more = { a = 1 }'
    (one,) = load_with(user=tool(more=more)).tool
    assert one.parameters["type"]["format"] == "uri"
    assert one.needed == ("type",)


def test_arguments_with_a_default_need_not_be_given(load_with: Load) -> None:
    """Without `required` all others must; with it, these."""
    more = "parameters = { id = {}, n = { default = 3 } }\n"
    assert load_with(user=tool(more=more)).tool[0].needed == ("id",)
    assert load_with(user=tool(more=f"{more}required = []")).tool[0].needed == ()


def test_a_workflow_brings_tools_for_its_run(paths: Paths, project: Path) -> None:
    """Those of its file and of the files that it includes; a path belongs to the file that has it."""
    (project / "flows").mkdir()
    inner = tool("inner") + tool("both") + '[agents.a]\ntools = ["inner", "both"]\n'
    head = '[workflow]\nname = "x"\n[[step]]\nid = "s"\nagent = "a"\nprompt = "Go."\n'
    (project / "flows/inner.toml").write_text(head + inner)
    outer = '[workflow]\nname = "y"\n[[step]]\nid = "s"\nworkflow = "flows/inner.toml"\n'
    file = project / "outer.toml"
    file.write_text(outer + tool("both", '["./both"]') + '[agents.b]\ntools = ["both"]\n')
    checked = check_file(file, Surroundings(paths=paths, folder=project, environ={}))
    assert checked.errors == ()
    assert checked.config is not None
    assert {one.name: one.run[0] for one in checked.config.tool} == {
        "both": f"{project}/both",
        "inner": f"{project}/flows/ticket.sh",
    }
    file.write_text(outer + '[agents.b]\ntools = ["bth"]\n')
    checked = check_file(file, Surroundings(paths=paths, folder=project, environ={}))
    assert [error.line for error in checked.errors] == [7]
