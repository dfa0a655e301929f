"""Work with a real model: the smallest embedded one, and the promises that hold with it.

The weights come from the cache folder of whoever runs the tests, or are fetched into
`STEERSMAN_TEST_CACHE`; where they cannot be had, these tests are skipped with the reason.
"""

import signal
import subprocess
import sys

import pytest
from support.driver import Chat, Place, Ran
from support.weights import weights_of

pytestmark = pytest.mark.nightly

SMALL, LARGER = "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"
LONG = 120.0
"""Seconds that an answer of a small model may take on a quiet machine."""
BUG = """def mean(values):
    total = 0
    for value in values:
        total += value
    return total // len(values)
"""
TEST = (
    "import unittest\nfrom stats import mean\n\n\nclass Stats(unittest.TestCase):\n"
    "    def test_half(self):\n        self.assertEqual(mean([1, 2]), 1.5)\n"
)


def ready(place: Place, name: str, rest: str = "") -> Place:
    """Let a place use an embedded model, whose weights are linked into its cache; or skip."""
    kept = weights_of(name)
    models = place.home / "cache" / "models"
    models.mkdir(parents=True)
    (models / kept.name).hardlink_to(kept)
    text = f'[models.main]\nprovider = "local"\nmodel = "{name}"\n\n[agents.assistant]\nmodel = "main"\n'
    (place.home / "config.toml").write_text(f"{text}\n{rest}")
    return place


@pytest.fixture
def small(place: Place) -> Place:
    """A place with the smallest model."""
    return ready(place, SMALL)


def says(place: Place, text: str) -> Ran:
    """Ask once."""
    return place.run("chat", "--yes", text)


def test_a_question_about_a_file(small: Place) -> None:
    """It is answered truly, and the file stays as it is."""
    notes = small.folder / "notes.txt"
    notes.write_text("dentist on Thursday at 15:40\nbuy oat milk\n")
    ran = says(small, "what is in notes.txt?")
    assert ran.returncode == 0
    assert "Thursday" in ran.stdout
    assert "oat milk" in ran.stdout
    assert notes.read_text() == "dentist on Thursday at 15:40\nbuy oat milk\n"
    assert "No file was changed." in ran.stderr


def test_a_file_is_made_and_taken_back(small: Place) -> None:
    """What the model prints is written by the tool, in the journal, and can be reverted."""
    ran = says(small, "write a python script hello.py that prints Hello, steersman")
    hello = small.folder / "hello.py"
    printed = subprocess.run(
        (sys.executable, hello), capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip().rstrip("!.") == "Hello, steersman"
    assert "Changed: hello.py (new)." in ran.stderr
    assert small.run("sessions", "revert", "last").returncode == 0
    assert not hello.exists()


def test_a_bug_is_fixed(place: Place) -> None:
    """The larger model sees the files, writes the whole one, and its tests are run."""
    ready(place, LARGER)
    (place.folder / "stats.py").write_text(BUG)
    (place.folder / "test_stats.py").write_text(TEST)
    ran = says(place, "the tests fail (python -m unittest). please fix the bug")
    assert "`python3 -B -m unittest -q` passes" in ran.stdout
    assert (place.folder / "test_stats.py").read_text() == TEST


def begun(chat: Chat, text: str) -> None:
    """Say something, and wait for the first word of the answer."""
    chat.causes(text, "text", timeout=LONG)


def test_a_stop_ends_an_answer(small: Place) -> None:
    """The turn ends at once, and the next message is answered."""
    chat = small.chat("--yes")
    begun(chat, "count from 1 to 300 in words, one number a line")
    assert chat.causes("/stop", "turn_ended")["status"] == "interrupted"
    assert chat.causes("say hello", "turn_ended", timeout=LONG)["status"] == "completed"


def test_kill_9_amid_an_answer(small: Place) -> None:
    """The message is kept, and `/queue resume` answers it."""
    (small.folder / "notes.txt").write_text("buy oat milk\n")
    chat = small.chat("--yes")
    begun(chat, "what is in notes.txt?")
    chat.kill()
    again = small.chat("--yes", "--continue")
    assert [item["text"] for item in again.wait("recovered")["items"]] == ["what is in notes.txt?"]
    again.causes("/queue resume", "turn_ended", status="completed", timeout=LONG)
    assert "oat milk" in "".join(event["delta"] for event in again.seen("text"))


def test_a_steer_joins_the_turn(small: Place) -> None:
    """What is said while the model works is part of the request when it is asked again."""
    chat = small.chat("--yes")
    begun(chat, "write a file a.txt with the word apple")
    chat.causes("/steer and the file b.txt with the word pear", "steered", timeout=LONG)
    chat.wait("turn_ended", timeout=LONG)
    surveys = [event for event in chat.seen("tool_started") if event["tool"] == "survey"]
    assert "pear" in surveys[-1]["arguments"]["request"]


def test_an_interrupt_while_the_model_is_loaded(small: Place) -> None:
    """Ctrl-C in the first moment leaves in order, and no process."""
    chat = small.chat("--yes")
    chat.causes("what is 2 + 2?", "turn_started")
    assert chat.signal(signal.SIGINT) == 130
    assert not small.processes()


def test_a_conversation_is_summed_up_in_a_small_window(place: Place) -> None:
    """What was said first is known after the summary."""
    ready(place, SMALL)
    chat = place.chat("--yes")
    for text in ("my name is Ana and my boat is called Kestrel", "say yes", "say no"):
        chat.causes(text, "turn_ended", timeout=LONG)
    chat.causes("/compact keep the name of the boat", "compacted", timeout=LONG)


def test_tests_are_repaired_by_the_shipped_workflow(place: Place) -> None:
    """The agent's goal is reached when its gate passes and the judge, the same model, agrees."""
    ready(place, LARGER)
    (place.folder / "stats.py").write_text(BUG)
    (place.folder / "test_stats.py").write_text(TEST)
    ran = place.run("run", "--yes", "fix-tests", "--var", "test=python3 -B -m unittest -q")
    assert ran.returncode == 0, ran.stderr
    assert (place.folder / "test_stats.py").read_text() == TEST
    check = (sys.executable, "-B", "-m", "unittest", "-q")
    assert not subprocess.run(check, cwd=place.folder, capture_output=True).returncode


def test_a_goal_with_a_judge_ends(place: Place) -> None:
    """The turn that makes the file is the only one: the judge sees that it is there."""
    ready(place, LARGER)
    chat = place.chat("--yes")
    chat.send("/goal there is a file hello.py that prints Hello")
    ended = chat.wait("goal", state="achieved", timeout=LONG)
    assert ended["turns_used"] <= 2
    assert (place.folder / "hello.py").exists()
