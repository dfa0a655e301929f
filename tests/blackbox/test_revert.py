"""Stop and revert: every file back, byte for byte, and nothing that a person did is touched."""

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.driver import Chat, Gate, Place, wait_gone
from support.model_server import Stall, Text, Tools

FILES = 60
ALLOW = """
[permissions]
rules = [{ tool = "*", match = "*", do = "allow" }]
"""


def fill(folder: Path) -> dict[str, bytes]:
    """Write sixty files; return what they hold."""
    (folder / "src").mkdir()
    for number in range(FILES):
        ends = b"\r\n" if number % 3 else b"\n"
        (folder / f"src/f{number:02}.txt").write_bytes(ends.join([b"use yup", b"%d" % number, b""]))
    return content(folder)


def content(folder: Path) -> dict[str, bytes]:
    """Return what the files of a folder hold, but for git's and the gate's."""
    paths = [path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def edit(number: int) -> dict[str, Any]:
    """Make the call that changes one file."""
    path = f"src/f{number:02}.txt"
    return {"tool": "edit", "arguments": {"path": path, "old": "yup", "new": "zod"}}


def shell(command: str) -> dict[str, Any]:
    """Make the call that runs a command."""
    return {"tool": "shell", "arguments": {"command": command}}


def progress(done: int) -> dict[str, Any]:
    """Make the call that says how far it is."""
    return {"tool": "progress", "arguments": {"done": done, "total": FILES, "unit": "file"}}


@pytest.mark.parametrize("is_repository", [True, False], ids=["repository", "plain folder"])
def test_stop_and_revert_in_the_middle(place: Place, serve, gate: Gate, is_repository) -> None:
    """Tools and commands, one created, one deleted, a person's edit; while a command still runs."""
    before = fill(place.folder)
    if is_repository:
        git(place.folder, "init", "-q")
        git(place.folder, "add", "-A", "src")
    between = Gate(place.folder, "between")
    many = "sed -i s/yup/zod/ src/f2*.txt src/f3*.txt src/f40.txt src/f41.txt"
    server = serve(
        Tools([edit(number) for number in range(20)]),
        Tools([shell(f"{many}; rm src/f42.txt; mkdir new; echo new > new/made.txt")]),
        Tools([shell(between.command)]),
        Tools([progress(45), shell(f"echo x >> src/f43.txt; {gate.command}; sleep 600")]),
        Text("Next."),
        rest=ALLOW,
    )
    chat = place.chat()
    chat.send("move to zod")
    between.wait()
    between.open()
    chat.wait("tool_ended", status="ok")
    gate.wait()
    (place.folder / "src/f59.txt").write_bytes(b"the person's")  # while the command runs: nobody's
    chat.send({"text": "later", "as": "queue"}, "actually stop and revert")
    told = chat.wait("reverted")
    assert chat.kinds("interrupted", "stopped", "reverted") == [
        "interrupted",
        "stopped",
        "reverted",
    ]
    assert len(told["restored"]) == 20 + 22 + 2 + 1 + 1
    assert "src/f59.txt" in told["shared"]
    notices = [event["text"] for event in chat.seen("notice")]
    assert "Reverting file 45 changes..." in notices
    assert content(place.folder) == before
    assert not (place.folder / "new").exists()
    undone = chat.ask("/revert undo src/f59.txt")
    assert undone["data"]["restored"] == ["src/f59.txt"]
    assert (place.folder / "src/f59.txt").read_bytes() == b"the person's"
    chat.completes("what now?")
    assert "reverted your changes of 46 files" in server.requests[-1].prompt
    assert server.requests[-1].prompt.endswith("what now?")
    assert chat.close() == 0
    if is_repository:
        assert git(place.folder, "diff", "--stat", "--", ".", ":!src/f59.txt") == ""
    between.close()


def git(folder: Path, *arguments: str) -> str:
    """Run the person's own git."""
    return subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout


def test_what_a_person_saves_between_two_calls_is_kept(place: Place, serve) -> None:
    """An edit on the agent's own path is named and stays, in the words that people know."""
    before = fill(place.folder)
    serve(
        Tools([edit(number) for number in range(46)]),
        Stall("Forty-six files are done, and "),
        rest=ALLOW,
    )
    chat = place.chat()
    chat.causes("move to zod", "text")
    (place.folder / "src/f45.txt").write_bytes(b"mine")
    (place.folder / "src/new.txt").write_bytes(b"mine, too")
    dry = chat.ask("/revert --dry-run")
    assert len(dry["data"]["restored"]) == 45
    assert not chat.seen("stopped")
    shown = chat.ask("/diff")
    assert len(shown["data"]["files"]) == 46
    assert "-use yup" in shown["text"]
    assert "+use zod" in shown["text"]
    result = chat.ask("/revert")
    assert result["text"].splitlines()[0] == "Reverted 45 files. Original state restored."
    assert result["data"]["kept"] == ["src/f45.txt"]
    event = chat.wait_any("reverted")
    assert event["restored"] == result["data"]["restored"]
    mine = {"src/f45.txt": b"mine", "src/new.txt": b"mine, too"}
    assert content(place.folder) == before | mine
    again = chat.ask("/revert")
    assert again["data"]["restored"] == []
    assert chat.close() == 0
    assert place.data("sessions", "revert", "last", "--force")["restored"] == ["src/f45.txt"]
    assert content(place.folder) == before | {"src/new.txt": b"mine, too"}


def test_revert_the_last_file(place: Place, serve) -> None:
    """The words undo one change; a bare `revert` all of the turn; `/revert undo` takes that back."""
    before = fill(place.folder)
    serve(Tools([edit(0), edit(1), edit(2)]), Stall("And so "), Text("Fine."), rest=ALLOW)
    chat = place.chat()
    chat.causes("go", "text")
    changed = content(place.folder)
    assert chat.causes("revert the last file", "reverted")["restored"] == ["src/f02.txt"]
    assert content(place.folder) == changed | {"src/f02.txt": before["src/f02.txt"]}
    assert chat.ask("/revert last")["data"]["restored"] == ["src/f01.txt"]
    chat.ask("/revert undo")
    chat.ask("/revert undo")
    assert content(place.folder) == changed
    chat.ask("/revert")
    assert content(place.folder) == before


def test_names_are_said_as_they_can_be_typed(place: Place, serve) -> None:
    """With spaces, quotes and bytes that are no text: each undoes its part of the revert."""
    names = ["a b", "it's", "b\\xffd", "plain"]
    command = 'touch \'a b\' "it\'s" plain; python3 -c \'open(b"b\\xffd", "w")\''
    serve(Tools([shell(command)]), Text("Fine."), rest=ALLOW)
    chat = place.chat()
    chat.completes("go")
    said = chat.ask("/revert")
    assert sorted(said["data"]["restored"]) == sorted(names)
    told = said["text"].partition("t1: ")[2].partition(".")[0].split(", ")
    assert [shlex.split(name) for name in told] == [[name] for name in said["data"]["restored"]]
    for word, name in zip(told, said["data"]["restored"], strict=True):
        assert chat.ask(f"/revert undo {word}")["data"]["restored"] == [name]
    assert len(os.listdir(os.fsencode(place.folder))) >= 4
    assert chat.close() == 0


def test_words_that_say_more_restore_nothing(place: Place, serve) -> None:
    """`implement undo support` interrupts by the word list, and leaves all files as they are."""
    fill(place.folder)
    serve(Tools([edit(0)]), Stall("And so "), Text("Fine."), rest=ALLOW)
    chat = place.chat()
    chat.causes("go", "text")
    changed = content(place.folder)
    chat.completes("implement undo support")
    assert chat.close() == 0
    assert not chat.seen("reverted")
    assert content(place.folder) == changed


def test_a_killed_program_s_turn_can_be_reverted(place: Place, serve, gate: Gate) -> None:
    """What was entered is known after a crash, and so is what a command did until it died."""
    before = fill(place.folder)
    command = f"echo agent > src/f01.txt; {gate.command}; sleep 600"
    serve(Tools([edit(0), shell(command)]), Text("Fine."), rest=ALLOW)
    chat = place.chat()
    chat.send("go")
    gate.wait()
    chat.kill()
    later = place.chat("--continue")
    later.wait("recovered")
    done = later.ask("/revert")["data"]
    assert (done["restored"], done["kept"]) == (["src/f00.txt", "src/f01.txt"], [])
    assert content(place.folder) == before


def test_what_is_written_right_after_a_crash_is_the_persons(
    place: Place, serve, gate: Gate
) -> None:
    """As soon as nothing of the command is left, a change is not counted as the agent's."""
    before = fill(place.folder)
    command = f"echo agent > src/f01.txt; echo agent > src/f02.txt; {gate.command}; sleep 600"
    look = Tools([{"tool": "read", "arguments": {"path": "hand.txt"}}])
    serve(Tools([shell(command)]), look, Text("Fine."), rest=ALLOW)
    chat = place.chat()
    chat.send("go")
    gate.wait()
    chat.kill()
    wait_gone(place.processes())
    mine = {"src/f02.txt": b"mine\n", "hand.txt": b"new\n"}
    for name, data in mine.items():
        (place.folder / name).write_bytes(data)
    later = place.chat("--continue")
    later.wait("recovered")
    later.completes("/queue resume")
    done = later.ask("/revert")["data"]
    assert done["restored"] == ["src/f01.txt"]
    assert {*done["kept"]} == {*mine}
    assert content(place.folder) == before | mine


def test_a_resumed_turn_is_one_with_what_it_resumes(place: Place, serve) -> None:
    """Interrupted and resumed, then reverted: the files of both parts come back."""
    before = fill(place.folder)
    serve(
        Tools([edit(0)]),
        Stall("Half of it. "),
        Tools([edit(1)]),
        Stall("And the rest. "),
        rest=ALLOW,
    )
    chat = place.chat()
    chat.causes("go", "text")
    chat.causes("/stop", "stopped")
    chat.causes("/queue resume", "text")
    assert chat.causes("stop and revert", "reverted")["restored"] == ["src/f00.txt", "src/f01.txt"]
    assert content(place.folder) == before


def test_what_a_resumed_turn_left_to_the_one_before_it_is_reverted_with_it(
    place: Place, serve
) -> None:
    """Its message is marked, the model is told to start again, and no file is named as changed."""
    before = fill(place.folder)
    server = serve(
        Tools([edit(0)]), Stall("Half of it. "), Stall("More. "), Text("Done."), rest=ALLOW
    )
    chat = place.chat()
    chat.send("go")
    for order in ("/stop", "/queue resume", "stop and revert"):
        chat.wait("text" if order != "/queue resume" else "stopped")
        chat.send(order)
    assert chat.wait("reverted")["turns"] == ["t1", "t2"]
    assert content(place.folder) == before
    assert chat.ask("/queue")["text"].splitlines()[0] == "#1 [INTERRUPTED]: go (reverted)"
    end = chat.completes("/queue resume")
    assert end["facts"]["text"] == "No file was changed."
    assert "Start again." in server.requests[-1].prompt


def test_what_was_taken_back_is_resumed_alone_or_by_its_number(place: Place, serve) -> None:
    """`/queue resume` passes it over for what else was interrupted, until its revert is undone."""
    before = fill(place.folder)
    serve(
        Tools([edit(0)]),
        Stall("Half of it. "),
        Stall("And of another. "),
        Text("The other is done."),
        Text("And the first."),
        rest=ALLOW,
    )
    chat = place.chat()
    chat.causes("first", "text")
    chat.causes("stop and revert", "reverted")
    assert content(place.folder) == before
    chat.causes("second", "text")
    chat.causes("/stop", "stopped")
    assert chat.ask("/queue")["text"].splitlines()[0] == "#1 [INTERRUPTED]: first (reverted)"
    resumed = chat.ask("/queue resume")
    assert (resumed["data"]["number"], resumed["data"]["restored"]) == (2, 1)
    assert resumed["text"].endswith("#1 was reverted: `/queue resume 1` runs it again.")
    chat.wait("turn_ended", status="completed")
    assert [item["number"] for item in chat.ask("/queue")["data"]["items"]] == [1]
    assert chat.ask("/revert undo")["ok"]
    assert "reverted" not in chat.ask("/queue")["data"]["items"][0]
    assert chat.ask("/queue resume")["data"]["number"] == 1
    chat.wait("turn_ended", status="completed")


def test_what_was_stopped_comes_before_what_it_left_alone(place: Place, serve) -> None:
    """A stopped turn that changed nothing is what a revert means; an older turn needs a second one."""
    before = fill(place.folder)
    serve(Tools([edit(0)]), Text("Done."), Stall("I look. "), rest=ALLOW)
    chat = place.chat()
    chat.completes("go")
    changed = content(place.folder)
    chat.causes("and now?", "text")
    chat.causes("/stop", "stopped")
    nothing = "There is nothing to revert of t2."
    assert chat.ask("/revert --dry-run")["text"] == nothing
    again = f"{nothing} Again /revert takes back the turn before it."
    assert chat.ask("/revert")["text"] == again
    assert content(place.folder) == changed
    assert chat.ask("/revert")["data"]["turns"] == ["t1"]
    assert content(place.folder) == before


def test_plain_text_says_it_in_the_known_words(place: Place, serve) -> None:
    """On a screen: how many, and that all is as it was."""
    fill(place.folder)
    serve(Tools([edit(0), edit(1)]), Text("Done."), rest=ALLOW)
    assert place.run("chat", "go").returncode == 0
    said = place.run("chat", "--plain", "--continue", said="/revert\n")
    assert "Reverting file 2 changes..." in said.stderr
    assert said.stderr.count("Reverted 2 files. Original state restored.") == 1


def test_without_git_it_is_said_once(place: Place, serve, tmp_path: Path) -> None:
    """Everything else works, and what our own tools write comes back."""
    before = fill(place.folder)
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "sh", "echo"):
        os.symlink(f"/bin/{name}", tools / name)
    place.environ["PATH"] = str(tools)
    serve(Tools([edit(0), shell("echo x"), shell("echo y")]), Text("Done."), rest=ALLOW)
    chat: Chat = place.chat()
    chat.completes("go")
    assert sum("git is not installed" in event["text"] for event in chat.seen("notice")) == 1
    chat.ask("/revert")
    assert content(place.folder) == before


@pytest.mark.nightly
def test_a_finalized_session_can_be_reverted(place: Place, serve) -> None:
    """From the command line, and undone, once each; its journal stays as it was."""
    before = fill(place.folder)
    serve(Tools([edit(0), edit(1)]), Text("Done."), rest=ALLOW)
    chat = place.chat()
    chat.completes("go")
    changed = content(place.folder)
    chat.ask("/new")
    chat.ask("/revert")
    assert f"`steersman sessions revert {chat.session}`" in chat.seen("notice")[-1]["text"]
    assert chat.close() == 0
    (place.folder / "src/f01.txt").write_bytes(b"mine")
    for words, expected in (
        (("--dry-run",), changed | {"src/f01.txt": b"mine"}),
        ((), before | {"src/f01.txt": b"mine"}),
        (("undo",), changed | {"src/f01.txt": b"mine"}),
        (("--force",), before),
        ((), before),
    ):
        ran = place.run("sessions", "revert", chat.session, *words)
        assert ran.returncode == 0, ran.stderr
        assert content(place.folder) == expected, words
    assert ran.stdout == "There is nothing to revert.\n"
    assert place.run("sessions", "show", chat.session).returncode == 0


def test_copies_of_files_stay_within_their_budget(place: Place, serve) -> None:
    """The start of a chat puts those of the session that was idle longest into the trash, and says so."""
    fill(place.folder)
    serve(Tools([edit(0)]), Text("Done."), rest=f"{ALLOW}[checkpoints]\nbudget = 1\n")
    first = place.chat()
    first.completes("go")
    assert first.close() == 0
    (ledger,) = place.home.glob("state/workspaces/*/ledger-*")
    os.utime(ledger, (0, 0))
    second = place.chat()
    second.wait_text(f"those of these sessions are in the trash now: {first.session}")
    assert second.close() == 0
    assert ledger.exists()
    assert f"copies-{first.session}" in place.run("home", "trash").stdout
    assert place.run("home", "trash", "empty", "--yes").returncode == 0
    assert not ledger.exists()
    later = place.chat("--resume", first.session)
    assert later.ask("/revert")["text"] == "There is nothing to revert."


def kid(name: str, **more: object) -> dict[str, Any]:
    """Make the call that delegates to a child."""
    arguments = {"task": f"you are {name}", "name": name, **more}
    return {"tool": "delegate", "arguments": arguments}


def write(path: str, text: str) -> dict[str, Any]:
    """Make the call that writes one file."""
    return {"tool": "write", "arguments": {"path": path, "content": text}}


def test_what_children_changed_comes_back_with_their_parent_s_turn(place: Place, serve) -> None:
    """Two at once, with commands that overlap, one of them still running; a person's edit stays."""
    before = fill(place.folder)
    one, two, end = (Gate(place.folder, name) for name in ("one", "two", "end"))
    serve(
        Tools([edit(0)], match="do it"),
        Tools([kid("ann"), kid("bob")], match="do it"),
        Tools([shell(f"echo a > src/f10.txt; {one.command}; echo a > src/f11.txt")], match="ann"),
        Tools([write("src/f12.txt", "a"), edit(13)], match="ann"),
        Tools([shell(f"{end.command}; sleep 600")], match="ann"),
        Tools([shell(f"rm src/f20.txt; {two.command}; sleep 600")], match="bob"),
        rest=ALLOW,
    )
    chat = place.chat()
    chat.send("do it")
    pids = [one.wait(), two.wait()]
    one.open()
    pids.append(end.wait())  # ann's first command and her files are done, bob's command runs on
    (place.folder / "src/f12.txt").write_bytes(b"mine")
    shown = chat.ask("/diff")["data"]["files"]
    assert "src/f11.txt" in [found["path"] for found in shown]
    told = chat.causes("stop and revert", "reverted")
    names = [f"src/f{number:02}.txt" for number in (0, 10, 11, 12, 13, 20)]
    assert sorted(told["restored"]) == names
    assert told["turns"] == ["t1"]
    assert "src/f12.txt" in told["shared"]  # commands ran meanwhile
    assert content(place.folder) == before
    assert not wait_gone(pids, 0.0)
    undone = chat.ask("/revert undo src/f12.txt")
    assert undone["ok"]
    assert (place.folder / "src/f12.txt").read_bytes() == b"mine"
    assert chat.close() == 0
    refused = place.run("sessions", "revert", f"{chat.session}-1")
    assert f"belong to the turn of `{chat.session}`" in refused.stdout + refused.stderr
    for gate in (one, two, end):
        gate.close()


@pytest.mark.parametrize("said", ["/revert", "stop and revert"])
def test_a_child_that_outlives_a_stop_does_not_outlive_a_revert(
    place: Place, serve, gate: Gate, said: str
) -> None:
    """Nor does one below it: all are stopped, and what they changed comes back."""
    before = fill(place.folder)
    serve(
        Tools([kid("ann", agent="scout")], match="do it"),
        Tools([edit(1), kid("bob", agent="scout")], match="ann"),
        Tools([shell(f"rm src/f02.txt; {gate.command}; sleep 600")], match="bob"),
        rest=f'{ALLOW}[agents.scout]\nmodel = "main"\non_parent_interrupt = "detach"\n',
    )
    chat = place.chat()
    chat.send("do it")
    pid = gate.wait()
    told = chat.causes(said, "reverted")
    assert told["restored"] == ["src/f01.txt", "src/f02.txt"]
    assert content(place.folder) == before
    assert not wait_gone([pid], 0.0)


@pytest.mark.parametrize("said", ["/revert", "stop and revert"])
def test_children_alone_are_stopped_and_their_files_come_back(
    place: Place, serve, gate: Gate, said: str
) -> None:
    """No turn runs, but a child in the background does; what is said next waits for the files."""
    before = fill(place.folder)
    serve(
        Tools([kid("ann", background=True)], match="do it"),
        Text("Off it goes.", match="do it"),
        Tools([edit(1)], match="ann"),
        Tools([shell(f"rm src/f02.txt; {gate.command}; sleep 600")], match="ann"),
        Tools([shell("cat src/f01.txt")], match="what now"),
        Text("Fine."),
        rest=ALLOW,
    )
    chat = place.chat()
    chat.send("do it")
    chat.wait("turn_ended", status="completed", session=chat.session)
    gate.wait()
    chat.send(said, "what now?")
    told = chat.wait("reverted")
    assert "src/f01.txt" in told["restored"]
    assert "src/f02.txt" in told["restored"]
    chat.wait("turn_ended", status="completed", turn="t2")
    kinds = chat.kinds("reverted", "turn_started")
    assert kinds.index("reverted") < len(kinds) - 1
    assert content(place.folder) == before


def test_files_and_folders_are_taken_back_however_they_are_named(place: Place, serve) -> None:
    """From the folder or from the root, with a dot or a slash; a folder is all that is in it."""
    names = ("src/a.txt", "src/b.txt", "top.txt")
    made = [{"tool": "write", "arguments": {"path": name, "content": name}} for name in names]
    serve(Tools(made), Text("Made."), rest=ALLOW)
    chat = place.chat()
    chat.completes("make three files")
    absolute = str(place.folder / "src/b.txt")
    for named, back in [
        (("./src/a.txt",), ["src/a.txt"]),
        ((absolute,), ["src/b.txt"]),
        (("src/",), ["src/a.txt", "src/b.txt"]),
        (("src", "x/../top.txt"), sorted(names)),
    ]:
        assert len(chat.ask("/revert")["data"]["restored"]) >= 3
        undone = chat.ask(f"/revert undo {' '.join(named)}")
        assert sorted(undone["data"]["restored"]) == back, named
        chat.ask("/revert undo")
        assert all((place.folder / name).read_text() == name for name in names)
    for command in ("/diff t2", "/revert --to t2"):
        refused = chat.ask(command)
        assert (refused["ok"], "there is no turn t2: the newest is t1" in refused["text"]) == (
            False,
            True,
        )


def test_a_dry_run_leaves_the_newest_session_the_newest(place: Place, serve) -> None:
    """To look what a revert of an old session would do is no work in it: `last` means the same."""
    serve(Text("Hello.", times=0))
    for _ in range(2):
        assert place.run("chat", "hello").returncode == 0
    rows = place.data("sessions", "list")["sessions"]
    newest, oldest = (row["id"] for row in rows)
    assert "nothing to revert" in place.run("sessions", "revert", oldest, "--dry-run").stdout
    again = place.data("sessions", "list")["sessions"]
    assert [row["id"] for row in again] == [newest, oldest]


def test_a_crash_does_not_make_anothers_edit_the_commands(place: Place, serve, gate: Gate) -> None:
    """What another session wrote while the command of the dead one ran stays that session's."""
    (place.folder / "a.txt").write_text("old\n")
    other_write = {"tool": "write", "arguments": {"path": "b.txt", "content": "of the other\n"}}
    first = Tools([shell(f"echo new > a.txt; {gate.command}")])
    serve(first, Tools([other_write]), Text("Done."), top=ALLOW)
    chat = place.at_work(gate, "first")
    other = place.chat()
    other.completes("second")
    chat.kill()
    assert other.close() == 0
    wait_gone(place.processes())
    done = place.data("sessions", "revert", chat.session)
    assert done["restored"] == ["a.txt"]
    assert (place.folder / "b.txt").read_text() == "of the other\n"


def test_a_message_is_reverted_until_all_its_files_are_back(
    place: Place, serve, gate: Gate
) -> None:
    """`/revert undo PATH` brings one file back; the others are still as they were before it."""
    serve(Tools([shell(f"echo x > x.txt; echo y > y.txt; {gate.command}")]), top=ALLOW)
    chat = place.at_work(gate, "first")
    chat.causes("stop and revert", "reverted")
    marks = list[bool]()
    for command in ("/queue", "/revert undo x.txt", "/revert undo"):
        chat.ask(command)
        (item,) = chat.ask("/queue")["data"]["items"]
        marks.append(item.get("reverted", False))
    assert marks == [True, True, False]
