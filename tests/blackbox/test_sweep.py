"""The program is killed at its writes, one after the other: what it printed is in the journal."""

import json
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from blackbox.driver import COMMAND, Event, Place

STRACE = shutil.which("strace")
POINTS = 14
CONFIG = """
[models.main]
provider = "scripted"
script = "{script}"
[agents.assistant]
model = "main"
"""
SCRIPT = """
[[answer]]
match = "first"
text = "I run it."
[[answer.tool_calls]]
tool = "shell"
arguments = { command = "echo ran >> effects" }
[[answer]]
match = "first"
text = "Done."
[[answer]]
match = "second"
text = "Second."
"""
SAID = '{"text": "first", "client_id": "a"}\n{"text": "second", "as": "queue", "client_id": "b"}\n'
FINAL = {"done", "failed", "withdrawn", "steered"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(STRACE is None, reason="needs strace to stop at a write"),
]


def prepare(root: Path) -> Place:
    """Make a place with a scripted model."""
    place = Place(root)
    script = root / "script.toml"
    script.write_text(SCRIPT)
    (place.home / "config.toml").write_text(CONFIG.format(script=script))
    return place


def events_of(output: str) -> list[Event]:
    """Read the whole lines of an output that may end anywhere."""
    return [json.loads(line) for line in output.split("\n")[:-1]]


def run_until_write(place: Place, number: int) -> tuple[list[Event], bool]:
    """Run a short conversation; kill it as a thread begins its write of this number.

    Returns what it printed, and whether it was killed.
    """
    calls = "pwrite64,fdatasync,ftruncate"
    command = [STRACE or "", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={calls}"]
    command += ["-e", f"inject={calls}:signal=KILL:when={number}", *COMMAND]
    ran = subprocess.run(
        [*command, "chat", "--json", "--yes"],
        cwd=place.folder,
        env=place.environ,
        input=SAID,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return events_of(ran.stdout), ran.returncode != 0


def check(place: Place, printed: list[Event]) -> None:
    """Everything that was printed is stored; the session comes back and nothing runs by itself."""
    numbers = [one["seq"] for one in printed if one["seq"] is not None]
    if not numbers and place.run("inspect", "last").returncode != 0:
        assert place.run("chat", "--continue", "--json").returncode == 1
        return
    before = place.stored()
    known = before["queue"]["items"]
    accepted = {one["id"] for one in printed if one["type"] == "accepted"}
    assert accepted <= known.keys()
    assert before["seq"] >= max(numbers, default=0)
    assert numbers == sorted(numbers)
    done = {one["item"] for one in printed if one["type"] == "turn_ended"}
    assert all(known[name]["state"] == "done" for name in done)
    ran = place.run("chat", "--continue", "--json")
    assert ran.returncode == 0, ran.stderr
    later = events_of(ran.stdout)
    kinds = {one["type"] for one in later}
    assert kinds <= {"session_started", "recovered", "notice", "queue", "session_suspended"}
    waiting = {
        one["id"] for event in later if event["type"] == "recovered" for one in event["items"]
    }
    ended = {name for name, one in known.items() if one.get("state", "pending") in FINAL}
    assert waiting == known.keys() - ended
    effects = place.folder / "effects"
    assert not effects.exists() or effects.read_text() == "ran\n"


@pytest.mark.parametrize("is_fresh", [True, False], ids=["fresh home", "used home"])
def test_killed_at_a_write_nothing_acknowledged_is_lost(tmp_path: Path, is_fresh: bool) -> None:
    """At each sampled write: acknowledged is stored, states are legal, a call ran at most once."""

    def one(number: int) -> bool:
        place = prepare(tmp_path / str(number))
        try:
            if not is_fresh:
                assert place.run("chat", "second").returncode == 0
            printed, was_killed = run_until_write(place, number)
            check(place, printed)
        finally:
            place.close()
        return was_killed

    step = 4 if is_fresh else 3
    with ThreadPoolExecutor(3) as pool:
        killed = list(pool.map(one, range(1, 1 + step * POINTS, step)))
    assert sum(killed) >= POINTS // 2
