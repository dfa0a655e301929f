"""The program is killed at its writes, one after the other; after each a restart is looked at.

Each kind of call is killed at least once; of the rest a sample is taken, or all with
STEERSMAN_SWEEP=all in the environment (some minutes).
"""

import random
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from blackbox.life import COMMIT, IS_WHOLE, STRACE, Life, Point, calls_of
from blackbox.talk import EFFECTS, STEER, TEXTS, WARM_UP
from support.driver import Event

EXTRA = 0
"""Points, by chance, beside those that are always taken."""
QUIET = {"session_started", "recovered", "requeued", "notice", "queue", "accepted", "result"}
FINAL = {"done", "failed", "withdrawn", "steered"}

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.timeout(3600 if IS_WHOLE else 300),
    pytest.mark.skipif(STRACE is None, reason="needs strace to stop at a write"),
]


def effects_of(life: Life) -> list[str]:
    """Return the names that tools left."""
    file = life.place.folder / EFFECTS
    return file.read_text().split() if file.exists() else []


def asked_of(life: Life) -> Counter[str]:
    """Count the model's requests by the last line of the newest message."""
    return Counter(request.prompt.splitlines()[-1] for request in life.server.requests)


def all_points(fresh: Counter[tuple[str, str]], used: Counter[tuple[str, str]]) -> list[Point]:
    """Return every call in the opening of a new home, and in the conversation in a used one."""
    return [
        Point(is_fresh, *kind, number)
        for is_fresh, counts in ((True, fresh), (False, used))
        for kind, count in counts.items()
        for number in range(1, count + 1)
    ]


def chosen(fresh: Counter[tuple[str, str]], used: Counter[tuple[str, str]]) -> list[Point]:
    """Choose a point of each kind, all syncs of the conversation, and some more; or all."""
    points = all_points(fresh, used)
    if IS_WHOLE:
        return points
    chance = random.Random(11)
    picked = {Point(False, *COMMIT, number) for number in range(WARM_UP + 1, used[COMMIT] + 1)}
    kinds = {kind: (True, count) for kind, count in fresh.items()}
    kinds |= {kind: (False, count) for kind, count in used.items()}
    for kind, (is_fresh, count) in sorted(kinds.items()):
        picked.add(Point(is_fresh, *kind, chance.randint(1, count)))
    return sorted(picked | set(chance.sample(sorted(set(points) - picked), EXTRA)))


def check(life: Life, printed: Sequence[Event]) -> None:
    """Restart: everything printed is there, and nothing runs until told; then all ends, once each."""
    asked, effects = asked_of(life), effects_of(life)
    chat = life.place.chat("--continue", "--yes")
    if chat.ended_without("session_started"):
        assert (chat.ended(), chat.events) == (1, [])
        assert all(event["seq"] is None for event in printed)
        return
    items: dict[str, Any] = chat.ask("/inspect")["data"]["queue"].get("items", {})
    check_stored(items, printed)
    waits = [name for name, one in items.items() if one.get("state", "pending") not in FINAL]
    recovered = [item for event in chat.seen("recovered") for item in event["items"]]
    assert [row["id"] for row in recovered] == waits
    states = [row["state"] for row in recovered]
    assert states == sorted(states)
    assert states.count("interrupted") <= 1
    assert set(chat.kinds()) <= QUIET
    assert (asked_of(life), effects_of(life)) == (asked, effects)
    life.gate.open()
    assert chat.ask("/queue resume")["ok"]
    assert chat.close() == 0
    ended = [event["item"] for event in chat.seen("turn_ended", status="completed")]
    taken = [event["id"] for event in chat.seen("steered")]
    assert ended == [name for name in waits if name not in taken]
    check_pending([row for row in recovered if row["state"] == "pending"], asked, printed)
    assert set(Counter(effects_of(life)).values()) <= {1}
    if any(item["said"]["text"] == STEER for item in items.values()):
        context = [message["content"] for message in life.server.requests[-1].body["messages"]]
        assert sum(STEER in str(content) for content in context) == 1


def check_pending(
    pending: Sequence[dict[str, Any]], asked: Counter[str], printed: Sequence[Event]
) -> None:
    """Nothing of a message that waits was told, and a model was asked about the first alone, at most.

    Its request may be under way while the start of its turn is written: then it is asked again.
    """
    told = {event["item"] for event in printed if event["type"] == "turn_started"}
    assert not told & {row["id"] for row in pending}
    early = [row["text"] for row in pending if row["text"] in asked]
    assert early in ([], [row["text"] for row in pending[:1]])
    assert all(asked[text] == 1 for text in early)


def check_stored(items: dict[str, Any], printed: Sequence[Event]) -> None:
    """Every acknowledged item exists, under its number, at the reported checkpoint."""
    assert {item["said"]["text"] for item in items.values()} <= TEXTS
    for one in printed:
        if one["type"] == "accepted" and one["as"] != "command":
            item = items[one["id"]]
            assert (item["said"]["text"], item["number"]) == (one["text"], one["number"])
    ended = {row["item"]: "done" for row in printed if row["type"] == "turn_ended"}
    ended |= {row["id"]: "steered" for row in printed if row["type"] == "steered"}
    assert {name: items[name]["state"] for name in ended} == ended


def make_used(root: Path) -> Path:
    """Make the state folder of a home where a program came and went."""
    with Life(root) as life:
        assert life.place.chat().close() == 0
    return life.state


def kill_at(point: Point, root: Path, used: Path) -> tuple[bool, str]:
    """Kill the program at a point, and look at a restart: whether it was killed, and what is wrong."""
    with Life(root, None if point.is_fresh else used) as life:
        chat = life.run_until(point)
        try:
            check(life, chat.events)
        except AssertionError as wrong:
            story = "".join(f"\n{chat.story()}" for chat in life.place.chats)
            return True, f"{point}: {wrong}{story}"
        return chat.process.returncode != 0, ""


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state folder of a used home."""
    return make_used(tmp_path_factory.mktemp("used") / "root")


def test_killed_at_any_write_nothing_is_lost_and_nothing_runs(tmp_path: Path, used: Path) -> None:
    """At each point: acknowledged is stored, in order; nothing runs until told; all ends once."""
    with Life(tmp_path / "fresh") as fresh_life, Life(tmp_path / "used", used) as used_life:
        points = chosen(calls_of(fresh_life), calls_of(used_life))
    with ThreadPoolExecutor(3) as pool:
        numbered = enumerate(points)
        results = list(pool.map(lambda at: kill_at(at[1], tmp_path / str(at[0]), used), numbered))
    wrong = [text for _, text in results if text]
    assert not wrong, f"{len(wrong)} of {len(points)}:\n" + "\n".join(wrong[:5])
    killed = sum(was_killed for was_killed, _ in results)
    print(f"{killed} kills at {len(points)} points")
    assert killed >= 0.8 * len(points)
