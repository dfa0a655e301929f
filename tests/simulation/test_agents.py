"""`steersman.testing.simulate`: an agent with own tools, played with stops and crashes."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import steersman
from steersman.testing import BrokenPromise, Simulation, calls, simulate

DOCS = Path(steersman.__file__).parent / "docs"
SEEDS = 150
"""Seeds within which a planted fault is found."""


class Theatre:
    """Seats that can be booked; `is_careful`: each call has its effect only once."""

    def __init__(self, *, is_careful: bool) -> None:
        self.is_careful = is_careful
        self.bookings: list[str] = []

    def agent(self) -> steersman.Agent:
        """Return an agent that books, in a theatre without bookings."""
        self.bookings.clear()

        @steersman.tool(mutating=True)
        async def book(seat: str) -> str:
            """Book a seat."""
            if not (self.is_careful and seat in self.bookings):
                self.bookings.append(seat)
            return f"{seat} is booked"

        return steersman.Agent(tools=["read", book])

    def check(self) -> None:
        """Assert that no seat was booked twice."""
        assert len(set(self.bookings)) == len(self.bookings), f"booked twice: {self.bookings}"

    def play(self, **more: Any) -> Simulation:
        """Play people who book seats, each run with a new agent."""
        given: dict[str, Any] = {"calls": SEATS, "run": ["book"], "check": self.check}
        return simulate(self.agent, ["Book a seat."], **given, **more)


SEATS = [calls("book", seat=f"{row}{number}") for row in "ABCDEFGHIJ" for number in range(1000)]


@pytest.mark.nightly
def test_a_tool_that_must_not_be_repeated_is_found() -> None:
    """A call that a crash cut off is made again; the seed of a double booking plays it again."""
    theatre = Theatre(is_careful=False)
    with pytest.raises(BrokenPromise, match="booked twice") as raised:
        theatre.play(seeds=SEEDS)
    broken = raised.value
    assert broken.promise == "What the program itself checks holds."
    assert isinstance(broken, steersman.SteersmanError)
    with pytest.raises(BrokenPromise) as again:
        theatre.play(seed=broken.seed, seeds=1)
    assert str(again.value) == str(broken)
    assert broken.choices
    with pytest.raises(BrokenPromise, match="booked twice") as shrunk:
        theatre.play(choices=broken.choices)
    assert shrunk.value.messages == broken.messages
    assert any("Book a seat." in line for line in broken.messages)


@pytest.mark.nightly
def test_a_tool_that_may_be_repeated_keeps_its_promise() -> None:
    """The same runs with a careful tool break nothing."""
    theatre = Theatre(is_careful=True)
    played = theatre.play(seeds=SEEDS)
    assert isinstance(played, Simulation)
    assert played.seeds == SEEDS
    assert played.steps > SEEDS
    assert theatre.bookings or played.seconds


def test_nothing_is_run_that_is_not_named(tmp_path: Path) -> None:
    """Results are made up by default: no function is called."""

    @steersman.tool
    def touch(name: str) -> None:
        """Touch a file."""
        (tmp_path / "touched").touch()

    simulate(steersman.Agent(tools=[touch]), seeds=20)
    assert not list(tmp_path.iterdir())
    simulate(steersman.Agent(tools=[touch]), run=["touch"], seeds=20)
    assert [path.name for path in tmp_path.iterdir()] == ["touched"]


def test_denied_and_faulty_calls_do_not_run() -> None:
    """The permissions of the agent hold, and arguments are checked, whatever the model wants."""
    called: list[int] = []

    @steersman.tool
    def count(number: int) -> int:
        """Count."""
        called.append(number)
        raise ValueError("never mind")

    agent = steersman.Agent(tools=[count], permissions={"count": "deny"})
    simulate(agent, run=["count"], seeds=20)
    agent = steersman.Agent(tools=[count])
    simulate(agent, calls=[calls("count", number="many")], run=["count"], seeds=20)
    assert called == []
    simulate(agent, run=["count"], seeds=20)
    assert called


def test_what_cannot_be_played_is_refused() -> None:
    """Mistakes of the caller are named before anything is played."""
    agent = steersman.Agent(tools=["read"])
    with pytest.raises(steersman.UsageError, match="at least 1"):
        simulate(agent, seeds=0)
    with pytest.raises(steersman.UsageError, match="no function of agent"):
        simulate(agent, run=["read"])
    with pytest.raises(steersman.UsageError, match="has no tool `book`"):
        simulate(agent, calls=[calls("book")])

    async def inside() -> None:
        simulate(agent, seeds=1)

    with pytest.raises(steersman.UsageError, match="running asyncio loop"):
        asyncio.run(inside())


@pytest.mark.nightly
def test_the_example_of_the_docs_holds() -> None:
    """The example runs as it stands, and finds the fault that it speaks of."""
    page = (DOCS / "simulation.md").read_text(encoding="utf-8")
    example = page.split("```python\n")[1].split("```")[0]
    names: dict[str, Any] = {}
    exec(compile(example, "simulation.md", "exec"), names)
    names["test_no_seat_is_booked_twice"]()
    careless = example.replace("if seat not in bookings", "if True")
    exec(compile(careless, "simulation.md", "exec"), names)
    with pytest.raises(BrokenPromise, match="booked twice"):
        names["test_no_seat_is_booked_twice"]()
