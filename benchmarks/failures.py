"""What a failure of the database or of a node costs: seconds until the work goes on elsewhere.

Run it as `python benchmarks/failures.py`, with the package installed and Debian's PostgreSQL here. It
starts a server of its own, and nodes as programs of their own, whose agent waits in a shell command when
they are killed or stopped. The baseline of a commit is one on the same connection before it is lost.
"""

import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from table import head, row

from journal import Session
from steersman.extensions.postgres.store import PostgresStore
from steersman.journal.commitment import commit_surely

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.driver import Gate, Place
from support.fleet import FleetNode, begin_sessions, post, settings
from support.model_server import ModelServer, Text, Tools
from support.postgres_server import PostgresServer

ROUNDS = 20
LEASE, FENCE = 6.0, 4.0
"""Seconds of the nodes here; a home has 10 and 7 unless they are set."""
_TERMINATE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE application_name = 'steersman' AND pid <> pg_backend_pid()"
)


def commit(store: PostgresStore, session: Session) -> float:
    """Commit once, as the writer does; return the milliseconds."""
    begin = time.perf_counter()
    assert list(commit_surely(store, [session.next()])) == [True]
    return 1e3 * (time.perf_counter() - begin)


def database(server: PostgresServer, url: str) -> None:
    """Lose the connections, then the server, and commit."""
    head("the next commit (milliseconds)")
    with closing(PostgresStore.open(url)) as store:
        session = Session(store, "s1")
        row(
            "nothing fails", statistics.median(commit(store, session) for _ in range(50)), unit="ms"
        )
        lost = list[float]()
        for _ in range(ROUNDS):
            server.execute(_TERMINATE)
            lost.append(commit(store, session))
        row("the server ended all connections", statistics.median(lost), unit="ms")
        back = list[float]()
        for end in (server.stop, server.kill) * 2:
            end()
            server.start()
            back.append(commit(store, session))
        row("the server was stopped or killed, once it is back", max(back), unit="ms")


def until(holds: Callable[[], object], begin: float, most: float = 60.0) -> float:
    """Wait until something holds; return the seconds since `begin`."""
    while not holds():
        assert time.perf_counter() - begin < most, "it does not come to hold"
        time.sleep(0.005)
    return time.perf_counter() - begin


def node(server: PostgresServer, number: signal.Signals) -> tuple[float, float]:
    """Have a node fail amid a command; return when that is dead, and when another has the session."""
    with tempfile.TemporaryDirectory() as folder, closing(Place(Path(folder, "place"))) as place:
        url = server.url()
        PostgresStore.make_home(url)
        gate = Gate(place.folder)
        work = Tools([{"tool": "shell", "arguments": {"command": gate.command}}])
        with ModelServer([work, Text("Done.", times=0)]) as model:
            place.configure(model.base_url, rest=settings(LEASE, FENCE, url))
            [session] = begin_sessions(place, 1)
            with closing(PostgresStore.open(url, lease=LEASE, fence=FENCE)) as store:
                nodes = [FleetNode(place)]
                try:
                    post(store, session, "work", "k1")
                    tool = Path(f"/proc/{gate.wait()}")
                    nodes.append(FleetNode(place))
                    begin = time.perf_counter()
                    nodes[0].signal(number)
                    dead = until(lambda: not tool.exists(), begin)

                    def has_moved() -> bool:
                        owner = store.owner(session)
                        return owner is not None and owner.node == nodes[1].name

                    return dead, until(has_moved, begin)
                finally:
                    for running in nodes:
                        running.abandon()
        gate.close()


def main() -> None:
    """Print the tables."""
    server = PostgresServer(fsync="on")
    try:
        server.make()
        url = server.url("bench")
        PostgresStore.make_home(url)
        database(server, url)
        head(f"a node fails; lease {LEASE:g}, fence {FENCE:g} (seconds)")
        for name, number in (("killed", signal.SIGKILL), ("stopped", signal.SIGSTOP)):
            dead, moved = node(server, number)
            ok = dead <= FENCE + 1 and dead < moved if number == signal.SIGSTOP else None
            limit = "before the next" if number == signal.SIGSTOP else ""
            row(f"{name}: its command is dead after", dead, limit, "s", ok)
            row(f"{name}: another node has the session after", moved, unit="s")
    finally:
        server.remove()


if __name__ == "__main__":
    main()
