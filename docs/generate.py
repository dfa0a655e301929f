"""Write the generated parts of the docs; `--check` only compares.

One function makes each page from the data that the program uses; add a pair to `PAGES`.
"""

import functools
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w
from event_schema import event_schema
from event_table import event_tables
from example import example_session, run_examples
from installing import installing, pages
from man_page import completion, man_page, man_pages
from promise_page import promises
from public_api import public_api

from steersman.cli.app import whole_program
from steersman.cli.exit_codes import EXIT_CODES
from steersman.cli.screen.bindings import KEYS
from steersman.gateway.commands.command import GROUPS, Command, Parameter
from steersman.gateway.commands.registry import COMMANDS
from steersman.gateway.views.tree import tree_of, tree_picture
from steersman.machines.catalogue import MACHINES
from steersman.machines.delivery import DEFAULT_DELIVERIES
from steersman.machines.disposition import ACKS, DEFAULT_DISPOSITIONS, DispositionRow
from steersman.machines.machine import Machine, State, Transition
from steersman.machines.result_routing import DEFAULT_RETURNS
from steersman.machines.routing import Table
from steersman.ports.process.host import ProcessHost
from steersman.ports.tools.toolbox import Toolbox
from steersman.proofs.picture import picture
from steersman.workflows.authority import settings_by_setter
from steersman.workflows.environment import MARKS, VARIABLES
from steersman.workflows.flow.sandbox import FILTERS, METHODS, TESTS
from steersman.workflows.flow.spec import FIELDS, ITEM_FIELDS
from steersman.workflows.problem import dotted
from steersman.workflows.schema import SettingEntry, entries, table_schema, workflow_schema
from steersman.workflows.settings import ToolDeclaration
from steersman.workflows.tools import TOOLS
from steersman.workflows.trust import PROJECT_FILES
from steersman.workflows.typed_table import Setter

__all__ = [
    "PAGES",
    "actors_picture",
    "command_line",
    "commands",
    "configuration",
    "events",
    "inside",
    "machines",
    "main",
    "promises",
    "readme",
    "routing",
    "terminal",
    "tools",
    "workflows",
]

DOCS = Path(__file__).resolve().parent

HEAD = """\
# Configuration

<!-- Written by docs/generate.py from config.toml: change that file, then run `make docs`. -->

Settings are TOML. Later layers win, key by key:

1. the shipped [`config.toml`](../config.toml), with every key,
2. your own `config.toml` (`steersman config path` prints where),
3. `steersman.toml` in the project folder,
4. your choices for that folder by a command (`steersman routes use`), stored in the state folder,
5. the file that `STEERSMAN_CONFIG` names,
6. command line flags.

Four lists are exceptions: permission rules and [routes](routing.md#routes-of-your-own) of a later
layer come before those of an earlier one, hooks are added, and so are
[tools of your own](tools.md#tools-of-your-own), except that a tool replaces one of the same name.

`steersman config show` prints the values in force and the file that set each, `steersman config check`
reports mistakes, and `steersman config schema` prints a JSON Schema for your editor. If
`STEERSMAN_HOME` is set, `config.toml`, `state/` and `cache/` are all in that folder.

## Who may set what

A project's `steersman.toml` sets what stands in the table; the start says in one line what it set, and
what of it is not applied. A workflow's file counts as a trusted project's, since it is run on command.
After a change of the files that were [trusted](permissions.md#trusting-a-folder) they have to be trusted
again.

{who}

These files of a project are looked for:

{files}

The environment is that of whoever starts the program; no file of a project sets it:

{variables}

For the programs that a session starts it sets {marks}.
"""

SETTERS = {
    Setter.ANY_PROJECT: "any project",
    Setter.TRUSTED_PROJECT: "a project that is trusted, a workflow",
    Setter.PERSON: "only your own files and flags",
}

MACHINES_HEAD = """\
# Machines

<!-- Written by docs/generate.py from machines/: change the tables there, then run `make docs`. -->

Each part of a session is in one state of one machine and changes it only by the machine's rows. An
event without a row for the state is refused and changes nothing; an ignored event is answered with the
reason. The first row whose guards hold wins. `steersman machines show NAME` prints a machine as a
diagram, with `--format toml` as data, with `--format svg` as drawn here. `steersman machines check`
proves that there are no dead ends and no unreachable states, and that every state handles each control
event.
"""

MARK = "<!-- What follows is written by docs/generate.py from machines/: run `make docs`. -->"

FLOW_MARK = MARK.replace("machines/", "workflows/flow/")


def configuration() -> str:
    """Describe every key of `config.toml`, in its order."""
    who = {setter: _words(n for n, by in settings_by_setter() if by is setter) for setter in Setter}
    rows = [(SETTERS[setter], keys) for setter, keys in who.items()]
    files = [
        (f"`{name}`", about, SETTERS[setter].partition(",")[0])
        for name, (setter, about) in PROJECT_FILES.items()
    ]
    parts = {
        "{who}\n": _rows(("set by", "keys"), rows),
        "{files}\n": _rows(("file", "what it is", "whose"), files),
        "{variables}\n": _rows(("variable", "what it says"), _variables(VARIABLES)),
        "{marks}": "; ".join(f"{name} ({about})" for name, about in _variables(MARKS)),
    }
    head = HEAD
    for place, text in parts.items():
        head = head.replace(place, text)
    blocks = [head, "## General\n"]
    for entry in entries():
        blocks.append(_key(entry) if entry.value else _table(entry))
    return "\n".join(blocks)


def _variables(variables: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    return [(_words(names.split(", ")), about) for names, about in variables.items()]


def machines() -> str:
    """Describe every machine: its diagram, its states, its rows."""
    return "\n".join([MACHINES_HEAD, *(_machine(machine) for machine in MACHINES.values())])


def routing() -> str:
    """Describe both routing tables and the acknowledgements, below what was written by hand.

    The examples in the hand-written part are run again.
    """
    written = (DOCS / "routing.md").read_text(encoding="utf-8").partition(MARK)[0]
    blocks = [run_examples(written) + MARK, "## Dispositions\n", _space(DEFAULT_DISPOSITIONS)]
    blocks.append(_rows(("row", "when", "what is done", "why"), _dispositions()))
    told = [(f"`{name}`", text) for name, text in ACKS.items()]
    blocks += ["### Acknowledgements\n", _rows(("name", "the sender reads"), told)]
    blocks += ["## Deliveries\n", _space(DEFAULT_DELIVERIES)]
    delivered = [
        (f"`{row.name}`", _when(row.when), row.action, row.why) for row in DEFAULT_DELIVERIES.rows
    ]
    blocks.append(_rows(("row", "when", "what it gets", "why"), delivered))
    blocks += ["## Returns\n", "Where the result of a child goes.\n", _space(DEFAULT_RETURNS)]
    returned = [
        (f"`{row.name}`", _when(row.when), row.action, row.why) for row in DEFAULT_RETURNS.rows
    ]
    blocks.append(_rows(("row", "when", "where it goes", "why"), returned))
    return "\n".join(blocks)


def workflows() -> str:
    """Describe all keys of a workflow's file, and what templates find, below what was written by hand.

    The examples in the hand-written part are run again.
    """
    written = (DOCS / "workflows.md").read_text(encoding="utf-8").partition(FLOW_MARK)[0]
    blocks = [run_examples(written) + FLOW_MARK]
    methods = {name for names in METHODS.values() for name in names}
    there = [("filters", _words(FILTERS)), ("tests", _words(TESTS))]
    blocks.append(_rows(("", "there are"), [*there, ("methods", _words(sorted(methods)))]))
    blocks += [
        "## Fields of steps\n",
        "The fields of `steps.ID` when the step has ended, by the kind of step.\n",
    ]
    blocks.append(_rows(("field", "of steps with", ""), _step_fields()))
    schema = workflow_schema()
    for title, name in _FLOW_TABLES:
        part = schema["$defs"][name]
        blocks += [f"## {title}\n", f"{part['description']}\n"]
        blocks.append(_rows(("key", "is", "default", ""), _schema_rows(part)))
    return "\n".join(blocks)


_FLOW_TABLES = (
    ("`[workflow]`", "WorkflowLine"),
    ("`[[step]]`", "StepLine"),
    ("`retry`", "Retry"),
    ("`remote`", "RemoteNeeds"),
    ("`goal`", "GoalSpec"),
    ("`judge`", "JudgeAction"),
    ("`ask`", "AskAction"),
)


def _step_fields() -> Iterable[tuple[str, ...]]:
    fields = dict.fromkeys(
        (name, said) for field in FIELDS.values() for name, said in field.items()
    )
    for name, said in fields:
        kinds = [kind for kind, one in FIELDS.items() if one.get(name) == said]
        yield f"`{name}`", "all" if len(kinds) == len(FIELDS) else _words(kinds), said
    for name, said in ITEM_FIELDS.items():
        yield f"`{name}`", "`for_each`", said


def _schema_rows(part: Mapping[str, Any]) -> Iterable[tuple[str, ...]]:
    needed = part.get("required", ())
    for name, key in part["properties"].items():
        default = f"`{json.dumps(key['default'])}`" if "default" in key else ""
        shown = "must be given" if name in needed else default
        yield f"`{name}`", _type_of(key), shown, key["description"]


def _type_of(key: Mapping[str, Any]) -> str:
    if "enum" in key:
        return _words(key["enum"])
    names = {
        "array": "list",
        "boolean": "true or false",
        "integer": "whole number",
        "object": "table",
    }
    names |= {"string": "text", "number": "number"}
    kinds = key.get("type", "object")
    return " or ".join(names[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds))


def _words(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


KEYS_MARK = "<!-- Written by docs/generate.py from cli/screen/bindings.py: run `make docs`. -->"


def terminal() -> str:
    """List the keys of the chat below what was written by hand."""
    written = (DOCS / "terminal.md").read_text(encoding="utf-8").partition(KEYS_MARK)[0]
    keys = _rows(("key", "what it does"), [(f"**{key.name}**", key.what) for key in KEYS])
    return f"{written}{KEYS_MARK}\n\n## Keys\n\n`?` on an empty line shows them.\n\n{keys}"


EVENTS_MARK = MARK.replace("machines/", "gateway/events/contract.py")


def events() -> str:
    """Describe every event of the machine interface, below what was written by hand."""
    written = (DOCS / "events.md").read_text(encoding="utf-8").partition(EVENTS_MARK)[0]
    return f"{written}{EVENTS_MARK}\n\n{event_tables()}"


TOOLS_HEAD = """\
# Tools

<!-- Written by docs/generate.py from the tools' schemas: run `make docs`. -->

What an agent can call. `tools` of an agent in the [configuration](configuration.md) names those that it
has; [permissions](permissions.md) say which calls are allowed, asked about or denied. A rule for a tool
of the kind `read`, `edit` or `search` is about its path, and a rule for `shell` about its command. A tool
that changes something runs alone; others run side by side.

"""
OWN_TOOLS = """
## Tools of your own

[Installed packages](plugins.md) bring tools that are Python functions; agents name them like others.
A command becomes a tool by a table `[[tool]]` in your `config.toml`, in a project's `steersman.toml`
(which has to be trusted) or in a workflow file, for its runs:

```toml
[[tool]]
name = "ticket"
description = "Look up a ticket."
run = ["./ticket.sh"]
parameters = {{ id = {{ type = "string", description = "The ticket's number" }} }}

[agents.assistant]
tools = ["read", "ticket"]

[permissions]
rules = [{{ tool = "ticket", do = "allow" }}]
```

{keys}
- The command gets one JSON object with the arguments on standard input, and a line break after it. An
  argument that is not given has its `default`, or is left out.
- What the command prints is the result. If its exit code is not 0, the call has failed, and the result
  also has the end of standard error.
- It runs in the session's folder, in the same environment and limits as `shell`, and with
  `sandbox = true` in the same [sandbox](permissions.md#sandbox). A stop or the time limit ends it with
  everything that it started. A call that a crash cut off is not repeated: its outcome is unknown, or what
  `outcome` prints. Both commands have `STEERSMAN_SESSION` and `STEERSMAN_CALL` in their environment,
  which together are unique: keep them with what the call does, and `outcome` finds it.
- A program that is written with a `/` is looked for from the folder of the file that declares the tool,
  and never in the session's folder, where somebody else may have put one of this name. Other words of
  `run` stay as they are.
- A call is asked about, unless a [permission rule](permissions.md) with the tool's name decides it. The
  question shows all arguments.
- An agent has the tool only if its `tools` names it.

Each argument is described by a JSON Schema. Arguments are compared with `type`, `enum`, `const`,
`minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `minLength`, `maxLength`, `items`,
`minItems`, `maxItems`, `properties`, `required`, `additionalProperties`, `anyOf`, `oneOf` and `allOf`;
other words, such as `pattern` and `format`, are passed on to the model. What does not fit is refused
before the command runs, and before anybody is asked.
"""


def own_tools() -> str:
    """Describe the keys of `[[tool]]`."""
    usual = {"parameters": "none", "required": "see there"}
    schema = table_schema(ToolDeclaration)
    rows = [
        (
            f"`{name}`",
            about["description"],
            "must be given"
            if name in schema["required"]
            else usual.get(name) or _as_toml(about["default"]),
        )
        for name, about in schema["properties"].items()
    ]
    return OWN_TOOLS.format(keys=_rows(("key", "", "default"), rows))


def _as_toml(value: object) -> str:
    return f"`{tomli_w.dumps({'x': value}).removeprefix('x = ').strip()}`"


def tools() -> str:
    """Describe every built-in tool: its description for models, its kind, its arguments."""
    toolbox = Toolbox(ProcessHost(), grace=0.0, output_limit=0)
    blocks: list[str] = []
    for name, schema in zip(TOOLS.built_in, toolbox.schemas(tuple(TOOLS.built_in)), strict=True):
        tool = toolbox.get(name)
        changes = (
            "changes something" if tool is not None and tool.is_mutating else "changes nothing"
        )
        blocks.append(
            f"## {name}\n\n{schema.description}\nKind: `{TOOLS[name].kind}`; {changes}.\n"
        )
        needed = schema.parameters["required"]
        arguments = [
            (
                f"`{argument}`",
                _type_of(about),
                "must be given" if argument in needed else "",
                about.get("description", ""),
            )
            for argument, about in schema.parameters["properties"].items()
        ]
        blocks.append(_rows(("argument", "is", "", ""), arguments))
    return TOOLS_HEAD + "\n".join(blocks) + own_tools()


INSIDE = """\
# Inside a session

<!-- Written by docs/generate.py, which runs this session: run `make docs`. -->

In this session a person asked what is in a folder, and the agent listed it. `steersman inspect last
--format svg` draws every part of the session with its state; ids and times are replaced here:

![the tree of a session](pictures/actors.svg)

`steersman inspect last --format mermaid` draws its last turn:

```mermaid
{sequence}```
"""


def inside() -> str:
    """Show the last turn of a scripted session."""
    return INSIDE.format(sequence=example_session()[1])


def actors_picture() -> str:
    """Draw the tree of that session."""
    tree = tree_picture(tree_of(json.loads(example_session()[0])))
    return re.sub(r"\b\d\d:\d\d:\d\d\b", "14:03:07", tree)


COMMANDS_HEAD = """\
# Slash commands

<!-- Written by docs/generate.py from gateway/commands/: change that, then run `make docs`. -->

A line that begins with `/` and the name of a command is that command, also while a turn runs. Another
name is a mistake, or a message where a space stands before it. `/help` lists the commands, `/help NAME`
one with its verbs.

`N` is a message's number (`2` or `#2`), `ID` a session, a question or a receipt. A word with spaces is
quoted; `TEXT` is all that follows, as it is typed. Options stand before a text, or anywhere where there
is none. What is in brackets may be left out.

Programs send a command as data, without quoting: the line `{"command": "queue edit", "arguments":
{"number": 2, "text": "only the tests"}}` to `chat --json` or to [`POST …/commands`](serving.md), or the
method `command` of the [control socket](control.md#the-socket) with `name` and `arguments`. The last
column names the arguments and their types. The reply is a `result` event: `ok`, `data` for programs,
`text` for people.
"""


def commands() -> str:
    """List every slash command with its verbs, by group."""
    blocks = [COMMANDS_HEAD]
    for group, title in GROUPS.items():
        rows = [
            (_typed(one), one.doc, ", ".join(_argument(each) for each in one.parameters))
            for parent in COMMANDS.built_in.values()
            if parent.group == group
            for one in (parent, *parent.verbs.values())
        ]
        blocks += [f"## {title}\n", _rows(("command", "what it does", "arguments"), rows)]
    return "\n".join(blocks)


def _typed(command: Command[...]) -> str:
    also = "".join(f", `/{name}`" for name in command.aliases)
    return f"`/{command.name} {command.own_usage}`".replace(" `", "`") + also


def _argument(parameter: Parameter) -> str:
    kind = "list of " if parameter.is_repeated else ""
    return f"`{parameter.name}` ({kind}{parameter.type.__name__})"


COMMAND_LINE_HEAD = """\
# The command line

<!-- Written by docs/generate.py from the help of the commands: run `make docs`. -->

`steersman` alone opens a chat. Each command has `--help`. `ID` is a session's id, a beginning of it that
no other has, its name, or `last`.

{codes}

`steersman --install-completion` installs completion for your shell (bash, zsh, fish, PowerShell), which
completes commands and options; `--show-completion` prints it instead.
"""


def command_line() -> str:
    """Show the help of every command, as it is printed on 100 columns."""
    program: Any = whole_program()
    codes = _rows(
        ("exit code", "meaning"), [(f"{code}", text) for code, text in EXIT_CODES.items()]
    )
    head = COMMAND_LINE_HEAD.replace("{codes}\n", codes)
    return "\n".join([head, *_helps(program, ("steersman",), None)])


def _helps(command: Any, names: tuple[str, ...], above: Any) -> Iterator[str]:
    context = command.context_class(
        command, info_name=names[-1], parent=above, terminal_width=100, max_content_width=100
    )
    text = command.get_help(context).rstrip()
    yield f"{'#' * min(3, 1 + len(names))} {' '.join(names)}\n\n```text\n{text}\n```\n"
    for name, inner in getattr(command, "commands", {}).items():
        yield from _helps(inner, (*names, name), context)


SURVIVES = {
    "kills": "`kill -9` of a conversation, at each of its writes in turn, and a new start",
    "power": "power cut at a moment of a recorded run, and a new start from what the disk has",
    "sessions": "simulated session with random schedules, stops, crashes and leaping clocks",
    "hostile": "process that is hard to end, when its chat ends in one way or another",
    "nodes": "message to nodes of one database; nodes, connections and the server are broken",
}
"""Suites of `make soak`, and what each case of them is."""
BESIDE = {
    "steer: from the tool's end to the model, ms": "from a tool's end until the model has a steer, ms",
    "one-shot peak memory, MiB": "one-shot peak memory, MiB",
    "interrupt: setsid grandchild dead, ms": "after a stop a `setsid` grandchild is dead, ms",
    'tokens for "hi"': 'tokens sent for "hi"',
}


def readme() -> str:
    """Fill the figures of the README in, from those that are kept and those of the performance page."""
    kept = json.loads((DOCS / "figures.json").read_text(encoding="utf-8"))
    rows = [
        (text, f"{kept[name]['count']:,}", str(kept[name]["wrong"]))
        for name, text in SURVIVES.items()
    ]
    survives = _rows(("case", "tried", "lost, doubled or left running"), rows)
    page = (
        (DOCS / "performance.md").read_text(encoding="utf-8").partition("## Beside other agents")[2]
    )
    lines = [line.strip("| ").split(" | ") for line in page.split("\n\n")[1].splitlines()]
    cells = {name: rest for name, *rest in lines}
    medians = {name: [_median(cell) for cell in cells[name]] for name in BESIDE}
    beside = _rows(("", *lines[0]), [(text, *medians[name]) for name, text in BESIDE.items()])
    text = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    for name, table in (("survives", survives), ("beside", beside)):
        begin, end = re.escape(f"<!-- {name}: "), re.escape(f"<!-- /{name} -->")
        text = re.sub(rf"({begin}.*?-->\n).*?({end})", rf"\1\n{table}\n\2", text, flags=re.DOTALL)
    return text


def _median(cell: str) -> str:
    """Take the median out of `least / median (ratio)`; a reason instead of a figure is a dash."""
    return "-" if cell.startswith("-") else cell.partition(" (")[0].rpartition(" / ")[2]


PAGES: list[tuple[str, Callable[[], str]]] = [
    *(
        (f"pictures/{machine.name}.svg", functools.partial(picture, machine))
        for machine in MACHINES.values()
    ),
    ("pictures/actors.svg", actors_picture),
    *((f"man/{name}.1", functools.partial(man_page, name)) for name in man_pages()),
    *(
        (f"completions/{name}", functools.partial(completion, shell))
        for shell, name in (
            ("bash", "steersman"),
            ("zsh", "_steersman"),
            ("fish", "steersman.fish"),
        )
    ),
    ("../README.md", readme),
    ("inside.md", inside),
    ("api.txt", public_api),
    ("events.schema.json", event_schema),
    ("command-line.md", command_line),
    ("commands.md", commands),
    ("configuration.md", configuration),
    ("events.md", events),
    ("machines.md", machines),
    ("promises.md", promises),
    ("routing.md", routing),
    ("terminal.md", terminal),
    ("tools.md", tools),
    ("workflows.md", workflows),
]


def main(arguments: list[str]) -> int:
    """Write all pages, or with `--check` name those that are out of date and exit 1."""
    stale: list[str] = []
    made = {DOCS / name: make for name, make in PAGES}
    for path in dict.fromkeys([*made, *pages()]):
        text = made[path]() if path in made else path.read_text(encoding="utf-8")
        if path.suffix == ".md":
            text = installing(text)
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(path.relative_to(DOCS.parent).as_posix())
        if "--check" not in arguments:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"{stale[-1]}: written")
    if stale and "--check" in arguments:
        print(f"out of date: {', '.join(stale)}; `make docs` writes them", file=sys.stderr)
        return 1
    return 0


def _table(entry: SettingEntry) -> str:
    comment = f"\n{entry.comment}\n" if entry.comment else ""
    return f"## `[{dotted(entry.where)}]`\n{comment}"


def _key(entry: SettingEntry) -> str:
    note = "# example\n" if entry.is_example else ""
    name = entry.where[-1]
    shown = f"```toml\n{note}{name} = {entry.value}\n```"
    return f"### `{dotted(entry.where)}`\n\n{entry.comment}\n\n{shown}\n"


def _machine(machine: Machine) -> str:
    drawing = f"![{machine.name}](pictures/{machine.name}.svg)\n"
    blocks = [f"## {machine.name}\n", f"{machine.doc}\n", drawing]
    blocks.append(_rows(("state", "meaning"), [_state(state, machine) for state in machine.states]))
    head = ("event", "from", "to", "if", "effects")
    blocks.append(_rows(head, [_transition(row, machine) for row in machine.transitions]))
    return "\n".join(blocks)


def _state(state: State, machine: Machine) -> tuple[str, str]:
    marks = ["initial"] if state.name == machine.initial else []
    marks += ["final"] if state.is_final else []
    return f"`{state.name}`" + (f" ({', '.join(marks)})" if marks else ""), state.doc


def _transition(row: Transition, machine: Machine) -> tuple[str, ...]:
    event = f"`{row.event}`" + (" (control)" if row.event in machine.control else "")
    dest = f"ignored: {row.ignored}" if row.ignored else (row.dest or "(stays)")
    guards = ", ".join(guard.replace("!", "not ") for guard in row.guards)
    return event, ", ".join(row.source), dest, guards, ", ".join(row.effects)


def _dispositions() -> list[tuple[str, ...]]:
    return [
        (f"`{row.name}`", _when(row.when), _decision(row), row.doc)
        for row in DEFAULT_DISPOSITIONS.rows
    ]


def _decision(row: DispositionRow) -> str:
    details = [
        f"{name} `{value}`" for name, value in (("cause", row.cause), ("ack", row.ack)) if value
    ]
    return row.action + (f" ({', '.join(details)})" if details else "")


def _when(when: Mapping[str, tuple[str, ...]]) -> str:
    return "; ".join(f"{name}: {', '.join(values)}" for name, values in when.items()) or "else"


def _space(table: Table[Any]) -> str:
    rows = [(f"`{name}`", ", ".join(values)) for name, values in table.space.items()]
    return _rows(("dimension", "values"), rows)


def _rows(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
