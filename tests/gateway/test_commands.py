"""Slash commands: how a line is read, and that a call from a program does the same."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from gateway.conftest import replied

import steersman
from steersman.gateway.client import SessionClient
from steersman.gateway.commands.agents import draw_agents, wrap_up_agent
from steersman.gateway.commands.command import CommandCall
from steersman.gateway.commands.goal import goal
from steersman.gateway.commands.queue import edit_queue, pop_queue
from steersman.gateway.commands.registry import call, parse
from steersman.gateway.commands.saved_queue import export_queue
from steersman.gateway.commands.talk import stop
from steersman.machines.errors import UsageError


def read(line: str) -> CommandCall:
    """Read a command without its slash."""
    name, _, argument = line.partition(" ")
    return parse(name, argument)


@pytest.mark.parametrize(
    ("line", "name", "arguments"),
    [
        ("stop at once", "stop", {"text": "at once"}),
        ("queue", "queue", {}),
        ("queue LIST --all", "queue list", {"is_all": True}),
        ('queue edit #2 don\'t  "do"', "queue edit", {"number": 2, "text": 'don\'t  "do"'}),
        ("queue pop", "queue pop", {}),
        ("queue resume 8e49 --merge", "queue resume", {"which": "8e49", "merge": True}),
        ("queue import 'my file'", "queue import", {"file": "my file"}),
        ("goal pause", "goal pause", {}),
        ("goal pause the music", "goal", {"text": "pause the music"}),
        (
            'goal --gate "npm test" --gate ls --turns=3 win --turns 4',
            "goal",
            {"gates": ("npm test", "ls"), "turns": 3, "text": "win --turns 4"},
        ),
        ("goal -- --fast", "goal", {"text": "--fast"}),
        (
            "answer t1-c1 ALWAYS git *",
            "answer",
            {"question": "t1-c1", "choice": "ALWAYS", "reason": "git *"},
        ),
        ("revert undo a.txt --force", "revert", {"what": ("undo", "a.txt"), "force": True}),
        ("resume the zod migration", "resume", {"session": "the zod migration"}),
        ("quit", "exit", {}),
    ],
)
def test_a_line_is_read_by_its_declaration(line: str, name: str, arguments: dict[str, Any]) -> None:
    """Words, numbers, choices, options and texts come out typed; a text stays as it was typed."""
    found = read(line)
    assert found.command.name == name
    assert found.arguments == arguments


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("queue edit", "N is missing: /queue edit N TEXT."),
        ("queue edit x y", "`x` is not a number: /queue edit N TEXT."),
        ("queue edit 2", "TEXT is missing: /queue edit N TEXT."),
        ("queue fly", "No `/queue fly`. There are: add, clear,"),
        ("queue export 'a", "`'a` can't be read: No closing quotation: /queue export FILE."),
        ("queue pop 1 2", "`2` makes no sense here: /queue pop [N]."),
        ("queue clear 3", "`3` makes no sense here: /queue clear."),
        ("busy now", "`now` is not one of interrupt, steer, queue: /busy"),
        ("goal --fast win", "`--fast` is not one of --gate, --turns, --tokens, --minutes;"),
        ("goal --turns many win", "`--turns many` is no number"),
        ("goal --turns", "`--turns` needs a value"),
    ],
)
def test_what_cannot_be_read_is_answered_with_the_usage(line: str, said: str) -> None:
    """The answer names what is wrong and how the command is typed."""
    with pytest.raises(UsageError) as caught:
        read(line)
    assert caught.value.message.startswith(said)


@pytest.mark.parametrize(
    ("name", "arguments", "made"),
    [
        ("stop", {}, stop()),
        ("queue edit", {"number": 2, "text": "a 'b'"}, edit_queue(2, "a 'b'")),
        ("queue pop", {"number": 1}, pop_queue(1)),
        ("goal", {"text": "win", "gates": ["ls"]}, goal("win", gates=("ls",))),
        ("queue pop", {"number": None}, pop_queue(None)),
    ],
)
def test_data_gives_the_same_call(name: str, arguments: dict[str, Any], made: CommandCall) -> None:
    """What comes as JSON is the call that the program's own keys send."""
    found = call(name, arguments)
    assert (found.command, found.arguments) == (made.command, made.arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("fly", {}, "no command `fly`"),
        ("stop", {"now": True}, "`stop` has no argument `now`"),
        ("queue edit", {"number": 2}, "`queue edit` needs `text`"),
        ("queue edit", {"number": "2", "text": "x"}, "`number` cannot be '2'"),
        ("queue edit", {"number": True, "text": "x"}, "`number` cannot be True"),
        ("busy", {"mode": "now"}, "`mode` cannot be 'now'"),
    ],
)
def test_data_of_another_type_is_refused(name: str, arguments: dict[str, Any], said: str) -> None:
    """A program learns which argument is wrong."""
    with pytest.raises(ValueError, match=said):
        call(name, arguments)


@steersman.tool
def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


async def test_a_programs_own_tool_may_be_allowed(tmp_path: Path) -> None:
    """A session's own tools are among those that an allowance can name."""
    (tmp_path / "answers.toml").write_text('[[answer]]\ntext = "Yes."\n')
    (tmp_path / "config.toml").write_text(
        f'[models.main]\nprovider = "scripted"\nscript = "{tmp_path}/answers.toml"\n'
    )
    agent = steersman.Agent(name="loud", model="main", tools=[shout])
    async with steersman.open(tmp_path) as runtime:
        session = await runtime.start(agent, folder=tmp_path)
        conversation = runtime._host.conversation(session.id)
        allowed, refused = [
            await asyncio.to_thread(replied, conversation, f"/permissions allow {name} *")
            for name in ("shout", "shut")
        ]
    assert (allowed.ok, allowed.data) == (True, {"tool": "shout", "match": "*"})
    assert (refused.ok, "`shut`" in refused.text, "shout" in refused.text) == (False, True, True)


def test_calls_and_lines_do_the_same(conversation: SessionClient, tmp_path: Path) -> None:
    """What a call does, a line sees: permissions, a subagent that is not there, a file."""
    assert replied(conversation, '/permissions allow shell "git *"').ok
    misspelt = replied(conversation, "/permissions allow shel *")
    assert misspelt.text.startswith("There is no tool `shel`; there are read, ")
    listed = replied(conversation, "/permissions list")
    assert [row["match"] for row in listed.data["allowed"]] == ["git *"]
    gone = conversation.run(wrap_up_agent("kid"))
    assert (gone is not None and gone.ok) is False
    written = conversation.run(export_queue("queue.toml"))
    assert written is not None
    assert written.ok
    assert (tmp_path / "project" / "queue.toml").exists()
    for shorter, longer in (("/agents", "/agents list"), ("/goal", "/goal status")):
        assert replied(conversation, shorter) == replied(conversation, longer)
    helped = replied(conversation, "/help queue edit")
    assert [command["name"] for command in helped.data["commands"]] == ["queue edit"]


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("bare_word", "a word to stop"),
        ("timed_out", "timed out"),
        ("no file a_b.py", "no file a_b.py"),
    ],
)
def test_why_a_subagent_ended_is_said_in_words(reason: str, shown: str) -> None:
    """A cause that programs read is written as words; a sentence stays as it is."""
    agent = {"name": "kid", "state": "interrupted", "reason": reason, "task": "look", "depth": 0}
    about = {"relation": "foreground_child", "steps": 1, "elapsed": 5.0, "tokens": 0}
    expected = f"kid [INTERRUPTED] ({shown}) look (5 s, 1 step, 0 tokens)"
    assert draw_agents([agent | about]) == expected
