"""A second person's terminal on a session that runs elsewhere: at the prompt, and in plain lines."""

import json
from io import StringIO

import pytest
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Size
from screen.test_terminal import is_lit
from stories.agent import call, says, uses
from stories.stage import Stage
from stories.terminal import Terminal
from support.driver import FROM_ELSEWHERE, WAIT, Gate
from support.model_server import Text
from support.patience import seconds

from steersman.cli.screen.appearance import Appearance
from steersman.cli.screen.input_line import InputLine, MessageSender
from steersman.cli.screen.screen import Screen
from steersman.cli.screen.terminal import Canvas, SteadyOutput
from steersman.gateway.attached import AttachedHost, AttachedSession
from steersman.gateway.events.contract import QueueItem
from steersman.gateway.launch_options import LaunchOptions
from steersman.gateway.reach import SessionReach
from steersman.journal.sqlite import SqliteStore
from steersman.workflows.config import load
from steersman.workflows.home_place import URL
from steersman.workflows.paths import Paths

WISH = "count the stars"


@pytest.fixture
def gate(stage: Stage) -> Gate:
    """Where the first person's command stops."""
    return Gate(stage.place.folder)


def attached(stage: Stage, *arguments: str) -> Terminal:
    """Attach in a terminal of its own, as ann."""
    terminal = stage.starts("attach", *arguments, "--user", "ann")
    terminal.shows("/exit leaves it running.")
    return terminal


@pytest.mark.nightly
def test_who_is_attached_goes_on_with_the_program(stage: Stage) -> None:
    """It opens another session in the place of this one; a line that was begun stays."""
    stage.agent.when("which colour?", says("Red."))
    stage.agent.when("which colour has the sky?", says("Blue."))
    stage.agent.when("and the sea?", says("Green."))
    chat = stage.place.chat()
    chat.completes("which colour?")
    ann = attached(stage)
    ann.types("and the sea?", end="")
    ann.has("> and the sea?")
    assert chat.ask("/edit-last which colour has the sky?")["ok"]
    now = chat.wait("session_started")["session"]
    ann.shows(f"Its program goes on in session {now}, and so do you.")
    ann.shows("user: which colour has the sky?")
    ann.shows("Blue.")
    ann.has("> and the sea?")
    ann.presses("\r")
    assert chat.wait("accepted", text="and the sea?")["user"] == "ann"
    ann.shows("Green.")
    ann.presses("/exit\r")
    ann.shows(f"Session {now} continues in its own program.")
    assert chat.close() == 0


@pytest.mark.nightly
@pytest.mark.parametrize("face", ["prompt", "plain"])
def test_attach_takes_part_and_leaves(stage: Stage, gate: Gate, face: str) -> None:
    """It shows what runs, speaks by name, follows to the end of the turn, and leaves it running.

    At the end the owner gets SIGKILL: whoever is attached then is told, and leaves in good order.
    """
    agent = stage.agent
    agent.when("hello", says("Good day."))
    agent.when(WISH, uses(call("shell", command="echo seven"), call("shell", command=gate.command)))
    agent.when("only the bright ones", says("There are four."))
    agent.when("and the faint ones", says("Too many."))
    chat = stage.place.chat("--yes")
    chat.completes("hello")
    chat.send(WISH)
    gate.wait()
    newer = stage.place.chat()
    newer.completes("hello")
    assert newer.close() == 0

    ann = attached(stage, "last", *(["--plain"] if face == "plain" else []))
    assert any(f"Attached to session {chat.session}" in row for row in ann.rows)
    assert any("user: hello" in row for row in ann.rows)
    assert any("echo seven" in row for row in ann.rows)
    assert any(f"{newer.session} is newer, but no program has it open" in row for row in ann.rows)
    if face == "prompt":
        ann.has_bar("working")
        ann.types("only the bright ones", end="\x1b\r")
    else:
        ann.presses("/steer only the bright ones\r")
    accepted = chat.wait("accepted", **{"as": "steer"})
    assert (accepted["text"], accepted["user"]) == ("only the bright ones", "ann")
    chat.send({"text": "and the faint ones", "as": "queue"})
    ann.shows("user: and the faint ones")
    gate.open()
    ann.shows("There are four.")
    ann.shows("Too many.")

    ann.presses("/exit\r")
    ann.shows(f"Session {chat.session} continues in its own program.")
    assert ann.ended() == 0
    bob = attached(stage)
    bob.has_bar("assistant · main · idle")
    bob.presses("\x04")
    bob.shows("continues in its own program.")
    assert bob.ended() == 0
    assert chat.process.poll() is None
    eve = attached(stage)
    chat.kill()
    eve.shows("has ended without closing it.")
    eve.shows(f"steersman chat --resume {chat.session}")
    assert eve.ended() == 1
    assert b"\x1b[?25l" not in bytes(eve.sent).rpartition(b"\x1b[?25h")[2]


def test_a_terminal_that_only_prints_ends_with_the_program(stage: Stage, gate: Gate) -> None:
    """Also amid a turn, where a Ctrl-C would stop that."""
    stage.agent.when(WISH, uses(call("shell", command=gate.command)))
    chat = stage.place.at_work(gate, WISH)
    ann = stage.starts("attach", "--plain", chat.session)
    ann.shows(WISH)
    chat.kill()
    ann.shows("has ended without closing it.")
    assert ann.ended() == 1
    assert not any("Ctrl-C again leaves" in row for row in ann.rows)


def test_one_message_is_edited_by_one(stage: Stage, gate: Gate) -> None:
    """Up in a second terminal says so, and takes nothing from the history; a command changes nothing."""
    stage.agent.when(WISH, uses(call("shell", command=gate.command)), says("Seven."))
    stage.agent.when("and the moon, please", says("One."))
    chat = stage.place.at_work(gate, WISH)
    ann, bob = attached(stage), attached(stage)
    chat.send({"text": "and the moon", "as": "queue"})
    ann.has("#2 waits")
    bob.has("#2 waits")
    ann.presses("\x1b[A")
    ann.has("Editing #2")
    bob.presses("\x1b[A")
    bob.shows("#2 is being edited already.")
    bob.has_line("")
    bob.types("/queue edit 2 and the sun")
    bob.shows("#2 is being edited")
    ann.types(", please")
    ann.waits(lambda: not any("Editing" in row for row in ann.screen.display))
    gate.open()
    bob.shows("One.")


def test_what_others_delete_and_stop_is_told(stage: Stage, gate: Gate) -> None:
    """Else a message, or the work, is gone without a word."""
    stage.agent.when(WISH, uses(call("shell", command=gate.command)), says("Seven."))
    owner = stage.opens("--yes").terminal
    owner.types(WISH)
    gate.wait()
    ann = attached(stage)
    owner.types("and the moon", end="\t")
    ann.has("#2 waits")
    ann.types("/queue pop")
    owner.shows("Elsewhere: Removed: #2")
    ann.types("and the sun", end="\t")
    owner.has("#3 waits")
    owner.types("/queue clear")
    ann.shows("Elsewhere: Removed: 1 waiting.")
    ann.presses("\x1b")
    owner.shows("Elsewhere: Stopping turn t1.")


def test_attach_takes_part_from_another_machine(
    stage: Stage, gate: Gate, postgres_url: str
) -> None:
    """It follows the journal and speaks through the mailbox, where it cannot reach the owner's socket.

    When the owner dies, what is said waits in the mailbox, and the terminal says so and stays.
    """
    stage.place.environ[URL] = postgres_url
    agent = stage.agent
    agent.when(WISH, uses(call("shell", command=gate.command)))
    agent.when("only the bright ones", says("There are **four**."))
    agent.when("and the faint ones", says("Too many."))
    chat = stage.place.at_work(gate, WISH)
    ann = stage.starts("attach", chat.session, "--user", "ann", program=FROM_ELSEWHERE)
    ann.shows("Each answer comes here when it is whole")
    ann.has_bar("working")
    ann.types("only the bright ones", end="\x1b\r")
    accepted = chat.wait("accepted", **{"as": "steer"})
    assert (accepted["text"], accepted["user"]) == ("only the bright ones", "ann")
    chat.send({"text": "and the faint ones", "as": "queue"})
    ann.shows("and the faint ones")
    gate.open()
    ann.shows("There are four.")
    ann.shows("Too many.")
    ann.has_bar("idle")
    ann.says("/usage", "tokens in")
    chat.kill()
    ann.says("are you there?", "The message is kept, and is read then.")
    ann.presses("/exit\r")
    assert ann.ended() == 0


@pytest.mark.parametrize("new", ["the new words", ""], ids=["reworded", "emptied"])
def test_an_edit_that_is_refused_comes_back(stage: Stage, gate: Gate, new: str) -> None:
    """What was typed is in the input line again if the owner has no such message any more.

    The status is that of a moment before; an emptied line has nothing to give back.
    """
    stage.agent.when(WISH, uses(call("shell", command=gate.command)))
    chat = stage.place.at_work(gate, WISH)
    paths = Paths.of({"STEERSMAN_HOME": str(stage.place.home)})
    store = SqliteStore.open(paths.state, read_only=True)
    owner = store.owner(chat.session)
    assert owner is not None
    host = AttachedHost(paths, load(paths, stage.place.folder, {}), LaunchOptions(), [])
    session = AttachedSession(host, SessionReach(paths, {}, store), owner, chat.session, "ann")
    session.start()
    canvas = Canvas(SteadyOutput(StringIO(), lambda: Size(24, 80), "xterm"), lambda: False)
    screen, buffer, sender = Screen(canvas, Appearance()), Buffer(), MessageSender()
    line = InputLine(buffer, screen, session, sender, lambda: None, lambda work: work())
    item = QueueItem(id="m9", number=9, state="pending", text="gone", progress=None, user="")
    screen.status.queue.items = [item]
    assert line.take_back()
    buffer.text = new
    line.send()
    sender.close(seconds(WAIT))
    session.leave()
    store.close()
    assert buffer.text == new
    assert chat.wait("result", name="queue")["text"] == "No queued item #9"


def test_an_attached_terminal_can_answer(stage: Stage) -> None:
    """An attached terminal shows the open question and the goal, and can answer.

    What was typed there is in the input history, also what was not sent.
    """
    agent = stage.agent
    agent.when("write", uses(call("write", path="a.txt", content="b")), says("It is written."))
    agent.when("judge", Text('{"verdict": "done", "reason": "it is there"}'))
    chat = stage.place.chat()
    question = chat.causes("/goal write a file", "question")
    ann = attached(stage)
    ann.has_bar("goal")
    ann.shows("a.txt")
    ann.types(f"/answer {question['id']} allow")
    chat.wait("answered", id=question["id"], choice="allow")
    ann.shows("It is written.")
    ann.types("half a thought", end="")
    ann.shows("half a thought")
    chat.kill()
    assert ann.ended() == 1
    assert any("Not sent (Up brings it back): half a thought" in row for row in ann.rows)
    typed = (stage.place.home / "state" / "history.jsonl").read_text().splitlines()
    assert list(map(json.loads, typed)) == [f"/answer {question['id']} allow", "half a thought"]


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
"""


def test_a_steps_question_is_answered_from_elsewhere(stage: Stage) -> None:
    """With its options, as where the run was started; what is none of them is refused, and kept."""
    (stage.place.folder / "ask.toml").write_text(CHOOSING)
    run = stage.place.job("ask.toml")
    run.wait("question")
    ann = stage.starts("attach", "last", "--user", "ann")
    ann.shows("sure asks: Go on?")
    ann.has("1 yes · 2 no · 3 later · Enter answers with what is typed")
    ann.types("perhaps")
    ann.has("A step asks something, so the message was not accepted. Your text: perhaps")
    ann.has("> perhaps")
    ann.presses("\x15")  # Ctrl-U
    ann.waits(lambda: "> perhaps" not in "".join(ann.screen.display) and is_lit(ann))
    ann.presses("3")
    ann.has("sure: later")
    ann.has("name asks: Which name?")
    ann.waits(lambda: is_lit(ann))
    ann.types("the red one")
    ann.has("name: the red one")
    run.wait("run_ended", status="succeeded")
    assert run.close() == 0
    ann.shows(f"Saved. `steersman sessions show {run.session}` prints it.")
