"""The suites of `make soak`, a little of each; and that they can find something."""

import itertools
import json
import os
import signal
import subprocess
import tomllib
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from simulation.planting import planted
from soak import fuzz
from soak.__main__ import keep, main, run
from soak.chats import UNSURE, faults_of
from soak.fuzz import KINDS, Fuzzer
from soak.growth import Sample, faults, figures, grow
from soak.nodes import faults_of as faults_of_nodes
from soak.suites import SUITES, Order, Piece, Suite
from support.fleet import LoneTools
from support.irc_server import program
from support.patience import seconds
from support.postgres_server import reason_to_skip
from support.remote_items import Findings
from support.remote_items import faults_of as faults_of_items
from support.until import until

ROOT = Path(__file__).resolve().parents[2]
INPUTS = 150
FEWER = {"HTTP request": 60}
"""Inputs of kinds that take their time: half a request is waited for."""


@pytest.mark.nightly
@pytest.mark.parametrize("name", KINDS)
def test_no_input_leads_to_a_traceback(name: str, tmp_path: Path) -> None:
    """Whatever is broken in it, each is taken or refused in words; both come up."""
    fuzzer = Fuzzer(name, 1, tmp_path)
    with closing(fuzzer.run()) as answers:
        count = FEWER.get(name, INPUTS)
        assert [wrong for wrong in itertools.islice(answers, count) if wrong] == []
    assert 0 < fuzzer.accepted < count


def test_an_input_that_leads_to_an_error_is_found(tmp_path: Path) -> None:
    """The error is told with the input, and the next input is played."""

    def fail(text: str) -> None:
        raise KeyError("planted")

    with (
        planted(fuzz, "read_verdict", fail),
        closing(Fuzzer("judge's answer", 1, tmp_path).run()) as answers,
    ):
        first, second = next(answers), next(answers)
    assert first.startswith("KeyError: 'planted' after ")
    assert second.startswith("KeyError: 'planted' after ")
    assert first != second


def test_a_suite_is_played_until_it_has_what_was_ordered(tmp_path: Path) -> None:
    """Cases and faults of all pieces are added up, and a suite that fails is a fault itself."""

    def play(order: Order):
        yield Piece(2, ("one",), {"figure": 1.0})
        yield Piece(2, ("two",))
        raise RuntimeError("planted")

    suite = Suite("It holds.", "cases", 10, play)
    found = run(suite, Order(3, 1, 1, tmp_path), 0.0)
    assert (found["count"], found["wrong"], found["figures"]) == (
        4,
        ["one", "two"],
        {"figure": 1.0},
    )
    found = run(suite, Order(9, 1, 1, tmp_path), 0.0)
    assert found["wrong"] == ["one", "two", "RuntimeError: planted"]


@pytest.mark.nightly
def test_suites_end_well(capsys: pytest.CaptureFixture[str]) -> None:
    """Some seeds and some states of a disk: a line for each suite, and nothing wrong."""
    options = ["--part", "0.001", "--processes", "1", "--seed", "5"]
    assert main(["goals", "power", *options]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.endswith(", from seed 5")
    assert [line.split()[:2] for line in lines] == [["goals", "30"], ["power", "20"]]
    assert all(" 0 wrong " in line for line in lines)


def test_figures_are_kept_beside_each_other(tmp_path: Path) -> None:
    """Those of a suite replace its own; the order is that of the suites."""
    file = tmp_path / "figures.json"
    found: dict[str, Any] = {"count": 1, "cases": "turns", "wrong": ["x"], "seconds": 1.0}
    for name in ("growth", "sessions", "growth"):
        keep(file, name, found, "make soak")
    kept = json.loads(file.read_text())
    assert list(kept) == ["sessions", "growth"]
    assert (kept["growth"]["wrong"], kept["growth"]["command"]) == (1, "make soak")


@pytest.mark.nightly
def test_a_session_does_not_grow(tmp_path: Path) -> None:
    """After its first tenth it has no more threads and descriptors, and little more memory."""
    samples = list(grow(tmp_path, 100))
    assert [sample.turns for sample in samples] == [*range(0, 101, 10)]
    assert [wrong for wrong in faults(samples) if "turn" not in wrong] == []
    assert figures(samples)["journal bytes a turn, last tenth"] > 0


@pytest.mark.nightly
@pytest.mark.parametrize("platform", ["irc", "telegram"])
def test_people_talk_while_all_breaks(platform: str, tmp_path: Path) -> None:
    """Connections are cut, gateway and server are killed: each message is decided and answered once."""
    if platform == "irc" and not program("ngircd"):
        pytest.skip("ngircd is not installed")
    found = run(SUITES[platform], Order(20, 3, 1, tmp_path), 0.0)
    assert (found["count"], found["wrong"]) == (20, [])
    assert found["figures"]["disruptions"] == 4


@pytest.mark.nightly
def test_nodes_run_sessions_while_all_breaks(tmp_path: Path) -> None:
    """Nodes are killed and stopped, connections and the server end: each message is decided once."""
    if why := reason_to_skip():
        pytest.skip(why)
    found = run(SUITES["nodes"], Order(40, 3, 1, tmp_path), 0.0)
    assert (found["count"], found["wrong"]) == (40, [])
    assert found["figures"]["commands run"] > 0
    assert found["figures"]["times to kill"] == 2


OWNED = [("s1", 1, "n1"), ("s1", 1, ""), ("s1", 2, "n2")]


@pytest.mark.parametrize(
    ("keys", "changes", "what"),
    [
        (["a"], OWNED, "b: lost"),
        (["a", "b", "a"], OWNED, "a: decided 2 times"),
        (["a", "b"], [*OWNED, ("s1", 2, "n3")], "epoch 2 of n3 after 2 of n2"),
        (["a", "b"], [*OWNED, ("s1", 1, "")], "epoch 1 of no node after 2 of n2"),
    ],
)
def test_a_fault_of_nodes_is_found(
    keys: list[str], changes: list[tuple[str, int, str]], what: str
) -> None:
    """A message that was lost or doubled, and an epoch that does not rise, are named."""
    assert faults_of_nodes({"s1": ["a", "b"]}, {"s1": ["a", "b"]}, OWNED) == []
    [wrong] = faults_of_nodes({"s1": ["a", "b"]}, {"s1": keys}, changes)
    assert what in wrong


def test_two_tools_of_a_session_are_found(tmp_path: Path) -> None:
    """A command finds another one of its session alive, also where only a child of that is left."""
    tools = LoneTools(tmp_path / "tools")

    def start(session: str, duration: float) -> subprocess.Popen[bytes]:
        command = ["sh", "-c", tools.command(session, duration)]
        return subprocess.Popen(command, start_new_session=True)

    with start("s1", 60.0) as first:
        try:
            until(lambda: tools.count, "that it has begun")
            assert start("s2", 0.0).wait(seconds(30)) == 0
            assert tools.doubled() == []
            first.kill()
            assert start("s1", 0.0).wait(seconds(30)) == 0
            assert [line.split()[0] for line in tools.doubled()] == ["s1"]
        finally:
            os.killpg(first.pid, signal.SIGKILL)


HEARD = ["Heard p01-r00-0001.", "Heard p01-r00-0003."]
SAID = ["p01-r00-0001", "p01-r00-0003"]


@pytest.mark.parametrize(
    ("journal", "before", "after", "what"),
    [
        ([*SAID, SAID[1]], HEARD, HEARD, "decided 2 times"),
        (SAID[::-1], HEARD, HEARD, "out of order"),
        (SAID, [*HEARD, HEARD[0]], HEARD, "answered twice"),
        (SAID, HEARD, [*HEARD, HEARD[0]], "not uncertain"),
    ],
)
def test_a_fault_of_a_gateway_is_found(
    journal: list[str], before: list[str], after: list[str], what: str
) -> None:
    """What was decided or answered twice, or not in order, is named; what was asked for is right."""
    assert faults_of([SAID], [HEARD], [HEARD], set()) == []
    assert faults_of([SAID], [[UNSURE, *HEARD]], [[UNSURE, *HEARD, HEARD[0]]], set()) == []
    assert faults_of([SAID[::-1]], [HEARD], [HEARD], {SAID[0]}) == []
    [wrong] = faults_of([journal], [before], [after], set())
    assert what in wrong


@pytest.mark.parametrize(
    ("done", "unknown", "effects", "outputs", "what"),
    [
        ("a", "", "aa", "a", "is done, and was carried out 2 times"),
        ("a", "", "", "a", "is done, and was carried out 0 times"),
        ("a", "", "a", "", "is done, and its file did not come back"),
        ("", "a", "aa", "", "is unknown, and was carried out 2 times"),
        ("", "", "a", "", "was carried out, and the journal does not know of it"),
    ],
)
def test_a_fault_of_a_remote_run_is_found(
    done: str, unknown: str, effects: str, outputs: str, what: str
) -> None:
    """An item whose state is not the case is named; a person may take one for done without its file."""
    found = Findings(set(done), set(unknown), Counter(effects), set(outputs))
    assert faults_of_items("a", found, set()) == [f"a {what}"]
    right = Findings({"a", "b"}, {"c", "d"}, Counter("abc"), {"a"})
    assert faults_of_items("abcde", right, {"b"}) == []


FLAT = [Sample(n, 1 << 24, 10, 5, 1_000 * n, 0.1 * n) for n in range(11)]


@pytest.mark.parametrize(
    ("last", "what"),
    [
        (Sample(10, 1 << 26, 10, 5, 10_000, 1.0), "memory"),
        (Sample(10, 1 << 24, 20, 5, 10_000, 1.0), "descriptors"),
        (Sample(10, 1 << 24, 10, 9, 10_000, 1.0), "threads"),
        (Sample(10, 1 << 24, 10, 5, 20_000, 1.0), "journal bytes a turn"),
        (Sample(10, 1 << 24, 10, 5, 10_000, 2.0), "milliseconds a turn"),
    ],
)
def test_growth_is_found(last: Sample, what: str) -> None:
    """What a session needs more and more of is named."""
    assert faults(FLAT) == []
    [wrong] = faults([*FLAT[:-1], last])
    assert wrong.startswith(what)


def test_every_suite_is_of_a_promise() -> None:
    """Promises name suites that there are, each suite is named, and so are the kept figures."""
    text = (ROOT / "docs" / "promises.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(text)["promise"]
    assert {suite for row in rows for suite in row["suites"]} == set(SUITES)
    assert all(row["not_covered"] and row["tests"] for row in rows)
    kept = json.loads((ROOT / "docs" / "figures.json").read_text(encoding="utf-8"))
    assert set(kept) <= set(SUITES)
