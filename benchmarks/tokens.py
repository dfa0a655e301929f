"""What work costs in tokens: "hi", a long output, a steer against a stop, a round of a goal.

Run it as `python benchmarks/tokens.py`, with the package installed. It runs the installed command against
a model server on loopback, and counts what was sent: a token is four bytes of a request's body. What a
server has cached is not sent for less here, so what was not sent before is counted apart.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path

from table import head, row

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path.insert(0, str(TESTS))

from support.driver import Chat, Place  # noqa: E402
from support.model_behaviours import Behaviour, Door  # noqa: E402
from support.model_server import ModelServer, Recorded, Text, Tools  # noqa: E402

CALLS = 6
RULES = '[permissions]\nrules = [{ tool = "*", do = "allow" }]\n'


def tokens(request: Recorded) -> float:
    """Return the tokens of a request's body."""
    return len(json.dumps(request.body, ensure_ascii=False, separators=(",", ":")).encode()) / 4


@contextmanager
def talk(
    behave: Callable[[Recorded], Behaviour], rest: str = RULES
) -> Iterator[tuple[ModelServer, Chat]]:
    """Open a chat with a model that behaves so."""
    with (
        tempfile.TemporaryDirectory() as root,
        ModelServer(behave) as server,
        closing(Place(Path(root))) as place,
    ):
        place.configure(server.base_url, rest=rest)
        chat = place.chat()
        yield server, chat
        chat.close()


def command(text: str, door: Door | None = None) -> Tools:
    """Answer with one shell command, once a door is open."""
    return Tools([{"tool": "shell", "arguments": {"command": text}}], door=door)


def hi() -> None:
    """Say one word to an agent with all tools."""
    with talk(lambda request: Text("Hello.")) as (server, chat):
        chat.send("hi")
        chat.wait("turn_ended")
        size = tokens(server.requests[0])
        row('"hi" with all tools', size, "<= 1,000", ok=size <= 1000)


def output() -> None:
    """Run a command that prints 600 kB."""

    def behave(request: Recorded) -> Behaviour:
        is_result = request.body["messages"][-1]["role"] == "tool"
        return Text("Done.") if is_result else command("seq 1 102000")

    with talk(behave) as (server, chat):
        chat.send("count")
        chat.wait("turn_ended")
        added = tokens(server.requests[1]) - tokens(server.requests[0])
        row("added by 600 kB of a tool's output", added, "<= 1,500", ok=added <= 1500)


def work(change: str) -> tuple[float, float]:
    """Have a turn of so many calls, with a change in the middle: tokens, and those not sent before."""
    door = Door()

    def behave(request: Recorded) -> Behaviour:
        messages = request.body["messages"]
        asked = [at for at, said in enumerate(messages) if said["role"] == "user"]
        begun = asked[-1] if change == "restart" else asked[0]
        done = sum(said["role"] == "tool" for said in messages[begun:])
        if done >= CALLS:
            return Text("Done.")
        is_half = done == CALLS // 2 and len(asked) == 1
        return command("seq 1 200", door if is_half and change else None)

    with talk(behave) as (server, chat):
        chat.send("do the work")
        if change:
            server.wait_requests(CALLS // 2 + 1)
            if change == "steer":
                chat.send({"text": "use tabs", "as": "steer"})
                chat.wait("accepted", **{"as": "steer"})
            else:
                chat.send("/stop")
                chat.wait("stopped")
                chat.send("do the work, and use tabs")
            door.open()
        chat.wait("turn_ended", status="completed")
        requests = list(server.requests)
    whole = sum(map(tokens, requests))
    fresh = tokens(requests[0])
    for before, after in pairwise(requests):
        shared = [
            a
            for a, b in zip(after.body["messages"], before.body["messages"], strict=False)
            if a == b
        ]
        fresh += len(json.dumps(after.body["messages"][len(shared) :]).encode()) / 4
    return whole, fresh


def changes() -> None:
    """Compare a steer with an untouched turn, and with a stop and a new beginning."""
    (plain, plain_fresh), (steered, steered_fresh), (again, again_fresh) = (
        work(change) for change in ("", "steer", "restart")
    )
    row(f"a turn of {CALLS} calls", plain, unit="tokens")
    ratio = steered / plain
    row("the same with a steer in the middle", ratio, "<= 1.05 x", ok=ratio <= 1.05)
    row("  of what was not sent before", steered_fresh / plain_fresh, unit="x")
    row("stopped in the middle and begun again", again / plain, unit="x")
    row("  of what was not sent before", again_fresh / plain_fresh, unit="x")


def goal() -> None:
    """Count a round of a goal that does not get anywhere, with its judge."""
    judged = '{"verdict": "continue", "reason": "more is left"}'

    def behave(request: Recorded) -> Behaviour:
        is_judge = not request.body.get("tools")
        return Text(judged) if is_judge else Text(f"Step {len(request.body['messages'])}.")

    rest = f"{RULES}[goals]\nmax_turns = 5\nbackoff = 0.0\n"
    with talk(behave, rest) as (server, chat):
        chat.ask("/goal go on")
        chat.wait("goal", state="paused")
        requests = list(server.requests)
    turns = [tokens(request) for request in requests if request.body.get("tools")]
    judges = [tokens(request) for request in requests if not request.body.get("tools")]
    row("a round of a goal, its turn", sum(turns) / len(turns), unit="tokens")
    row("a round of a goal, its judge", sum(judges) / len(judges), unit="tokens")
    row("rounds", len(turns), "<= 5", ok=len(turns) <= 5)


def main() -> None:
    """Count, and print."""
    head("tokens, by four bytes each")
    hi()
    output()
    changes()
    goal()


if __name__ == "__main__":
    main()
