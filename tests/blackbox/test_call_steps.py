"""Steps that are Python functions: what they return, how they fail, how they are stopped and resumed."""

from typing import Any

import pytest
from support.driver import Gate, Place, wait_gone

TASKS = """
import asyncio, ctypes, os, subprocess, sys, threading, time
from pathlib import Path
import beside

def size(path, factor=1):
    print("prints")
    os.write(1, b"writes\\n")
    subprocess.run(["echo", "starts"])
    assert os.environ["WHO"] == "ann", os.environ
    assert "OPENAI_API_KEY" not in os.environ
    return {"path": path, "size": Path(path).stat().st_size * factor, "unit": beside.UNIT}

async def later(n):
    await asyncio.sleep(0)
    return n + 1

class Nested:
    @staticmethod
    def inner():
        return None

def wrong(text):
    raise ValueError(f"no {text}\\nat all")

def leaves(code):
    sys.exit(code)

def vanishes(code):
    os._exit(code)

def killed():
    os.kill(os.getpid(), 9)

def a_set():
    return {1}

def not_a_number():
    return float("nan")

def much():
    return "x" * 3_000_000

def waits(marks):
    subprocess.Popen(["setsid", "sleep", "600"])
    with open("ran", "a") as ran:
        ran.write("x")
    with open(f"{marks}.here", "w") as here:
        here.write(f"{os.getpid()}\\n")
    time.sleep(600)

LIST = [1]
"""
FILE = """
[workflow]
name = "calls"
[[step]]
id = "work"
call = "tasks:{call}"
with = {given}
{more}
"""


def job(place: Place, call: str, given: str = "{}", more: str = "") -> str:
    """Write a workflow of one step in a folder with its module, and return its path."""
    folder = place.folder.with_name("flows")
    folder.mkdir(exist_ok=True)
    (folder / "tasks.py").write_text(TASKS)
    (folder / "beside.py").write_text('UNIT = "bytes"\n')
    (folder / "job.toml").write_text(FILE.format(call=call, given=given, more=more))
    return str(folder / "job.toml")


def outcome(place: Place, *arguments: str) -> tuple[str, dict[str, Any]]:
    """Run a workflow to its end, and return its status and what is stored of its step."""
    chat = place.job(*arguments)
    ended = chat.wait("run_ended")
    chat.ended()
    return ended["status"], place.stored(chat.session)["run"]["steps"]["work"]


def test_what_it_returns_is_the_output(place: Place) -> None:
    """Arguments are filled in with their types, what it prints is kept apart, others use the result."""
    more = """
for_each = ["a", "b"]
env = { WHO = "{{ vars.who }}" }
schema = { type = "object", required = ["path", "size"] }
[[step]]
id = "tell"
needs = ["work"]
run = ["echo", "{{ steps.work.output[1].size }}", "{{ steps.work.output[0].unit }}",
    "{{ steps.work.items[0].stderr }}"]
[[step]]
id = "async"
call = "tasks:later"
with = { n = "{{ vars.factor }}" }
needs = ["work"]
[workflow.vars]
who = "ann"
factor = 3
"""
    given = '{ path = "{{ item }}.txt", factor = "{{ vars.factor }}" }'
    file = job(place, "size", given, more)
    (place.folder / "a.txt").write_text("1")
    (place.folder / "b.txt").write_text("22")
    place.environ["OPENAI_API_KEY"] = "sk-4711"
    checked = place.run("workflow", "check", file)
    assert (checked.returncode, checked.stdout) == (0, "ok: 3 steps\n"), checked.stderr
    chat = place.job(file)
    assert chat.wait("run_ended")["status"] == "succeeded", chat.story()
    assert chat.ended() == 0
    steps = place.stored(chat.session)["run"]["steps"]
    assert "6 bytes prints\nwrites\nstarts" in str(steps["tell"]).replace("\\n", "\n")
    assert "'4'" in str(steps["async"])
    assert not list(place.folder.with_name("flows").glob("__pycache__"))


FAILURES = {
    "absent": ("absent:f", "{}", "there is no module `absent`, in "),
    "absent in a package": ("beside.more:f", "{}", "there is no module `beside.more`, in "),
    "no function": (
        "tasks:sise",
        "{}",
        "module `tasks` has no function `sise`; did you mean `size`?",
    ),
    "no function at all": ("tasks:LIST", "{}", "`tasks:LIST` is no function but of the type list"),
    "arguments": (
        "tasks:size",
        "{ paht = 1 }",
        "`tasks:size` does not take what `with` gives: missing a required argument: 'path'",
    ),
    "raises": ("tasks:wrong", '{ text = "way" }', "ValueError: no way at all (tasks.py:24)"),
    "import raises": ("broken:f", "{}", "ZeroDivisionError: division by zero (broken.py:1)"),
    "import of an absent one": ("needy:f", "{}", "No module named 'gone' (needy.py:1)"),
    "syntax": ("garbled:f", "{}", "SyntaxError: "),
    "exit": (
        "tasks:leaves",
        "{ code = 0 }",
        "`tasks:leaves` called sys.exit(0) instead of returning",
    ),
    "vanishes": (
        "tasks:vanishes",
        "{ code = 0 }",
        "its process ended with exit code 0 before the function returned",
    ),
    "killed": ("tasks:killed", "{}", "its process ended by signal 9 before the function returned"),
    "a set": ("tasks:a_set", "{}", "`tasks:a_set` returned what JSON does not have: "),
    "nan": ("tasks:not_a_number", "{}", "`tasks:not_a_number` returned what JSON does not have: "),
    "much": ("tasks:much", "{}", "its output exceeds `tools.output_limit`"),
}


def test_each_failure_is_a_sentence(place: Place) -> None:
    """A function that is not there, raises, ends the process, or returns no JSON, says so."""
    file = job(place, "size")
    folder = place.folder.with_name("flows")
    (folder / "broken.py").write_text("1 / 0\n")
    (folder / "needy.py").write_text("import gone\n")
    (folder / "garbled.py").write_text("def (:\n")
    steps = "".join(
        f'[[step]]\nid = "s{number}"\ncall = "{call}"\nwith = {given}\n'
        for number, (call, given, _) in enumerate(FAILURES.values())
    )
    (folder / "job.toml").write_text(f"[workflow]\nname = 'all'\n{steps}")
    assert place.run("workflow", "check", file).returncode == 0  # nothing is imported by a check
    chat = place.job(file)
    assert chat.wait("run_ended")["status"] == "failed"
    assert chat.ended() == 1
    stored = place.stored(chat.session)["run"]["steps"]
    told = {name: str(stored[f"s{number}"]) for number, name in enumerate(FAILURES)}
    wrong = {
        name: told[name]
        for name, (_, _, reason) in FAILURES.items()
        if reason not in told[name].replace("\\\\", "").replace("\\'", "'")
    }
    assert not wrong


def test_a_time_limit_ends_it_with_all_that_it_started(place: Place) -> None:
    """As of any command: at the limit its processes are dead, and the step has failed."""
    file = job(place, "waits", '{ marks = "gate" }', "timeout = 0.8")
    (place.folder / "gate.here").touch()
    status, step = outcome(place, file)
    assert status == "failed"
    assert "it took longer than 0.8 s" in str(step)
    assert not [process for process in place.processes().values() if "sleep" in process]


@pytest.mark.parametrize("is_killed", [False, True])
def test_stopped_or_killed_in_the_middle(place: Place, gate: Gate, is_killed: bool) -> None:
    """Nothing is left. After kill -9 its outcome is unknown: it does not run again until told."""
    file = job(place, "waits", '{ marks = "gate" }')
    chat = place.job(file)
    gate.wait()
    if is_killed:
        chat.kill()
        assert not wait_gone(place.processes())
        refused = place.run("run", "--resume", "last", "--json")
        assert refused.returncode == 1
        assert "work" in refused.stderr
        assert "--again" in refused.stderr
    else:
        assert chat.causes("stop", "run_ended")["status"] == "interrupted"
        assert chat.ended() == 130
    assert not [process for process in place.processes().values() if "sleep" in process]
    assert (place.folder / "ran").read_text() == "x"
