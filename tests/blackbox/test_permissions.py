"""Questions of tool calls: asked by a rule, answered late, remembered, taken back, never in the way."""

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from support.driver import Place
from support.model_server import Text, Tools

from steersman.ports.tools.sandbox import bubblewrap

ECHO = {"tool": "shell", "arguments": {"command": "echo again"}}
OTHER = {"tool": "shell", "arguments": {"command": "echo again; touch made"}}


def said_to_model(server) -> str:
    """What the model was sent last."""
    return str(server.requests[-1].body["messages"])


def test_an_allowance_lasts_for_the_session_and_is_taken_back(place: Place, serve) -> None:
    """`always` with a pattern holds over a kill -9, covers no more than it says, and can be forgotten."""
    server = serve(
        Tools([ECHO]), Text("One."), Tools([ECHO, OTHER]), Text("Two."), Tools([ECHO]), Text("End.")
    )
    chat = place.chat()
    question = chat.causes("begin", "question")
    assert (question["rule"], question["outside"]) == ('* "*": ask', False)
    assert question["source"].endswith("config.toml")
    chat.answer(question, "always", "rm *")
    assert "`rm *` matches something else" in chat.wait("error")["text"]
    assert chat.ask(f"/answer {question['id']} always echo *")["ok"]
    chat.wait("turn_ended", status="completed")
    chat.kill()

    chat = place.chat("--continue")
    listed = chat.ask("/permissions")
    assert [(row["tool"], row["match"]) for row in listed["data"]["allowed"]] == [
        ("shell", "echo *")
    ]
    question = chat.causes("again", "question")
    assert question["arguments"] == OTHER["arguments"]
    assert question["why"] == "`echo *` allows one plain command; this line also has ;"
    answer = f"/answer {question['id']} deny because made is mine"
    assert chat.ask(answer)["ok"]
    chat.wait("turn_ended", status="completed")
    assert "the user said no: because made is mine" in said_to_model(server)
    assert chat.ask("/permissions forget 1")["ok"]
    assert chat.ask("/permissions")["data"]["allowed"] == []
    chat.causes("once more", "question")
    chat.causes("/stop", "turn_ended", status="interrupted")
    assert not chat.ask(f"/answer {question['id']} allow")["ok"]
    assert chat.close() == 0
    assert not (place.folder / "made").exists()


def test_deny_rules_hold_for_every_tool(place: Place, serve) -> None:
    """A denied `defer` or `delegate` does not run, and a search does not tell what may not be read."""
    rules = """
[permissions]
rules = [
    { tool = "defer", do = "deny" }, { tool = "delegate", do = "deny" },
    { tool = "read", match = "secrets/*", do = "deny" },
]
"""
    calls = [
        {"tool": "defer", "arguments": {"why": "busy"}},
        {"tool": "delegate", "arguments": {"task": "count"}},
        {"tool": "read", "arguments": {"path": "x/../secrets/key"}},
        {"tool": "search", "arguments": {"pattern": "sesame"}},
    ]
    server = serve(Tools(calls), Text("Done."), rest=rules)
    (place.folder / "secrets").mkdir()
    (place.folder / "secrets/key").write_text("open sesame 4711\n")
    (place.folder / "tale.txt").write_text("open sesame, he said\n")
    chat = place.chat("--yes")
    chat.completes("go")
    assert chat.close() == 0
    assert [event["status"] for event in chat.seen("tool_ended")] == ["denied"] * 3 + ["ok"]
    said = said_to_model(server)
    assert "tale.txt:1: open sesame, he said" in said
    assert "4711" not in said


def test_without_a_person_the_denial_names_the_next_step(place: Place, serve) -> None:
    """A question without a person is denied, and the person and the model get the next step."""
    server = serve(Tools([ECHO]), Text("So be it."))
    ran = place.run("chat", "send it again", stdin=subprocess.DEVNULL)
    assert ran.returncode == 4
    assert "no person can be asked; `--yes` or a rule of [permissions] allows it" in ran.stderr
    assert "no person can be asked" in said_to_model(server)


def test_a_dry_run_names_the_rule(place: Place, serve) -> None:
    """`permissions explain` says what would happen to a call, by which rule, and runs nothing."""
    rules = (
        f'{{ tool = "shell", match = "git {name}*", do = "allow" }}' for name in ("status", "grep")
    )
    serve(rest=f"[permissions]\nrules = [{', '.join(rules)}]")
    fine = place.run("permissions", "explain", "git status --short")
    assert fine.returncode == 0
    assert "shell git status --short: allow, by shell" in fine.stdout
    odd = place.run("permissions", "explain", "git grep -O./evil.sh x")
    why = "`-O./evil.sh` is not among the options that `git grep` is known to be safe with"
    assert odd.stdout.count(why) == 2
    told = place.data("permissions", "explain", "git grep -O./evil.sh x")
    assert told["why"] == f"`git grep*` does not cover it: {why}"
    tricked = place.run("permissions", "explain", "git status; rm -rf x")
    assert "allows one plain command; this line also has ;" in tricked.stdout
    assert "shell git status; rm -rf x: ask" in tricked.stdout
    back = place.run("permissions", "explain", "x", "--tool", "defer")
    assert back.stdout.endswith('defer x: allow, by defer "*": allow of built in\n')
    wrong = place.run("permissions", "explain", "x", "--tool", "fly")
    assert (wrong.returncode, "there is no tool `fly`" in wrong.stderr) == (2, True)


def test_keys_do_not_reach_tools(place: Place, serve) -> None:
    """Whatever pattern is configured, a key only goes to a command by its full name."""
    place.environ |= {"MY_API_KEY": "sk-4711", "MY_NAME": "ann", "GH_TOKEN": "ghp-4712"}
    call = {"tool": "shell", "arguments": {"command": "env"}}
    allowed = '[tools]\nenvironment = ["MY_*", "*", "GH_TOKEN"]'
    server = serve(Tools([call]), Text("Seen."), rest=allowed)
    chat = place.chat("--yes", "look around")
    chat.wait("turn_ended", status="completed")
    assert chat.close() == 0
    said = said_to_model(server)
    assert "MY_NAME=ann" in said
    assert "sk-4711" not in said
    assert "ghp-4712" in said


@pytest.mark.parametrize("tool", ["write", "read", "edit", "list", "search"])
def test_what_was_approved_is_what_is_opened(place: Place, serve, tool: str) -> None:
    """The question says where a link leads; one that leads elsewhere at the answer opens nothing."""
    for name in ("shown", "other"):
        (place.home / name).mkdir()
        (place.home / name / "x").write_text(f"{name}\n")
    (place.folder / "link").symlink_to(place.home / "shown")
    path = "link" if tool in ("list", "search") else "link/x"
    more = {
        "write": {"content": "new"},
        "edit": {"old": "o", "new": "new"},
        "search": {"pattern": "other"},
    }.get(tool, {})
    server = serve(Tools([{"tool": tool, "arguments": {"path": path, **more}}]), Text("Well."))
    chat = place.chat("go")
    question = chat.wait("question")
    assert question["outside"]
    assert question["why"] == f"it leads to `{place.home / path.replace('link', 'shown')}`"
    (place.folder / "link").unlink()
    (place.folder / "link").symlink_to(place.home / "other")
    chat.answer(question, "allow")
    ended = chat.wait("tool_ended", status="failed")
    assert "leads to" in ended["output"]
    assert "other" not in str(server.requests[-1].body["messages"][-1]).replace("home/other", "")
    chat.wait("turn_ended")
    assert chat.close() == 0
    assert [(place.home / name / "x").read_text() for name in ("shown", "other")] == [
        "shown\n",
        "other\n",
    ]


@pytest.mark.skipif(bool(bubblewrap()[1]), reason=bubblewrap()[1] or "it works")
def test_a_command_leaves_the_sandbox_by_a_question_of_its_own(place: Place, serve) -> None:
    """As shipped it writes in the folder only; the model is told, asks, and a person decides."""
    elsewhere = TemporaryDirectory(dir="/var/tmp")  # a sandbox has a `/tmp` of its own
    out = Path(elsewhere.name, "made")
    touch = {"command": f"touch inside {out}"}
    server = serve(
        *(
            Tools([{"tool": "shell", "arguments": touch | more}])
            for more in ({}, {"outside": True}, {"outside": True})
        ),
        Text("Done."),
        rest='[tools]\nsandbox = "auto"\n[permissions]\nrules = [{ tool = "shell", do = "allow" }]\n',
    )
    chat = place.chat("go")
    ended = chat.wait("tool_ended")
    assert (ended["status"], "`outside` asks to leave it" in ended["output"]) == ("failed", True)
    question = chat.wait("question")
    assert question["why"] == "it is to run outside the sandbox"
    chat.answer(question, "always")
    chat.wait("turn_ended", status="completed")
    assert out.exists()
    elsewhere.cleanup()
    assert (place.folder / "inside").exists()
    assert [len(chat.seen("question")), len(chat.seen("tool_ended"))] == [1, 3]
    assert [row["tool"] for row in chat.ask("/permissions")["data"]["allowed"]] == ["outside"]
    assert "outside" in server.requests[0].body["tools"][5]["function"]["parameters"]["properties"]


@pytest.mark.parametrize(("mode", "do"), [("all", "allow"), ("plan", "deny"), ("ask", "ask")])
def test_a_shell_explains_by_the_configured_mode(place: Place, serve, mode: str, do: str) -> None:
    """As the chat that is begun with it does."""
    serve(Text("Hi."), top=f'permission_mode = "{mode}"\n')
    told = place.data("permissions", "explain", "rm -rf x")
    assert told["do"] == do
    chat = place.chat()
    here = chat.ask("/permissions explain shell rm -rf x")["data"]
    assert {name: told[name] for name in ("do", "rule", "source")} == {
        name: here[name] for name in ("do", "rule", "source")
    }
