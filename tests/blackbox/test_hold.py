"""Calls that are held: a person sees each before it runs, and decides, whatever the rules say."""

from __future__ import annotations

import pytest
from support.driver import Place
from support.model_server import Hang, Text, Tools, shell

PUSH = "echo pushed >> main.txt"


def test_a_held_call_runs_with_the_arguments_of_a_person(place: Place, serve) -> None:
    """Also with `--yes`; a stop of the program and a kill -9 later the hold holds, others run."""
    server = serve(shell("true"), shell(PUSH), shell(PUSH), Text("Pushed."))
    chat = place.chat("--yes")
    assert chat.ask('/hold shell "echo push*"')["ok"]
    question = chat.causes("push it", "question")
    assert (question["kind"], question["arguments"]) == ("hold", {"command": PUSH})
    assert question["options"] == ["allow", "change", "answer", "deny"]
    assert question["rule"] == 'hold shell "echo push*"'
    chat.kill()
    assert not (place.folder / "main.txt").exists()

    chat = place.chat("--continue", "--yes")
    again = chat.causes("/queue resume", "question")
    assert again["kind"] == "hold"
    chat.send({"answer": again["id"], "choice": "always"})
    assert "`always` is no answer" in chat.wait("error")["text"]
    chat.send({"answer": again["id"], "choice": "allow", "arguments": {"command": 5}})
    assert "makes no sense" in chat.wait("error")["text"]
    chat.send({"answer": again["id"], "arguments": {"command": PUSH.replace("main", "branch")}})
    assert chat.wait("answered")["choice"] == "change"
    chat.wait("turn_ended", status="completed")
    assert chat.close() == 0

    assert (place.folder / "branch.txt").read_text() == "pushed\n"
    assert not (place.folder / "main.txt").exists()
    told = str(server.requests[-1].body["messages"])
    assert "A person has changed the arguments of this call to" in told
    assert "branch.txt" in told


def test_a_person_answers_in_place_of_a_held_call(place: Place, serve) -> None:
    """The model gets the words, and nothing runs; what is denied is denied, also with other arguments."""
    rules = '[permissions]\nrules = [{ tool = "shell", match = "rm *", do = "deny" }]\n'
    hold = '[[hold]]\ntool = "shell"\n'
    server = serve(
        shell("cat build.log"), shell("rm -r x"), shell("touch x"), Text("Well."), rest=hold + rules
    )
    chat = place.chat("--yes")
    first = chat.causes("look", "question")
    assert first["source"] == "the configuration"
    chat.send({"answer": first["id"], "choice": "answer", "reason": "it says: 3 errors"})
    second = chat.wait("question")
    assert second["arguments"] == {"command": "touch x"}  # what is denied is not asked about
    assert not chat.ask(f'/answer {second["id"]} change {{"command": "rm -r y"}}')["ok"]
    assert not chat.ask(f"/answer {second['id']} change rm -r y")["ok"]
    assert chat.ask(f"/answer {second['id']} deny not now")["ok"]
    chat.wait("turn_ended", status="completed")
    assert chat.close() == 0

    told = str(server.requests[-1].body["messages"])
    assert "it says: 3 errors" in told
    assert "a rule forbids it" in told
    assert not (place.folder / "x").exists()


@pytest.mark.checks_data("/hold", "/holds", "sessions hold", "sessions holds")
def test_holds_are_shown_and_ended(place: Place, serve) -> None:
    """Those of the configuration stay; a call that nobody can be asked about does not run."""
    hold = '[[hold]]\ntool = "write"\n'
    write = Tools([{"tool": "write", "arguments": {"path": "made", "content": "x"}}])
    serve(write, Text("No."), shell("touch made"), Text("Yes."), rest=hold)
    alone = place.run("chat", "--yes", "go")
    assert (alone.returncode, (place.folder / "made").exists()) == (4, False)

    chat = place.chat("--yes")
    assert chat.ask("/hold shell")["ok"]
    assert not chat.ask("/hold chisel")["ok"]
    rows = chat.ask("/holds")["data"]["holds"]
    assert [(row["tool"], row["match"]) for row in rows] == [("write", "*"), ("shell", "*")]
    assert chat.ask("/hold off")["ok"]
    chat.completes("go on")
    assert chat.close() == 0
    assert (place.folder / "made").exists()
    assert place.data("sessions", "hold", "last", "edit", "src/*")["match"] == "src/*"
    shown = place.data("sessions", "holds", "last")["holds"]
    assert [row["tool"] for row in shown] == ["write", "edit"]


MANY = """
[workflow]
name = "many"
parallel = 4
[[step]]
id = "list"
run = ["seq", "1", "COUNT"]
output = "lines"
[[step]]
id = "work"
needs = ["list"]
for_each = "steps.list.output"
parallel = 4
continue_on_error = true
idempotent = true
run = ["touch", "did-{{ item }}"]
"""


@pytest.mark.parametrize("count", [12, pytest.param(1000, marks=pytest.mark.nightly)])
def test_the_work_of_a_step_is_held(place: Place, count: int) -> None:
    """Exactly what the rows name waits, over kill -9 too; it runs, is skipped, or fails."""
    held = [3, 7, count]
    rows = "".join(f'[[hold]]\ntool = "step"\nmatch = "work-{number}"\n' for number in held)
    (place.home / "config.toml").write_text(rows)
    (place.folder / "many.toml").write_text(MANY.replace("COUNT", str(count)))
    run = place.job("many.toml")
    asked = {run.wait("question")["arguments"]["text"] for _ in held}
    assert asked == {f"work-{number} is held. What now?" for number in held}
    run.kill()
    assert not [number for number in held if (place.folder / f"did-{number}").exists()]

    again = place.job("--resume", run.session)
    questions = [again.wait("question") for _ in held]
    answers = {question["arguments"]["text"].split()[0]: question["id"] for question in questions}
    assert questions[0]["options"] == ["run", "skip", "fail"]
    for number, choice in zip(held, ("run", "skip", "fail"), strict=True):
        again.send({"answer": answers[f"work-{number}"], "choice": choice})
    again.wait("run_ended", status="succeeded")
    assert again.close() == 0
    did = {int(path.name.removeprefix("did-")) for path in place.folder.glob("did-*")}
    assert did == set(range(1, count + 1)) - {7, count}


def test_what_a_person_let_begin_is_not_held_again(place: Place, serve) -> None:
    """The agent of a step goes on after kill -9, and nobody is asked about it a second time."""
    hold = '[[hold]]\ntool = "step"\nmatch = "one"\n'
    server = serve(Hang(), Text("There are 42."), rest=hold)
    step = '[[step]]\nid = "one"\nagent = "assistant"\nprompt = "count the stars"\n'
    (place.folder / "one.toml").write_text(f'[workflow]\nname = "one"\n{step}')
    run = place.job("one.toml")
    run.send({"answer": run.wait("question")["id"], "choice": "run"})
    server.wait_requests(1)
    run.kill()
    again = place.job("--resume", run.session)
    again.wait("run_ended", status="succeeded")
    assert not again.seen("question")
    assert again.close() == 0


def test_held_work_that_nobody_can_be_asked_about_fails(place: Place) -> None:
    """It does not begin, and the exit code says that a question was open."""
    (place.home / "config.toml").write_text('[[hold]]\ntool = "step"\nmatch = "one"\n')
    (place.folder / "one.toml").write_text(
        '[workflow]\nname = "one"\n[[step]]\nid = "one"\nrun = ["touch", "did"]\n'
    )
    ran = place.run("run", "one.toml")
    assert (ran.returncode, (place.folder / "did").exists()) == (4, False)
    assert "it is held, and no person can be asked" in ran.stdout + ran.stderr
