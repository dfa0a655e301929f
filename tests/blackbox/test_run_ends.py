"""What becomes of runs that were interrupted or failed, as other commands see them."""

import json
import re
import signal
from typing import Any

import pytest
from support.driver import Gate, Place, finish
from support.model_server import Text, shell
from support.patience import seconds

STOPPED = """
[workflow]
name = "halting"
[[step]]
id = "wait"
run = ["sh", "-c", '''{command}''']
"""
SHORT = '[[step]]\nid = "one"\nrun = ["true"]\n'
BROKEN = """
[workflow]
name = "broken"
required = ["cause"]
[[step]]
id = "each"
for_each = ["a", "b", "c"]
env = { ITEM = "{{ item }}", CAUSE = "{{ vars.cause }}", OWN = ".steersman/kept-{{ run.id }}" }
shell = '''
mkdir -p "$OWN" && touch "$OWN/$ITEM"
echo "$ITEM" >> log
[ "$ITEM" = a ] || [ -e "$CAUSE" ] || { echo "no $CAUSE" >&2; exit 3; }
'''
[[step]]
id = "after"
needs = ["each"]
run = ["sh", "-c", "echo after >> log"]
[[step]]
id = "end"
finally = true
run = ["sh", "-c", "echo end >> log"]
"""
SLOW = """
[workflow]
name = "slow"
timeout = 1.0
[[step]]
id = "slow"
for_each = [0, 30]
run = ["sleep", "{{ item }}"]
[[step]]
id = "end"
finally = true
run = ["sh", "-c", "echo end >> log"]
"""
OUTER = """
[workflow]
name = "outer"
output = "{{ steps.below.output }}"
[[step]]
id = "below"
workflow = "inner.toml"
"""
INNER = """
[workflow]
name = "inner"
output = "{{ steps.speak.output }}"
[agents.poet]
system = "You are the poet of the inner file."
[[step]]
id = "speak"
agent = "poet"
prompt = "speak"
"""


def state(place: Place) -> str:
    """Return how the newest session is, as the list says."""
    newest = place.data("sessions", "list")["sessions"][0]
    return str(newest["result"] or newest["state"])


@pytest.mark.nightly
def test_an_interrupted_run_is_named_with_its_own_command(place: Place, gate: Gate) -> None:
    """A chat says how the run goes on and does not take it up itself; so does the list."""
    (place.folder / "halting.toml").write_text(STOPPED.format(command=gate.command))
    chat = place.job("halting.toml")
    gate.wait()
    assert chat.signal(signal.SIGINT) == 130
    name = chat.session
    way = f"`steersman run --resume {name}`"

    assert state(place) == "interrupted"
    listed = place.run("sessions", "list")
    assert (listed.returncode, way in listed.stdout + listed.stderr) == (0, True)
    for session in (name, "last"):
        refused = place.run("chat", "--resume", session)
        assert refused.returncode == 2
        assert f"is a run of the workflow `halting`, not a chat\n  {way}" in refused.stderr
    beside = place.chat()
    beside.wait("notice", text=lambda text: way in text and "workflow halting" in text)
    beside.send(f"/queue restore {name}")
    beside.wait_text("not a chat")


@pytest.mark.nightly
def test_a_failed_run_continues_when_its_cause_is_repaired(place: Place) -> None:
    """What is done stays done; what failed, what it blocked and the end are done again."""
    file = place.folder / "broken.toml"
    file.write_text(BROKEN)
    first = place.run("run", "broken.toml", "--var", "cause=the cause")
    assert first.returncode == 1
    assert state(place) == "failed"
    assert "Changed 1 file: log\n" in first.stdout  # and not what the run keeps for itself
    assert re.search(r"`steersman run --resume \w+` repeats the failed work", first.stdout)
    assert place.run("run", "--resume", "last").returncode == 1
    (place.folder / "the cause").touch()
    file.write_text(f"{BROKEN}# mended\n")
    again = place.run("run", "--resume", "last", "--json")
    events = [json.loads(line) for line in again.stdout.splitlines()]
    assert again.returncode == 0, again.stdout + again.stderr
    assert next(event for event in events if event["type"] == "run_started")["resumed"]
    assert any("was changed since" in event.get("text", "") for event in events)
    done = (place.folder / "log").read_text().split()
    assert done == ["a", "b", "end", "b", "end", "b", "c", "after", "end"]

    assert state(place) == "succeeded"
    over = place.run("run", "--resume", "last")
    assert (over.returncode, "has succeeded already" in over.stderr) == (1, True)
    assert "broken.toml '--var=cause=the cause'` starts a new run" in over.stderr
    assert place.run("sessions", "revert", "last").returncode == 0
    assert not (place.folder / "log").exists()  # all of it, over all its turns


def test_a_signal_stops_a_run_as_the_key_does(place: Place, at_keyboard, gate: Gate) -> None:
    """A terminal sends one for Ctrl-C while a line is printed above the prompt."""
    (place.folder / "halting.toml").write_text(STOPPED.format(command=gate.command))
    terminal = at_keyboard("run", "halting.toml")
    gate.wait()
    terminal.wait("Esc stops")
    terminal.process.send_signal(signal.SIGINT)
    terminal.wait("Stopping; Ctrl-C again ends it at once.")
    terminal.wait("continues where it stopped.")
    assert terminal.process.wait(seconds(30)) == 130


@pytest.mark.nightly
def test_a_run_that_was_taken_back_does_not_go_on(place: Place) -> None:
    """What was done is not done any more, so nothing is left out silently."""
    (place.folder / "broken.toml").write_text(BROKEN)
    assert place.run("run", "broken.toml", "--var", "cause=x").returncode == 1
    for told in (
        "Reverted 3 files.",
        "There is nothing to revert.",
    ):  # again, which changes nothing
        assert place.run("sessions", "revert", "last").stdout.startswith(told)
        refused = place.run("run", "--resume", "last")
        assert (refused.returncode, "was reverted" in refused.stderr) == (1, True)
    listed = place.run("sessions", "list")
    assert ("reverted" in listed.stdout, "--resume" in listed.stderr) == (True, False)
    name = place.stored()["id"]
    chat = place.run("chat", "--plain", "/queue")
    assert "Run " not in chat.stdout + chat.stderr
    assert place.run("sessions", "revert", name, "undo").returncode == 0
    (place.folder / "x").touch()
    assert place.run("run", "--resume", name).returncode == 0


def test_a_run_that_died_is_offered_until_it_is_taken_back(place: Place, gate: Gate) -> None:
    """Its program had no time to say how it ended; the lists say the same as a resume does."""
    halting = STOPPED.format(command=f"echo x > made; {gate.command}")
    (place.folder / "halting.toml").write_text(halting)
    job = place.start("run", "halting.toml")
    gate.wait()
    job.kill()
    finish(job)
    assert "run --resume" in place.run("sessions", "list").stderr
    assert place.run("sessions", "revert", "last").returncode == 0
    listed = place.run("sessions", "list")
    assert ("reverted" in listed.stdout, "run --resume" in listed.stderr) == (True, False)
    over = place.run("run", "--resume", "last")
    assert (over.returncode, "was reverted and cannot be resumed" in over.stderr) == (1, True)
    assert re.search(r"`steersman sessions revert \w+ undo` gives it its changes back", over.stderr)


def test_a_run_that_died_is_named_where_a_newer_one_is_over(place: Place, gate: Gate) -> None:
    """`--resume last` means the newest; it starts no older one unasked, and says that there is one."""
    (place.folder / "halting.toml").write_text(STOPPED.format(command=gate.command))
    (place.folder / "short.toml").write_text(SHORT)
    job = place.start("run", "halting.toml")
    gate.wait()
    job.kill()
    finish(job)
    died = place.stored()["id"]
    assert place.run("run", "short.toml").returncode == 0
    over = place.run("run", "--resume", "last")
    assert (over.returncode, "has succeeded already" in over.stderr) == (1, True)
    assert f"`steersman run --resume {died}` continues one that did not end" in over.stderr


@pytest.mark.nightly
def test_a_run_that_a_signal_ends_says_how_to_go_on(place: Place, gate: Gate) -> None:
    """A service manager sends one: its log has the id."""
    (place.folder / "halting.toml").write_text(STOPPED.format(command=gate.command))
    job = place.start("run", "halting.toml")
    gate.wait()
    job.send_signal(signal.SIGTERM)
    ended = finish(job)
    assert ended.returncode == 128 + signal.SIGTERM
    assert ended.stderr.endswith(f"Continue with: steersman run --resume {place.stored()['id']}\n")


def test_a_run_is_taken_back_while_it_works(place: Place, gate: Gate) -> None:
    """The revert is told to whoever asked for it; the run's own program says no more that it goes on."""
    halting = STOPPED.format(command=f"echo x > made; {gate.command}")
    (place.folder / "halting.toml").write_text(halting)
    job = place.start("run", "halting.toml")
    gate.wait()
    done = place.run("sessions", "revert", "last")
    assert (done.returncode, done.stdout.splitlines()[0][:15]) == (0, "Reverted 1 file"), (
        done.stderr
    )
    assert not (place.folder / "made").exists()
    said = finish(job).stdout
    assert "Its changes were reverted: it cannot be resumed." in said
    assert "--resume" not in said
    assert "Changed" not in said


def test_agents_of_an_included_file_are_known(place: Place, serve: Any) -> None:
    """A workflow that is a step of another has the agents that its own file declares."""
    server = serve(Text("A word."))
    (place.folder / "outer.toml").write_text(OUTER)
    (place.folder / "inner.toml").write_text(INNER)
    chat = place.job("outer.toml")
    ended = chat.wait("run_ended", session=chat.session)
    assert (ended["status"], ended["output"]) == ("succeeded", "A word.")
    assert "poet of the inner file" in str(server.requests[0].body)


def test_a_run_that_takes_too_long_says_so(place: Place) -> None:
    """What ran at that moment failed because of the time, the rest waits, and the end is done."""
    (place.folder / "slow.toml").write_text(SLOW)
    first = place.run("run", "slow.toml")
    assert first.returncode == 1
    assert "slow failed (1 of 2), end done" in first.stdout
    assert "first item `30`: the run took longer than its `timeout`" in first.stdout
    assert (place.folder / "log").read_text() == "end\n"


def test_the_time_limit_of_a_run_counts_on_when_it_is_resumed(place: Place, gate: Gate) -> None:
    """Ten minutes of work are ten minutes, in however many parts; trying it again grants them anew."""
    limited = STOPPED.replace('"halting"', '"halting"\ntimeout = 600.0')
    text = limited.format(command=gate.command) + SLOW[SLOW.rindex("[[step]]") :]
    (place.folder / "halting.toml").write_text(text)
    chat = place.job("halting.toml")
    gate.wait()
    assert chat.signal(signal.SIGINT) == 130
    earlier = "UPDATE entries SET time = time - 900 WHERE data LIKE '%turn_started%'"
    place.alter(earlier, "DELETE FROM snapshots")
    late = place.run("run", "--resume", "last")
    assert (late.returncode, "took longer than its `timeout`" in late.stdout) == (1, True)
    assert (place.folder / "log").read_text() == "end\n"
    gate.open()
    assert place.run("run", "--resume", "last").returncode == 0


def test_a_question_that_nobody_can_answer_has_an_exit_code(place: Place) -> None:
    """A step that asks without a person, and without a default, fails the run as what it is."""
    (place.folder / "ask.toml").write_text(
        '[workflow]\nname = "sure"\n'
        '[[step]]\nid = "sure"\nask = { text = "Go on?", options = ["yes", "no"] }\n'
    )
    ran = place.run("run", "ask.toml")
    assert (ran.returncode, "no person can be asked" in ran.stdout + ran.stderr) == (4, True)


def test_a_call_that_nobody_could_allow_is_no_success(place: Place, serve: Any) -> None:
    """The agent speaks as if it were done; the run says what was refused, and ends with 4."""
    serve(shell("make deploy"), Text("Deployed."))
    step = '[[step]]\nid = "one"\nprompt = "deploy it"\n'
    (place.folder / "one.toml").write_text(f'[workflow]\nname = "one"\n{step}')
    ran = place.run("run", "one.toml")
    assert (ran.returncode, "one done" in ran.stdout) == (4, True), ran.stderr
    assert "refused: shell make deploy: it needs permission" in ran.stderr


def test_a_step_behind_a_blocked_one_says_so(place: Place) -> None:
    """Only the step that failed is said to have failed."""
    (place.folder / "chain.toml").write_text(
        '[workflow]\nname = "chain"\n'
        '[[step]]\nid = "a"\nrun = ["false"]\n'
        '[[step]]\nid = "b"\nneeds = ["a"]\nrun = ["true"]\n'
        '[[step]]\nid = "c"\nneeds = ["b"]\nrun = ["true"]\n'
    )
    ran = place.run("run", "chain.toml")
    assert "not run: b: step `a` failed" in ran.stderr
    assert "not run: c: step `b` was blocked" in ran.stderr


CHOOSING = """
[workflow]
name = "choosing"
[[step]]
id = "sure"
ask = { text = "Go on?", options = ["yes", "no", "later"] }
[[step]]
id = "name"
needs = ["sure"]
ask = { text = "Which name?", options = [] }
[[step]]
id = "after"
needs = ["name"]
run = ["touch", "went-on"]
"""


def test_a_typed_line_that_is_no_option_is_refused_and_no_message(
    place: Place, at_keyboard
) -> None:
    """A typo leaves the question open; a command passes; an interrupt word stops at free text, too."""
    (place.folder / "ask.toml").write_text(CHOOSING)
    terminal = at_keyboard("run", "ask.toml")
    terminal.wait("3. later")
    terminal.type("yess\r")
    terminal.wait("A step asks something, so the message was not accepted. Your text: yess")
    terminal.type("yes\r")
    terminal.wait("name asks")
    terminal.type("just stop\r")
    assert terminal.process.wait(seconds(30)) == 130
    assert not (place.folder / "went-on").exists()
    listed = place.data("queue", "list", "--session", "last")
    assert [item["text"] for item in listed["items"]] == ["run choosing"]


def test_what_is_said_at_a_question_is_refused_and_decides_nothing(place: Place) -> None:
    """Who may only speak could answer else; the refusal names the options and the ways."""
    (place.folder / "ask.toml").write_text(CHOOSING)
    run = place.job("ask.toml")
    sure = run.wait("question")
    waits = f"waits for an answer to question {sure['id']}"
    assert waits in place.run("why", run.session, "1").stdout
    assert waits in place.run("inspect", run.session).stdout
    for text in ("yess", "yes", "I don't know"):
        refused = run.causes(text, "rejected", text=text)
        assert refused["reason"] == "question_open"
        assert "with one of: yes, no, later; `/queue add TEXT`" in refused["hint"]
    assert run.causes(f"/answer {sure['id']} later", "result", ok=True)["text"] == "sure: later."
    name = run.wait_any("question", step="name")  # before the result or after it
    run.send(f"/answer {name['id']} just stop")
    assert run.wait("result", ok=True)["text"] == "name: just stop."
    run.wait("run_ended", status="succeeded")
    assert run.close() == 0


def test_a_message_left_in_a_succeeded_run_names_the_way_that_works(place: Place) -> None:
    """No agent took it and none will: the list and `why` say how it is deleted, and that does it."""
    (place.folder / "ask.toml").write_text(CHOOSING)
    run = place.job("ask.toml")
    sure = run.wait("question")
    run.causes("/queue add for nobody", "result", ok=True)
    name = run.causes(f"/answer {sure['id']} yes", "question")
    run.causes(f"/answer {name['id']} it", "run_ended", status="succeeded")
    assert run.close() == 0
    hint = f"`steersman queue discard {run.session}`"
    assert hint in place.run("queue", "list", "--session", run.session).stdout
    assert hint in place.run("why", run.session, "#2").stdout
    assert place.run("queue", "discard", run.session).returncode == 0
    assert "for nobody" not in place.run("queue", "list", "--session", run.session).stdout


def test_who_joins_a_run_at_a_question_sees_it_and_answers_by_number(place: Place) -> None:
    """The second terminal shows it with its options; `q1` is the first that is open."""
    (place.folder / "ask.toml").write_text(CHOOSING)
    run = place.job("ask.toml")
    asked = run.wait("question")
    joined = place.attach(run.session)
    shown = joined.wait("question")
    assert (shown["id"], shown["options"]) == (asked["id"], ["yes", "no", "later"])
    wrong = place.run("sessions", "answer", run.session, "q7", "yes")
    assert f"Open: {asked['id']}." in wrong.stdout + wrong.stderr
    assert place.run("sessions", "answer", run.session, "q1", "2").returncode == 0
    assert run.wait("question")["step"] == "name"


def test_a_number_answers_after_a_typo_where_a_server_runs_too(
    place: Place, served, at_keyboard
) -> None:
    """A refused line leaves the question to the next one."""
    served()
    (place.folder / "ask.toml").write_text(CHOOSING)
    terminal = at_keyboard("run", "ask.toml")
    terminal.wait("3. later")
    terminal.type("gren\r")
    terminal.wait("A step asks something")
    terminal.type("3\r")
    terminal.wait("name asks")


def test_a_run_refuses_what_only_an_agent_can_do(place: Place, gate: Gate) -> None:
    """A side talk with it would be the whole workflow once more, and nobody would pursue its goal."""
    work = f"echo ran >> count.txt; {gate.command}"
    step = f"run = ['sh', '-c', {json.dumps(work)}]"
    (place.folder / "once.toml").write_text(
        f"[workflow]\nname = 'once'\n[[step]]\nid = 'a'\n{step}\n"
    )
    run = place.job("once.toml")
    gate.wait()
    refused = run.causes("/smalltalk how is it going?", "rejected")
    assert (refused["reason"], "/steer TEXT" in refused["hint"]) == ("in_run", True)
    for command in ("/goal be good", "/goal next be good", "/model other"):
        assert "workflow's run" in run.causes(command, "result", ok=False)["text"]
    gate.open()
    run.wait("run_ended", status="succeeded")
    assert run.close() == 0
    assert (place.folder / "count.txt").read_text() == "ran\n"
    assert place.data("queue", "list", "--session", "last")["items"] == []
