"""Goals: how much of each request its predecessor shares, and what a turn costs beside its model.

    python benchmarks/goals.py [TURNS]

Runs the installed command against a model server on loopback that answers at once, agent and judge
alike, and prints the share of each request that is byte for byte the one before it, and what a turn of
a goal costs beside its models: from its end to the judge's request, and from the verdict to the next
turn's request.
"""

import itertools
import json
import statistics
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path.insert(0, str(TESTS))

from support.driver import Chat, Place  # noqa: E402
from support.model_server import ModelServer, Recorded, Text  # noqa: E402

TURNS = 20
LIMIT = 15.0
"""Milliseconds that a turn may cost beside its model."""


def agent(request: Recorded) -> Text:
    """Say something else in each turn."""
    return Text(f"That was step {len(request.body['messages'])}.", stream=False)


def main() -> None:
    """Run one goal, and print the figures."""
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else TURNS
    judge = Text('{"verdict": "continue", "reason": "more is left"}', stream=False)
    with (
        tempfile.TemporaryDirectory() as root,
        ModelServer(agent) as works,
        ModelServer([judge]) as judges,
        closing(Place(Path(root))) as place,
    ):
        rest = f"""
[models.judge]
provider = "openai"
base_url = "{judges.base_url}"
model = "judge"
[agents.judge]
model = "judge"
[goals]
max_turns = {turns}
backoff = 0.0
"""
        place.configure(works.base_url, rest=rest)
        chat = place.chat()
        chat.ask("/goal go on")
        chat.wait("goal", state="paused", reason="budget")
        chat.close()
        report(works, judges, chat)


def report(works: ModelServer, judges: ModelServer, chat: Chat) -> None:
    """Print the share that requests have in common, and what a turn costs."""
    asked, judged = works.requests, judges.requests
    bodies = [json.dumps(one.body["messages"])[:-1] for one in asked]
    shares = [
        sum(a == b for a, b in zip(before, after, strict=False)) / len(before)
        for before, after in itertools.pairwise(bodies)
    ]
    same = all({**one.body, "messages": ()} == {**asked[0].body, "messages": ()} for one in asked)
    ended, decided = (times_of(chat, kind) for kind in ("turn_ended", "verdict"))
    begins, looks = (began(one) for one in (works, judges))
    costs = [
        looks + look.at - end + begins + turn.at - verdict
        for end, look, verdict, turn in zip(ended, judged, decided, asked[1:], strict=False)
    ]
    print(f"turns                          {len(asked)}")
    print(f"shared prefix, least           {min(shares):.1%}")
    print(f"all else in the requests       {'the same' if same else 'DIFFERS'}")
    cost = statistics.median(costs) * 1000
    print(f"a turn beside its models       {cost:.1f} ms, median (at most {LIMIT:g} ms)")
    print(f"judge's calls                  {len(judged)}")


def times_of(chat: Chat, kind: str) -> list[float]:
    """Return when events of a kind were told."""
    return [at for one, at in zip(chat.events, chat.times, strict=True) if one["type"] == kind]


def began(server: ModelServer) -> float:
    """Return when a server's clock began, on ours."""
    return time.monotonic() - server.now()


if __name__ == "__main__":
    main()
