"""The change log of a session: what it answers from memory is what its whole file says."""

import json
import random
from pathlib import Path

import pytest
from support.nightly import daily

from steersman.workspace import change_log
from steersman.workspace.change_log import ChangeLog, OpenCall, number_of
from steersman.workspace.restore_plan import PathChange


def whole(file: Path) -> list[PathChange]:
    """Read every change in force from the lines, without any short cut."""
    touches, reverted = dict[tuple[str, str], PathChange](), dict[str, set[tuple[str, str]]]()
    for text in file.read_text("ascii").split("\n") if file.exists() else ():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if line["kind"] == "ended":
            turn, call, tool, window = line["about"]
            for path, _, _, is_shared, is_unsure in line["touches"]:
                touches[call, path] = PathChange(
                    turn=turn,
                    call=call,
                    tool=tool,
                    path=path,
                    before=None,
                    after=None,
                    is_shared=is_shared,
                    is_unsure=is_unsure,
                    window=window,
                )
        elif line["kind"] == "reverted":
            reverted.setdefault(line["id"], set()).update(map(tuple, line["names"]))
        elif line["kind"] == "undone":
            left = reverted.get(line["id"], set())
            reverted[line["id"]] = {pair for pair in left if pair[1] not in line["paths"]}
    gone = set[tuple[str, str]]().union(*reverted.values())
    return [touch for name, touch in touches.items() if name not in gone]


def check(log: ChangeLog, file: Path, newest: int) -> None:
    """Compare each answer with the whole file."""
    truth = whole(file)
    assert log.touches() == truth
    for number in range(1, newest + 2):
        assert log.of([f"t{number}"]) == [one for one in truth if one.turn == f"t{number}"]
        since = [one for one in truth if number_of(one.turn) >= number]
        assert log.since(f"t{number}") == since
    some = {f"t{newest}", "t1"}
    assert log.of(some) == [one for one in truth if one.turn in some]
    last = max((number_of(one.turn) for one in truth), default=0)
    assert log.newest() == [one for one in truth if number_of(one.turn) == last]
    assert log.last() == [one for one in truth if one.call == truth[-1].call]


@pytest.mark.parametrize("seed", daily(0, 1, 2, 3, of=range(16)))
def test_memory_and_file_say_the_same(seed, tmp_path, monkeypatch) -> None:
    """Through turns, children of earlier turns, crashes, torn lines, reverts and their undoing."""
    monkeypatch.setattr(change_log, "RECENT", 6)
    dice, file, turn = random.Random(seed), tmp_path / "ledger", 1
    log, running, ended = ChangeLog(file), dict[str, OpenCall](), list[str]()
    for number in range(1, 120):
        action = dice.choice(("turn", "begin", "begin", "end", "end", "end", "revert", "reopen"))
        if action == "turn":
            turn += 1
        elif action == "begin":
            of = f"t{dice.choice((turn, turn, turn, max(1, turn - 3)))}"
            call = OpenCall(turn=of, call=f"{of}.c{number}", tool="write", is_command=False)
            log.begin(call)
            running[call.call] = log.open[call.call]
        elif action == "end" and running:
            call = running.pop(dice.choice(list(running)))
            why = "no git" if dice.random() < 0.1 else ""
            paths = () if why else dice.sample(["a", 'b "blind": ""}', "ä\n"], dice.randint(0, 3))
            log.end(call, [call.change(path, None, None) for path in paths], why)
            ended += [call.turn] if why else []
        elif action == "revert" and (there := log.touches()):
            given_back = dice.sample(there, dice.randint(1, len(there)))
            log.revert(f"r{number}", [(one.call, one.path) for one in given_back])
            if dice.random() < 0.5:
                log.undo(f"r{number}", [given_back[0].path])
        elif action == "reopen":
            if dice.random() < 0.3:
                with open(file, "ab") as cut:
                    cut.write(b'{"kind": "begun", "about": ["t9", "t9.c1", "wri')
            log = ChangeLog(file)
            assert {call.call: call for call in log.left} == running
            assert set(log.blind) == set(ended)
            assert not log.open
            for call in log.left:
                log.open[call.call] = call
        check(log, file, turn)
    assert turn > 5


def test_a_long_log_is_not_kept_in_memory(tmp_path) -> None:
    """Of three thousand turns a log that is opened has none, and answers about a new one alone."""
    file = tmp_path / "ledger"
    log = ChangeLog(file)
    with open(file, "ab") as out:
        for number in range(1, 3_001):
            about = [f"t{number}", f"t{number}.c1", "write"]
            begun = {"kind": "begun", "about": [*about, False], "before": [], "window": number}
            row = ["a", None, None, False, False]
            ended = {"kind": "ended", "about": [*about, number], "touches": [row], "blind": ""}
            out.write(f"{json.dumps(begun)}\n{json.dumps(ended)}\n".encode())
    log = ChangeLog(file)
    reads = list[int]()
    read = log.touches
    log.touches = lambda: reads.append(1) or read()
    call = OpenCall(turn="t3001", call="t3001.c1", tool="write", is_command=False)
    log.begin(call)
    assert log.open["t3001.c1"].window == 3_001
    log.end(log.open["t3001.c1"], [])
    assert (log.of(["t3001"]), reads) == ([], [])
    assert (len(log.of(["t2999"])), reads) == (1, [1])
