"""What it costs to fold a journal into a session's state, beside reading the same entries as JSON.

Python's own `json` reads them in the same run, in turn, so that a busy machine slows both alike.
Every part of the state is immutable, so each entry makes new ones: what counts is that a run of ten
thousand items costs no more for each entry than one of a hundred, nor a long conversation than a short
one. Run it as `python benchmarks/fold.py`, with the package installed.
"""

import json
import time
from collections.abc import Iterator
from typing import Any

from table import head, row

from steersman.journal import entries as e
from steersman.journal.codec import decode_entry, encode_entry
from steersman.journal.record import SessionRecord, apply
from steersman.machines import protocol as m
from steersman.machines.conversation import ChatMessage, ToolRequest, Usage

ROUNDS = 9
FEW_ITEMS, MANY_ITEMS = 100, 10_000
FEW_TURNS, MANY_TURNS = 100, 2_000
RUN_LIMIT, CHAT_LIMIT = 2.5, 4.5  # times reading
GROWTH_LIMIT = 1.5


def run_of(items: int) -> Iterator[e.Entry]:
    """Give the journal of a run with one step, each of whose items says something."""
    copy = e.WorkflowCopy(name="sizes", file="sizes.toml", folder="", source="")
    yield e.SessionOpened(
        session="s1", folder="/", agent="assistant", model="main", system="", workflow=copy
    )
    yield e.Queued(item="m1", number=1, said=m.Said(text="run sizes"))
    yield e.TurnStarted(turn="t1", item="m1", number=1, epoch=1)
    yield e.StepStarted(
        turn="t1", step="work", items=tuple(f"file {index}" for index in range(items))
    )
    for index in range(items):
        yield e.ItemStarted(turn="t1", step="work", index=index, call=f"t1.w{index + 1}")
        result = e.WorkResult(output=f"{index} lines", exit_code=0)
        yield e.ItemEnded(turn="t1", step="work", index=index, status="ok", result=result)
    yield e.StepEnded(turn="t1", step="work", status="done")
    yield e.TurnEnded(
        turn="t1", status="completed", messages=(ChatMessage(role="assistant", text="done"),)
    )


def chat_of(turns: int) -> Iterator[e.Entry]:
    """Give the journal of a chat whose turns call tools and take in a steer each."""
    yield e.SessionOpened(session="s1", folder="/", agent="assistant", model="main", system="")
    for number in range(1, turns + 1):
        yield from turn_of(f"t{number}", number)


def turn_of(turn: str, number: int) -> Iterator[e.Entry]:
    """Give one turn: a message, three calls side by side, a steer, an answer."""
    item, steer = f"m{2 * number - 1}", f"m{2 * number}"
    calls = tuple(
        ToolRequest(call=f"{turn}.c{place}", tool="read", arguments={"path": "a"})
        for place in range(3)
    )
    usage = Usage(input=1000, output=100)
    yield e.Queued(item=item, number=1, said=m.Said(text="do it"))
    yield e.TurnStarted(
        turn=turn,
        item=item,
        number=1,
        epoch=number,
        resumes="",
        messages=(ChatMessage(role="user", text="do it"),),
    )
    yield e.ModelCalled(turn=turn, step=1, tokens=1000)
    yield e.Answered(
        turn=turn,
        step=1,
        usage=usage,
        messages=(ChatMessage(role="assistant", text="", tool_calls=calls),),
    )
    for call in calls:
        yield e.ToolIntended(
            turn=turn, step=1, call=call.call, tool=call.tool, arguments=call.arguments
        )
    yield e.Queued(
        item=steer,
        number=2,
        said=m.Said(text="and the tests"),
        routed=m.Routed(said_as="steer"),
        for_turn=turn,
    )
    for call in calls:
        said = (ChatMessage(role="tool", text="x" * 100, call=call.call),)
        yield e.ToolEnded(
            turn=turn, call=call.call, tool=call.tool, end=m.CallEnd(status="ok"), messages=said
        )
    yield e.Steered(
        items=(steer,),
        turn=turn,
        step=2,
        messages=(ChatMessage(role="user", text="and the tests"),),
    )
    yield e.ModelCalled(turn=turn, step=2, tokens=1000)
    yield e.Answered(
        turn=turn, step=2, usage=usage, messages=(ChatMessage(role="assistant", text="done"),)
    )
    yield e.TurnEnded(turn=turn, status="completed")


def measured(stored: list[str]) -> tuple[float, float, float]:
    """Read, decode and fold a journal once; return the microseconds of each for an entry."""
    began = time.process_time()
    read: list[dict[str, Any]] = [json.loads(text) for text in stored]
    found = time.process_time()
    entries = [decode_entry(data) for data in read]
    decoded = time.process_time()
    record = SessionRecord()
    for seq, entry in enumerate(entries, 1):
        apply(record, entry, seq, float(seq))
    folded = time.process_time()
    each = 1e6 / len(stored)
    return (found - began) * each, (decoded - found) * each, (folded - decoded) * each


def show(name: str, few: Iterator[e.Entry], many: Iterator[e.Entry], limit: float) -> None:
    """Compare decoding and folding with reading, and a long journal with a short one."""
    short, long = (
        [json.dumps(encode_entry(entry)) for entry in entries] for entries in (few, many)
    )
    rounds = [(measured(long), measured(short)) for _ in range(ROUNDS)]
    reading, decoding, folding = (min(found[0][part] for found in rounds) for part in range(3))
    small = min(found[1][2] for found in rounds)
    head(f"folding {name}, {len(long):,} entries, best of {ROUNDS}")
    row("reading an entry as JSON", reading, unit="µs")
    row("decoding an entry", decoding, unit="µs")
    row("folding an entry", folding, unit="µs")
    ratio, growth = (decoding + folding) / reading, folding / small
    row("both against reading", ratio, f"<= {limit:g} x", ok=ratio <= limit)
    name = f"the same of {len(short):,} entries"
    row(f"an entry, against {name}", growth, f"<= {GROWTH_LIMIT:g} x", ok=growth <= GROWTH_LIMIT)


def main() -> None:
    """Measure and print."""
    show("a run", run_of(FEW_ITEMS), run_of(MANY_ITEMS), RUN_LIMIT)
    show("a chat", chat_of(FEW_TURNS), chat_of(MANY_TURNS), CHAT_LIMIT)


if __name__ == "__main__":
    main()
