"""The routing tables on the command line: listed, shown, proven, compared, chosen, dry-run."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ASK = "how is it going?"
THROUGH = """
[[route]]
name = "talk-through"
message = "converse"
when = { session = "delegating" }
deliver = [{ to = "children.active", as = "steer" }]
ack = "steered_child"
"""
AROUND = ("the turn", "child 1", "background child 1", "the goal")
RUDE = """
[[route]]
name = "rude"
message = "converse"
when = { session = "delegating" }
deliver = [{ to = "everybody", as = "cancel" }]
"""


def explained(command: Any, *arguments: str) -> dict[str, Any]:
    """Return a dry run as programs see it."""
    done = command("routes", "explain", *arguments, "--json")
    assert (done.code, done.err) == (0, "")
    return json.loads(done.out)


def test_list_says_which_is_used_and_what_the_others_break(command: Any, home: Path) -> None:
    """Each shipped table is there with its doc; routes of one's own are named."""
    (home / "config.toml").write_text(THROUGH)
    data = json.loads(command("routes", "list", "--json").out)
    assert [(table["name"], table["is_used"], table["breaks"]) for table in data["tables"]] == [
        ("steersman", True, []),
        ("cancel-and-discard", False, ["a converse message never stops a child"]),
        ("cancel-on-message", False, ["a converse message never stops a child"]),
        ("never-cancel", False, ["a stop reaches every descendant"]),
    ]
    assert data["routes"] == ["talk-through"]
    text = command("routes", "list").out
    assert "* steersman" in text
    assert "which come before it: talk-through" in text


def test_show_is_what_is_in_force_here(command: Any, home: Path) -> None:
    """Without a name routes of one's own are in it, marked; with one it is that table."""
    (home / "config.toml").write_text(THROUGH)
    assert "  1* talk-through" in command("routes", "show").out
    shown = command("routes", "show", "never-cancel").out
    assert "  1  children-go-on" in shown
    assert "talk-through" not in shown


@pytest.mark.parametrize("name", ["", "steersman", "cancel-and-discard"])
def test_a_table_that_was_written_is_the_same_table(
    name: str, command: Any, home: Path, folder: Path
) -> None:
    """`show --format toml` makes a file that `diff` finds no difference in."""
    (home / "config.toml").write_text(THROUGH)
    text = command("routes", "show", *([name] if name else []), "--format", "toml").out
    assert tomllib.loads(text)["disposition"]
    (folder / "copy.toml").write_text(text)
    ours = name or str(home / "config.toml")
    done = command("routes", "diff", ours, "copy.toml")
    assert (done.code, done.out) == (0, "They do the same everywhere.\n")


def test_check_of_a_table_names_rule_and_counterexample(command: Any) -> None:
    """An unsafe table fails the check, each broken rule with its places."""
    done = command("routes", "check", "cancel-on-message")
    assert done.code == 2
    assert re.match(r"cancel-on-message: dispositions: \d+ rows, \d+ cases; ", done.out)
    assert done.err.startswith("a converse message never stops a child [kills-child]\n")
    assert "`message` -> cancel foreground_child (row `message-reaches-children`)" in done.err


def test_check_of_files(command: Any, folder: Path) -> None:
    """A file with routes is checked in front of the default table."""
    (folder / "good.toml").write_text(THROUGH)
    done = command("routes", "check", "good.toml")
    assert (done.code, done.err) == (0, "")
    (folder / "rude.toml").write_text(RUDE)
    done = command("routes", "check", "rude.toml")
    assert done.code == 2
    assert "dispositions, row `rude`: intent converse, situation delegating" in done.err
    (folder / "wrong.toml").write_text(RUDE.replace("cancel", "cancl"))
    done = command("routes", "check", "wrong.toml")
    assert (done.code, done.out) == (2, "")
    assert "wrong.toml:6:37: `route[0].deliver[0].as` must be one of" in done.err


def test_check_of_a_workflow(command: Any, folder: Path) -> None:
    """Whatever else a file declares, its routes are looked at."""
    (folder / "flow.toml").write_text(f'[workflow]\nname = "migrate"\n{THROUGH}')
    assert command("routes", "check", "flow.toml").code == 0


def test_a_file_without_routes_holds_none(command: Any, folder: Path) -> None:
    """A configuration or workflow is no table file, and its other keys are no fault of one."""
    (folder / "plain.toml").write_text('[agents.coder]\nmodel = "main"\n')
    done = command("routes", "check", "plain.toml")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("plain.toml (it holds no `[[route]]`, so steersman): ")
    (folder / "table.toml").write_text('name = "t"\n[agents.coder]\n')
    done = command("routes", "check", "table.toml")
    assert (done.code, "unknown key `agents`" in done.err) == (2, True)


@pytest.mark.parametrize("routes", ["", THROUGH], ids=["alone", "below routes"])
def test_a_file_chooses_the_table_that_it_is_checked_with(
    command: Any, folder: Path, routes: str
) -> None:
    """The file's own `[routing]` counts: its rows, its faults, and a table that does not exist."""
    (folder / "own.toml").write_text(f'[routing]\ntable = "cancel-on-message"\n{routes}')
    done = command("routes", "check", "own.toml")
    assert (done.code, "[kills-child]" in done.err) == (2, True)
    assert "(row `message-reaches-children`)" in done.err
    assert "message-reaches-children" in command("routes", "show", "own.toml").out
    (folder / "own.toml").write_text(f'[routing]\ntable = "never-cancle"\n{routes}')
    done = command("routes", "check", "own.toml")
    assert (done.code, done.out) == (2, "")
    assert "own.toml:2:9: `routing.table` must be one of" in done.err


def test_diff_tells_sentences_with_examples(command: Any) -> None:
    """What is treated alike is left out of both sides."""
    done = command("routes", "diff", "steersman", "never-cancel")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[-1] == "7 differences, 177 cases."
    at = next(n for n, line in enumerate(lines) if "/stop, or Esc" in line)
    assert lines[at] == "On stop, budget, parent (6 cases), for example '/stop, or Esc':"
    assert lines[at + 1 : at + 3] == [
        "  steersman     a child that the turn waits for, a child in the background is stopped",
        "  never-cancel  a child that the turn waits for, a child in the background continues",
    ]
    data = json.loads(command("routes", "diff", "steersman", "never-cancel", "--json").out)
    assert sum(difference["cells"] for difference in data["differences"]) == 177


@pytest.mark.parametrize(
    ("arguments", "rule", "action", "receives"),
    [
        (["--busy", "interrupt"], "busy-interrupt", "interrupt", {"the turn": "cancel"}),
        ([], "steer", "steer", {"the turn": "steer"}),
        (["--busy", "queue"], "busy-queue", "queue", {"the turn": "none"}),
        (["--auto-queue", "on"], "auto-queue", "queue", {"the turn": "none"}),
        (["--state", "idle"], "run", "run", {}),
        (["--state", "held"], "run", "run", {}),
        (
            ["--state", "delegating", "--busy", "interrupt", "--children", "2"],
            "subagent-working",
            "queue",
            {"the turn": "none", "child 1": "none", "child 2": "none"},
        ),
        (
            ["--children", "1", "--background", "1", "--busy", "steer"],
            "steer-through",
            "steer",
            {"the turn": "none", "child 1": "steer", "background child 1": "none"},
        ),
        (
            ["--background", "1", "--strategy", "always"],
            "always",
            "interrupt",
            {"the turn": "cancel", "background child 1": "none"},
        ),
        (["--as", "queue"], "explicit-queue", "queue", {"the turn": "none"}),
        (
            ["--children", "1", "--busy", "interrupt", "--table", "cancel-on-message"],
            "message-while-delegating",
            "interrupt",
            {"the turn": "cancel", "child 1": "cancel"},
        ),
    ],
)
def test_explain(
    arguments: list[str], rule: str, action: str, receives: dict[str, str], command: Any
) -> None:
    """The row of each table is named, and everybody around with what they would get."""
    data = explained(command, ASK, *arguments)
    assert (data["rule"], data["action"]) == (rule, action)
    assert {recipient["who"]: recipient["what"] for recipient in data["receives"]} == receives


def test_explain_reads_the_configured_words(command: Any, home: Path) -> None:
    """The configuration decides which words interrupt, and which routes are asked."""
    (home / "config.toml").write_text(f'[auto_queue]\ninterrupt_keywords = ["genug"]\n{THROUGH}')
    found = explained(command, "Genug!", "--children", "1")
    assert (found["intent"], found["matched"], found["cause"]) == (
        "interrupt_bare",
        "genug",
        "bare_word",
    )
    assert found["below"] == {"what": "cancel", "rule": "cancel-all", "cause": "parent"}
    assert explained(command, "stop", "--children", "1")["rule"] == "talk-through"


def test_explain_of_a_command_says_whom_it_reaches(command: Any) -> None:
    """`/stop` is no message, but it has a cause."""
    found = explained(command, "/stop", "--children", "1", "--side-talks", "1")
    assert (found["intent"], found["cause"]) == ("command", "stop")
    assert {recipient["what"] for recipient in found["receives"]} == {"cancel"}
    assert explained(command, "/help", "--children", "1")["cause"] is None


def gives(data: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Map each of those around to what it gets, and by which row."""
    return {
        recipient["who"]: (recipient["what"], recipient["rule"]) for recipient in data["receives"]
    }


@pytest.mark.parametrize("command_text", ["/new", "/finalize"])
def test_explain_of_the_end_of_a_session(command_text: str, command: Any) -> None:
    """The session, its children and its goal are finalized, also if no turn runs."""
    found = explained(command, command_text, "--children", "1", "--goal")
    expected = dict.fromkeys(("the session", "child 1", "the goal"), ("finalize", "finalize-all"))
    assert gives(found) == expected
    assert found["below"]["cause"] == "finalize"
    assert gives(explained(command, command_text, "--state", "idle")) == {
        "the session": ("finalize", "finalize-all")
    }


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        (
            "timeout",
            {
                "the turn": ("cancel", "timeout"),
                "child 1": ("cancel", "timeout"),
                "background child 1": ("none", "timeout-aside"),
                "the goal": ("none", "timeout-goal"),
            },
        ),
        ("budget", dict.fromkeys(AROUND, ("cancel", "cancel-all"))),
        ("turn_ended", {**dict.fromkeys(AROUND, ("none", "turn-ended")), "the turn": ("none", "")}),
        ("signal", dict.fromkeys(AROUND, ("cancel", "cancel-all"))),
    ],
)
def test_explain_of_a_cause_that_no_message_raises(
    cause: str, expected: dict[str, tuple[str, str]], command: Any
) -> None:
    """Leaving, limits and the end of a turn are explained by the rows that the session asks."""
    around = ("--children", "1", "--background", "1", "--goal")
    done = command("routes", "explain", "--cause", cause, *around, "--json")
    assert (done.code, done.err) == (0, "")
    assert gives(json.loads(done.out)) == expected
    assert f"deliveries: cause `{cause}`" in command("routes", "explain", "--cause", cause).out


def test_explain_of_a_cause_in_its_earlier_spelling(command: Any) -> None:
    """It is understood, and shown as it is spelled now; a message about a wrong one has only this."""
    assert "cause `turn_ended`" in command("routes", "explain", "--cause", "turn_end").out
    assert "did you mean `turn_ended`?" in command("routes", "explain", "--cause", "turn_en").err


def test_explain_of_a_named_steer(command: Any) -> None:
    """A child takes in what names it, also in the background; without a name the turn does."""
    found = explained(command, "/steer @kid use tabs", "--background", "1")
    assert (found["cause"], found["ack"]) == ("steer_named", "steered_child")
    assert gives(found) == {"kid": ("steer", "steer-named"), "the turn": ("none", "")}
    assert found["told"] == 'Steering kid with #2: "use tabs"'
    found = explained(command, "/steer use tabs", "--background", "1")
    assert (found["cause"], gives(found)["the turn"]) == ("steer", ("steer", "steer"))


def test_explain_for_people(command: Any) -> None:
    """The text names the classification, the rows, and the acknowledgement."""
    state = ("--state", "delegating", "--children", "2", "--busy", "interrupt")
    out = command("routes", "explain", ASK, *state).out
    assert out == (
        '"how is it going?"\n'
        "is converse: talk: no word of any list.\n"
        "The session is delegating: a turn waits for a child. "
        "Mode interrupt, strategy keyword, auto-queue off.\n"
        "\n"
        "dispositions: row `subagent-working`: queue. Messages wait for the child.\n"
        "deliveries: no recipients\n"
        "\n"
        "Acknowledgement (`subagent_working`): "
        "⏳ Subagent working — your message is queued for when it finishes\n"
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["show", "never-cancl"], "did you mean `never-cancel`?"),
        (["show", "none.toml"], "none.toml: the file can't be read: it is not there"),
        (["show", "steersman", "--format", "yaml"], "there is no format `yaml`"),
        (["explain", "x", "--state", "delegate"], "did you mean `delegating`?"),
        (["explain", "x", "--busy", "stear"], "did you mean `steer`?"),
        (["explain", "x", "--strategy", "nevr"], "did you mean `never`?"),
        (["explain", "x", "--as", "steel"], "did you mean `steer`?"),
        (["explain", "--cause", "tmeout"], "did you mean `timeout`?"),
        (["explain", "x", "--cause", "timeout"], "a dry run is of a text, or of a cause"),
        (["explain", "x", "--children", "-1"], "--children"),
        (["use", "no-such"], "there is no routing table `no-such`"),
        (["use", "never-cancel"], "a stop reaches every descendant; but"),
        (["use", "steersman", "--folder", "nowhere"], "`nowhere` is not a folder"),
    ],
)
def test_a_mistake_is_reported_as_a_sentence(arguments: list[str], text: str, command: Any) -> None:
    """A mistake ends with exit code 2 and what was probably meant."""
    done = command("routes", *arguments)
    assert (done.code, done.out) == (2, "")
    assert text in done.err


def test_use_for_a_folder(command: Any, home: Path, folder: Path) -> None:
    """The choice is a layer of the configuration in the state folder; nothing is put into the project."""
    done = command("routes", "use", "never-cancel", "--unsafe")
    assert done.code == 0
    (file,) = (home / "state" / "folders").iterdir()
    assert str(file) in done.out
    assert list(folder.iterdir()) == []
    assert json.loads(command("config", "show", "--json").out)["sources"]["routing.table"] == str(
        file
    )
    assert f"chosen   {file}  (for this folder)" in command("config", "path").out
    assert "* never-cancel" in command("routes", "list").out
    command("routes", "use", "steersman")
    assert "* steersman" in command("routes", "list").out


def test_a_choice_that_does_not_fit_the_routes_is_not_written(command: Any, home: Path) -> None:
    """Otherwise nothing would start in this folder any more."""
    (home / "config.toml").write_text(THROUGH.replace("talk-through", "children-go-on"))
    done = command("routes", "use", "never-cancel", "--unsafe")
    assert done.code == 2
    assert "config.toml:3:8: `children-go-on` is the name of a shipped row already" in done.err
    assert not (home / "state" / "folders").exists()


def test_an_unsafe_choice_is_said_at_every_start(
    program: Any, command: Any, configure: Any
) -> None:
    """A chat in the folder tells it before anything else."""
    configure('[[answer]]\ntext = "Yes."\n')
    assert command("routes", "use", "never-cancel", "--unsafe").code == 0
    done = program("chat", "hello")
    assert (done.code, done.out) == (0, "Yes.\n")
    assert "`never-cancel`, does not keep these rules: a stop reaches every descendant" in done.err


def test_use_for_a_session(command: Any, told: Path) -> None:
    """A session that no process has open gets the choice."""
    done = command("routes", "use", "never-cancel", "--session", "last")
    assert done.code == 1
    assert "used only with --unsafe" in done.err
    done = command("routes", "use", "never-cancel", "--session", "last", "--unsafe")
    assert (done.code, done.err.partition(" ")[0]) == (0, "Of")
    before = json.loads(command("inspect", "--format", "json").out)
    assert before["routes"] == {"table": "never-cancel", "may_be_unsafe": True}
