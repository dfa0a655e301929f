"""The judge: what a trajectory says was lost, doubled, done twice, left or wrongly said; pure.

A trajectory is what `trial.Trial.run` returns. What an agent cannot do is not counted as a loss: one that
cannot be resumed is judged only by what its end left behind.
"""

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from scripted import MOST_REQUESTS

__all__ = ["FIGURES", "Verdict", "judge"]

GRACE = 3.0
"""Seconds after a fault in which what was under way may still be seen."""
_ENDS = ("kill", "term", "hup", "int", "close")
"""What an agent may end by before its work is done."""
_AROUND = ("full", "failing", "clock", "second", "close")
"""After what an agent is to end, or to go on until its work is done."""
Data = dict[str, Any]

FIGURES = {
    "lost": "messages lost",
    "doubled": "messages doubled",
    "reordered": "messages out of order",
    "twice": "tools run twice",
    "left": "processes left",
    "files": "files not as said",
    "went_on": "work that went on",
    "unresumable": "sessions not resumed",
}
"""What is counted, by the name of its field in `Verdict`, with its title in the report."""


@dataclass
class Verdict:
    """Counts of one case. `seconds` until the model was asked again; none if that was not to be.

    `was_tried`: the fault met the agent. `reasons` name each thing that is counted.
    """

    was_tried: bool = True
    lost: int = 0
    doubled: int = 0
    reordered: int = 0
    twice: int = 0
    left: int = 0
    files: int = 0
    went_on: int = 0
    unresumable: int = 0
    seconds: float | None = None
    reasons: list[str] = field(default_factory=list[str])

    @property
    def is_clean(self) -> bool:
        """Whether nothing is counted."""
        return not any(getattr(self, name) for name in FIGURES)

    def as_data(self) -> Data:
        """Return it for a JSON file."""
        return asdict(self)

    def count(self, figure: str, reason: str) -> None:
        """Count one thing."""
        setattr(self, figure, getattr(self, figure) + 1)
        self.reasons.append(f"{FIGURES[figure]}: {reason}")


def judge(seen: Data) -> Verdict:
    """Judge a trajectory."""
    is_met = seen.get("met") != 0 and not seen.get("grown")
    verdict = Verdict(was_tried=bool(seen["fault"]) and is_met)
    if not verdict.was_tried:
        return verdict
    _judge_end(seen, verdict)
    if seen["case"]["kind"]["act"] != "second":  # the model cannot know what the first one does
        _judge_tools(seen, verdict)
    _judge_files(seen, verdict)
    if seen["resumes"]:
        _judge_memory(seen, verdict)
    verdict.seconds = _recovered(seen)
    return verdict


def _loops(seen: Data) -> bool:
    """Whether the agent asked until its model gave up, which it does by saying that all is done."""
    return len(seen["requests"]) > MOST_REQUESTS


def _kills(seen: Data) -> bool:
    """Whether the agent was ended by SIGKILL, so that nothing of it could go on."""
    return seen["case"]["kind"]["act"] == "kill"


def _asked_of(seen: Data, mark: str) -> list[Data]:
    return [asked for asked in seen["requests"] if mark in asked["marks"]]


def _acknowledged(seen: Data) -> list[str]:
    """Return the messages that the agent had: its model was asked with them, or it said so itself."""
    fault = seen["fault"]
    found = [
        mark for mark in seen["marks"] if any(a["time"] <= fault for a in _asked_of(seen, mark))
    ]
    if seen["case"]["kind"]["when"] == "queued":
        found.append("m2")
    if seen["case"]["kind"]["act"] == "second" and seen["runs"][1]["code"] == 0:
        found.append("m2")
    return list(dict.fromkeys(found))


def _judge_end(seen: Data, verdict: Verdict) -> None:
    """Look at what was there after the agent had been ended."""
    kind = seen["case"]["kind"]
    for command in seen["left"]:
        verdict.count("left", command)
    if kind["act"] in _AROUND:
        hows = [run["how"] for run in seen["runs"]]
        endless = [number for number, how in enumerate(hows, 1) if how == "had to be ended"]
        for number in endless:
            verdict.count("went_on", f"run {number} had not ended after 90 s")
        if _loops(seen) and not endless:
            verdict.count("went_on", f"its model was asked more than {MOST_REQUESTS} times")
    if kind["act"] not in ("kill", "term", "int"):
        return
    first, fault = seen["runs"][0], seen["fault"]
    if first["how"] == "had to be ended":
        verdict.count("went_on", f"it had not ended 20 s after SIG{kind['act'].upper()}")
        return
    until = seen["runs"][1]["begun"] if len(seen["runs"]) > 1 else float("inf")
    ended = fault if _kills(seen) else first["ended"]
    late = [
        line
        for line in seen["log"]
        if (fault if line[0] == "begin" else ended) + GRACE < line[3] < until
    ]
    asked = [one for one in seen["requests"] if ended + GRACE < one["time"] < until]
    if late:
        word, step, _, when = late[-1]
        after = "the signal" if when < ended + GRACE else "its end"
        since = fault if when < ended + GRACE else ended
        verdict.count("went_on", f"`{word} {step}` {when - since:.1f} s after {after}")
    if asked:
        verdict.count("went_on", f"a request {asked[-1]['time'] - ended:.1f} s after its end")


def _judge_tools(seen: Data, verdict: Verdict) -> None:
    """Count each step that began again although it had been done, or twice at a time."""
    for step in sorted({line[1] for line in seen["log"]}):
        lines = [line for line in seen["log"] if line[1] == step]
        begins = [line for line in lines if line[0] == "begin"]
        ends = [line[3] for line in lines if line[0] == "end"]
        again = [line for line in begins[1:] if ends and line[3] > ends[0]]
        for line in again:
            verdict.count(
                "twice", f"{step} began again {line[3] - ends[0]:.2f} s after it was done"
            )
        if not again and len(ends) > 1:
            verdict.count("twice", f"{step} ran {len(ends)} times at once")


def _judge_files(seen: Data, verdict: Verdict) -> None:
    """Compare what is there with what the model was told, and with a run that ended well."""
    told = {step for asked in seen["requests"] for step in asked["did"]}
    for step, state in seen["files"].items():
        if step in told and state != "right":
            verdict.count("files", f"{step} was reported as done, its file is {state}")
    last = seen["runs"][-1]
    act = seen["case"]["kind"]["act"]
    was_asked_to_end = act in _ENDS
    if _loops(seen) or (len(seen["runs"]) == 1 and was_asked_to_end):
        return
    for number, mark in ((0, "m1"), (len(seen["runs"]) - 1, list(seen["marks"])[-1])):
        run = seen["runs"][number]
        if number == 0 and was_asked_to_end:
            continue
        steps = {
            step: state for step, state in seen["files"].items() if step.startswith(f"{mark}.")
        }
        done = {line[1] for line in seen["log"] if line[0] == "end" and line[3] <= run["ended"]}
        is_later = act != "second" and not done.issuperset(steps)
        if run["code"] == 0 and (is_later or "missing" in steps.values()) and run is not last:
            verdict.count("files", f"exit code 0, but {mark} was not done then")
        elif run["code"] == 0 and "missing" in steps.values():
            verdict.count("files", f"exit code 0, but {mark} was not done")


def _judge_memory(seen: Data, verdict: Verdict) -> None:
    """Look for the messages in what the model was asked last."""
    if len(seen["runs"]) < 2:
        return
    had = _acknowledged(seen)
    if seen["sessions"] == [] and had:
        verdict.count("unresumable", "it lists no session")
    resumed = _asked_of(seen, "m3")
    if not resumed:
        words = seen["runs"][-1]["output"].strip().splitlines() or [""]
        verdict.count("unresumable", f"exit code {seen['runs'][-1]['code']}: {words[-1][:120]}")
        return
    marks = Counter[str](resumed[-1]["marks"])
    for mark in seen["marks"]:
        if mark in had and not marks[mark] and mark not in seen["waiting"]:
            verdict.count("lost", f"{mark} is not in the last request, nor said to wait")
        if marks[mark] > 1:
            verdict.count("doubled", f"{mark} is in the last request {marks[mark]} times")
    order = list(dict.fromkeys(resumed[-1]["marks"]))
    if seen["case"]["kind"]["when"] == "queued" and order[-1] == "m2":
        order.pop()  # it waited, so it may come after the newer one
    if order != sorted(order):
        verdict.count("reordered", f"{', '.join(order)} is their order in the last request")


def _recovered(seen: Data) -> float | None:
    """Return how long the model was not asked: since the resumption, or since the fault."""
    act = seen["case"]["kind"]["act"]
    if act == "second":
        return None
    if len(seen["runs"]) > 1 and act in _ENDS:
        return seen["runs"][-1].get("asked")
    later = [one["time"] for one in seen["requests"] if one["time"] > seen["fault"]]
    return round(later[0] - seen["fault"], 2) if later else None
