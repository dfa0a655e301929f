"""`make bench-survival`: its plan is fixed, its judge finds what is planted, its page is not old."""

import dataclasses
import datetime
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import Load


def trajectory(act: str = "kill", when: str = "tool") -> dict[str, Any]:
    """Return what is seen of a case in which nothing was lost: killed at 100, resumed at 110."""

    def asked(when: float, marks: list[str], did: list[str]) -> dict[str, Any]:
        return {"time": when, "marks": marks, "did": did}

    return {
        "case": {"kind": {"act": act, "when": when}},
        "resumes": True,
        "marks": {"m1": 2, "m3": 1},
        "fault": 100.0,
        "runs": [
            {"code": -9, "how": "ended", "begun": 90.0, "ended": 100.1, "output": ""},
            {"code": 0, "how": "ended", "begun": 110.0, "ended": 115.0, "output": "", "asked": 0.5},
        ],
        "requests": [
            asked(98.0, ["m1"], []),
            asked(99.0, ["m1"], ["m1.1"]),
            asked(110.5, ["m1", "m3"], ["m1.1"]),
            asked(112.0, ["m1", "m3"], ["m1.1", "m1.2"]),
            asked(113.0, ["m1", "m3"], ["m1.1", "m1.2", "m3.1"]),
        ],
        "log": [
            ["begin", "m1.1", 1, 98.1],
            ["end", "m1.1", 1, 98.2],
            ["begin", "m1.2", 2, 99.5],
            ["begin", "m1.2", 3, 111.0],
            ["end", "m1.2", 3, 111.1],
            ["begin", "m3.1", 4, 112.1],
            ["end", "m3.1", 4, 112.2],
        ],
        "left": [],
        "files": {"m1.1": "right", "m1.2": "right", "m3.1": "right"},
        "sessions": ["s1"],
        "waiting": [],
    }


def dropped(seen: dict[str, Any]) -> None:
    """Take a message out of what the model was asked after the resumption."""
    seen["requests"][-1]["marks"] = ["m3"]


def dropped_acknowledged(seen: dict[str, Any]) -> None:
    """Have a message acknowledged that came to no request."""
    seen["case"]["kind"]["when"] = "queued"
    seen["marks"] = {"m1": 2, "m2": 1, "m3": 1}


def doubled(seen: dict[str, Any]) -> None:
    """Have a message twice."""
    seen["requests"][-1]["marks"] = ["m1", "m1", "m3"]


def reordered(seen: dict[str, Any]) -> None:
    """Have the newest message first."""
    seen["requests"][-1]["marks"] = ["m3", "m1"]


def dropped_accepted(seen: dict[str, Any]) -> None:
    """Let a second program end well, and nobody hear of its message."""
    seen["case"]["kind"]["act"] = "second"
    seen["marks"] = {"m1": 2, "m2": 1, "m3": 1}
    seen["runs"][0]["code"] = 1
    seen["runs"].insert(1, {**seen["runs"][1], "begun": 100.0, "ended": 101.0})
    seen["files"]["m2.1"] = "right"
    seen["log"].append(["end", "m2.1", 5, 100.5])


def run_twice(seen: dict[str, Any]) -> None:
    """Begin a step again that was done before the kill."""
    seen["log"].append(["begin", "m1.1", 9, 111.5])


def run_at_once(seen: dict[str, Any]) -> None:
    """Let the orphan of a step end beside its repetition."""
    seen["log"].append(["end", "m1.2", 2, 111.2])


def process_left(seen: dict[str, Any]) -> None:
    """Leave a daemon."""
    seen["left"] = ["sh step.sh m1.2 daemon-child"]


def file_missing(seen: dict[str, Any]) -> None:
    """Report a step as done that was not."""
    seen["files"]["m1.1"] = "missing"


def said_too_early(seen: dict[str, Any]) -> None:
    """End well after a fault of the server, before the work is done."""
    seen["case"]["kind"]["act"] = "half"
    seen["runs"][0]["code"] = 0


def tool_went_on(seen: dict[str, Any]) -> None:
    """Let a step tick after the kill."""
    seen["log"].append(["tick", "m1.2", 2, 106.0])


def model_was_asked(seen: dict[str, Any]) -> None:
    """Let something ask the model after the kill."""
    seen["requests"].append({"time": 107.0, "marks": ["m1"], "did": ["m1.1"]})
    seen["requests"].sort(key=lambda asked: asked["time"])


def began_more(seen: dict[str, Any]) -> None:
    """Begin a step long after SIGTERM, and end later."""
    seen["case"]["kind"]["act"] = "term"
    seen["runs"][0]["ended"] = 108.0
    seen["log"].append(["begin", "m1.2", 5, 106.0])


def spun(seen: dict[str, Any]) -> None:
    """Never end after the disk had failed."""
    seen["case"]["kind"]["act"] = "failing"
    seen["runs"][0]["how"] = "had to be ended"


def looped(seen: dict[str, Any]) -> None:
    """Ask the model again and again after a jump of the clock, until it says that it is done."""
    seen["case"]["kind"]["act"] = "clock"
    seen["requests"][-1:] = 60 * [{**seen["requests"][-1], "did": ["m1.1"]}]
    seen["files"]["m3.1"] = "missing"


def never_ended(seen: dict[str, Any]) -> None:
    """Ignore SIGTERM."""
    seen["case"]["kind"]["act"] = "term"
    seen["runs"][0]["how"] = "had to be ended"


def not_resumed(seen: dict[str, Any]) -> None:
    """Resume without asking the model."""
    seen["requests"] = seen["requests"][:2]


def not_listed(seen: dict[str, Any]) -> None:
    """List no session."""
    seen["sessions"] = []


@pytest.mark.parametrize(
    ("plant", "figure"),
    [
        (dropped, "lost"),
        (dropped_acknowledged, "lost"),
        (dropped_accepted, "lost"),
        (doubled, "doubled"),
        (reordered, "reordered"),
        (run_twice, "twice"),
        (run_at_once, "twice"),
        (process_left, "left"),
        (file_missing, "files"),
        (said_too_early, "files"),
        (tool_went_on, "went_on"),
        (model_was_asked, "went_on"),
        (began_more, "went_on"),
        (spun, "went_on"),
        (looped, "went_on"),
        (never_ended, "went_on"),
        (not_resumed, "unresumable"),
        (not_listed, "unresumable"),
    ],
)
def test_the_judge_finds_a_planted_loss(
    load: Load, plant: Callable[[dict[str, Any]], None], figure: str
) -> None:
    """It counts once what is planted, names it, and counts nothing else."""
    verdict = load("verdict")
    seen = trajectory()
    plant(seen)
    found = verdict.judge(seen)
    counted = {name: getattr(found, name) for name in verdict.FIGURES if getattr(found, name)}
    assert counted == {figure: 1}
    assert len(found.reasons) == 1


@pytest.mark.parametrize("seen", [{"met": 0}, {"met": 3, "grown": ["home/journal"]}])
def test_a_disk_that_did_not_fail_for_an_agent_counts_nothing(
    load: Load, seen: dict[str, Any]
) -> None:
    """No call met the fault, or the conversation grew: the library does not reach that program."""
    assert not load("verdict").judge({**trajectory("full"), **seen}).was_tried


def test_the_judge_counts_no_more_than_there_is(load: Load) -> None:
    """Clean cases: a step that was cut off began again, a message waits, one cannot be resumed."""
    judge = load("verdict").judge
    found = judge(trajectory())
    assert (found.is_clean, found.seconds) == (True, 0.5)
    waits = trajectory()
    dropped_acknowledged(waits)
    waits["waiting"] = ["m2"]
    assert judge(waits).is_clean
    waits["waiting"], waits["requests"][-1]["marks"] = [], ["m1", "m3", "m2"]
    assert judge(waits).is_clean
    once = {**trajectory(), "resumes": False, "sessions": None}
    once["runs"], once["requests"], once["log"] = (
        once["runs"][:1],
        once["requests"][:2],
        once["log"][:3],
    )
    assert judge(once).is_clean
    assert not judge({**trajectory(), "fault": 0.0}).was_tried


def test_the_plan_is_the_same_again(load: Load) -> None:
    """A case depends on its numbers alone, a round tries each kind, and later kinds change no number."""
    plan = load("plan")
    numbers = plan.numbers(2)
    cases = [plan.draw(1, number) for number in numbers]
    assert [plan.draw(1, number) for number in reversed(numbers)] == cases[::-1]
    assert {plan.kind_of(number) for number in plan.numbers(1)} == {*plan.KINDS}
    assert cases != [plan.draw(2, number) for number in numbers]
    case = plan.draw(1, 7)
    assert (case.kind.name, case.steps, case.step) == ("kill the group in a tool", 3, 3)
    case = plan.draw(1, plan.LATER + 1)
    assert (case.kind.name, case.steps, case.step) == ("disk is full in a stream", 3, 1)


def test_kept_trials_are_of_the_kinds_of_their_numbers(load: Load) -> None:
    """What was drawn when a trial was made is drawn today."""
    results, plan = load("results"), load("plan")
    for line in results.read(results.TRIALS):
        kept = line["seen"]["case"]
        drawn = dataclasses.asdict(plan.draw(line["seed"], line["number"]))
        assert {**drawn, **kept} == drawn


def test_the_model_is_careful_and_sees_to_the_rest(load: Load) -> None:
    """It looks before it repeats a call without a result, and asks for what is missing."""
    scripted, asked_of = load("scripted"), load("peer_server").Asked
    called = {"function": {"name": "bash", "arguments": '{"command": "sh step.sh m1.2 slow"}'}}
    messages = [
        {"role": "user", "content": scripted.prompt("m1", 2)},
        {"role": "tool", "content": "did[m1.1]"},
        {"role": "assistant", "tool_calls": [called]},
        {"role": "user", "content": scripted.prompt("m3", 1)},
    ]
    tool = {"function": {"name": "bash", "parameters": {"properties": {"command": {}}}}}
    body = {"messages": messages, "tools": [tool]}
    asked = asked_of("/v1/chat/completions", body, json.dumps(body).encode(), 0.0)
    heard = scripted.heard_in(asked)
    assert (heard.marks, heard.did, heard.called) == (["m1", "m3"], ["m1.1"], ["m1.2"])
    with scripted.ScriptedServer() as server:
        assert server.answer(asked).arguments["command"] == "sh step.sh m1.2 look"
    heard.did += ["m1.2"]
    assert scripted.next_step(heard) == "m3.1"
    heard.did += ["m3.1"]
    assert scripted.next_step(heard) == scripted.FINISHED


def test_steersman_survives_a_kill(load: Load) -> None:
    """A whole trial: the fault meets it, all witnesses speak, and the verdict is made of that."""
    agents, trial = load("agents"), load("trial")
    seen = trial.try_case(agents.AGENTS["steersman"](), load("plan").draw(1, 3))
    verdict = load("verdict").judge(seen)
    assert (verdict.was_tried, verdict.reasons) == (True, [])
    assert [run["code"] for run in seen["runs"]] == [-9, 0]
    assert seen["sessions"]


def test_an_agent_heeds_what_its_runner_ignores(load: Load) -> None:
    """A campaign in the background has SIGINT ignored, and what it starts would never end by one."""
    number = signal.SIGINT
    before = signal.signal(number, signal.SIG_IGN)
    try:
        load("trial").heed_signals()
        code = "import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    finally:
        signal.signal(number, before)
    assert ran.stdout == "False\n"


def test_the_page_is_that_of_its_data_and_not_old(load: Load) -> None:
    """Nobody has changed docs/survival.md by hand, and its versions are of the last thirty days."""
    results = load("results")
    data = json.loads(results.KEPT.read_text("utf-8"))
    assert results.page(data) == results.PAGE.read_text("utf-8")
    age = datetime.datetime.now(datetime.UTC).date() - datetime.date.fromisoformat(data["date"])
    assert age.days <= results.MOST_DAYS, "run `make bench-survival ARGS=--write`"


def test_results_go_on_and_are_judged_anew(load: Load, tmp_path: Path) -> None:
    """A line that a crash cut off is left out; the report names cases, and what was seen only once."""
    results = load("results")
    seen = trajectory()
    doubled(seen)
    for number in (3, 4):
        line = {"revision": 1, "agent": "pi", "version": "1", "seed": 1, "number": number}
        results.append(
            tmp_path / "r.jsonl", {**line, "seen": seen if number == 4 else trajectory()}
        )
    results.append(tmp_path / "r.jsonl", {**line, "seen": trajectory()})
    with (tmp_path / "r.jsonl").open("a") as file:
        file.write('{"revision": 1, "age')
    lines = results.read(tmp_path / "r.jsonl")
    assert len(lines) == 3
    figures, kinds = results.tables([results.summary("pi", "", lines)])
    assert "| messages doubled | 1 (4?) |" in figures
    assert "| kill when a message is acknowledged | messages doubled |" in kinds
