"""steersman beside other agents, headless, on the same work; `--write` also writes docs/performance.md.

Run it as `make bench-peers`. It installs the others once, which needs npm and PyPI; what is measured asks
only a server on loopback. It takes about five minutes on a quiet machine. `--write` keeps the figures in
benchmarks/figures and writes docs/performance.md; `--write --again` writes the page from what is kept.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))  # for what all benchmarks share

import measures
import page
from contenders import CHECKOUT, CONTENDERS, Contender, Live, Missing
from measures import Seat
from page import OURS, Figures
from peer_server import PeerServer
from table import machine

ONE_SHOT: dict[str, tuple[Callable[[Seat], float], int]] = {
    "version": (measures.version, 3),
    "first": (measures.first_request, 1),
    "memory": (measures.memory, 1),
    "keys": (measures.keys, 1),
}
"""Measures of whole processes, with how many samples each round takes."""
ONCE: dict[str, Callable[[Seat], float]] = {
    "hi": measures.tokens,
    "output": measures.tokens_of_output,
    "prefix": measures.prefix,
}
"""Measures that do not vary."""


def load() -> str:
    """Return the load average of the last minute."""
    return f"{os.getloadavg()[0]:.1f}"


def seats_of(
    chosen: list[Contender], root: Path, server: PeerServer, figures: Figures
) -> list[Seat]:
    """Install the contenders, and give each a home and a folder."""
    seats: list[Seat] = []
    for contender in chosen:
        print(f"{contender.name}: {contender.package or CHECKOUT}", file=sys.stderr, flush=True)
        place = root / contender.name.replace(" ", "-")  # commands name files in it
        home, folder = place / "home", place / "work"
        home.mkdir(parents=True)
        folder.mkdir()
        seat = Seat(contender, home, folder, server)
        try:
            contender.install()
            ran = subprocess.run(
                contender.command(*contender.version),
                env=seat.environ,
                capture_output=True,
                text=True,
                timeout=measures.PATIENCE,
            )
            words = (ran.stdout or ran.stderr).split()
            numbers = [
                word.lstrip("v").rstrip(",") for word in words if any(map(str.isdigit, word))
            ]
            figures.versions[contender.name] = numbers[0] if numbers else ""
            seats.append(seat)
        except (Missing, OSError, subprocess.TimeoutExpired) as error:
            figures.skipped[contender.name] = str(error)
    return seats


def sample(
    figures: Figures, row: str, measure: Callable[..., float], seat: Seat, *more: object
) -> None:
    """Take one sample, or note why there is none."""
    try:
        figures.add(row, seat.contender.name, measure(seat, *more))
    except (Missing, TimeoutError, OSError) as error:
        figures.add(row, seat.contender.name, str(error))


def measure_processes(seats: list[Seat], figures: Figures, rounds: int) -> None:
    """Take turns with whole processes."""
    for seat in seats:  # not counted: it compiles and fills caches
        sample(Figures("", "", ""), "", measures.first_request, seat)
    for number in range(rounds):
        for row, (measure, times) in ONE_SHOT.items():
            for seat in seats * times:
                say(f"round {number + 1}: {row} of {seat.contender.name}")
                sample(figures, row, measure, seat)
    for row, measure in ONCE.items():
        for seat in seats:
            say(f"{row} of {seat.contender.name}")
            sample(figures, row, measure, seat)


def measure_conversations(seats: list[Seat], figures: Figures, rounds: int) -> None:
    """Take turns with conversations, which all stay open."""
    open_ones: list[tuple[Seat, Live]] = []
    for seat in seats:
        say(f"conversation with {seat.contender.name}")
        try:
            live = seat.live()
            open_ones.append((seat, live))
            for _ in range(3):  # not counted
                live.say("hi")
                live.ended()
        except (Missing, OSError) as error:
            for row in ("turn", "ended", "tool", "daemon", "steer", "stream", "idle"):
                figures.add(row, seat.contender.name, str(error))
            open_ones = [pair for pair in open_ones if pair[0] is not seat]
    for _ in range(4 * rounds):
        for seat, live in open_ones:
            sample(figures, "turn", measures.warm_turn, seat, live)
    for number in range(rounds):
        for seat, live in open_ones:
            say(f"round {number + 1}: conversation with {seat.contender.name}")
            sample(figures, "stream", measures.streaming, seat, live)
            sample(figures, "idle", measures.idle, seat, live)
            if seat.contender.can_steer:
                sample(figures, "steer", measures.steer, seat, live, number)
            else:
                figures.add("steer", seat.contender.name, "its protocol has no such message")
    for number in range(rounds):
        for seat, live in open_ones:
            say(f"round {number + 1}: interrupt of {seat.contender.name}")
            try:
                times = measures.interrupt(seat, live, number)
            except (Missing, OSError) as error:
                times = (str(error),) * 3
            for row, took in zip(("ended", "tool", "daemon"), times, strict=True):
                figures.add(row, seat.contender.name, took)
    for _, live in open_ones:
        live.close()


def say(text: str) -> None:
    """Say what is done, on the terminal only."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def main() -> int:
    """Measure, print, and write if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--write", action="store_true", help="write docs/performance.md, too")
    parser.add_argument("--again", action="store_true", help="take the figures of the last run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--only", default="", help="names, with commas; steersman always takes part"
    )
    given = parser.parse_args()
    kept = page.KEPT / "peers.json"
    if given.again:
        figures = page.from_data(json.loads(kept.read_text("utf-8")))
    else:
        names = [name.casefold() for name in given.only.split(",") if name]
        chosen = [
            contender
            for contender in CONTENDERS
            if not names or contender.name == OURS or contender.name.casefold() in names
        ]
        figures = Figures(machine(), time.strftime("%Y-%m-%d", time.gmtime()), load())
        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root,
            PeerServer() as server,
        ):
            seats = seats_of(chosen, Path(root), server, figures)
            measure_processes(seats, figures, given.rounds)
            measure_conversations(seats, figures, given.rounds)
        figures.load = f"{figures.load} to {load()}"
        say("")
        if given.write:
            kept.parent.mkdir(exist_ok=True)
            kept.write_text(json.dumps(page.as_data(figures), indent=1) + "\n", "utf-8")
    print(f"\n{figures.date}, {figures.machine}, load average {figures.load}\n")
    print(page.peers_table(figures), page.goals_table(figures), sep="\n\n")
    for name, why in figures.skipped.items():
        print(f"\n{name} was left out: {why}.")
    if given.write:
        (CHECKOUT / "docs" / "performance.md").write_text(page.page(figures), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
