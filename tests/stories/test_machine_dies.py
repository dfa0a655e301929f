"""Nodes run many sessions of one PostgreSQL home: one is killed, one frozen, the database fails twice."""

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.driver import Place
from support.fleet import (
    WAITING,
    FleetNode,
    LoneTools,
    ask_for_tool,
    begin_sessions,
    decided,
    settings,
    until,
)
from support.model_server import ModelServer
from support.postgres_server import PostgresServer

from steersman.extensions.postgres.store import PostgresStore
from steersman.gateway.home.home import open_store
from steersman.journal.store import Store
from steersman.workflows.paths import Paths

pytestmark = pytest.mark.nightly

SESSIONS = int(os.environ.get("STEERSMAN_STORY_SESSIONS", "24"))
ROUNDS = 5


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """One home and one project folder."""
    made = Place(tmp_path)
    yield made
    made.close()


def say(store: Store, posted: dict[str, list[int]], turn: int) -> None:
    """Post a message to each session."""
    for at, (session, numbers) in enumerate(posted.items()):
        numbers.append(ask_for_tool(store, session, turn * SESSIONS + at))


def test_a_machine_dies(place: Place, own_server: Callable[..., PostgresServer]) -> None:
    """Every message is decided once, each session has one owner, and never two live tools.

    The database restarts, and then its machine is gone: its synchronous replica is promoted.
    """
    primary = own_server().make()
    replica = own_server(wal_retrieve_retry_interval="50ms").copy_of(primary, "replica")
    primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
    primary.execute("SELECT pg_reload_conf()")
    hosts = f"{primary.folder},{replica.folder}"
    url = primary.url("story", host=hosts, target_session_attrs="read-write")
    PostgresStore.make_home(url)
    nodes: list[FleetNode] = []
    tools = LoneTools(place.home.parent / "tools", lease=5.0)
    with ModelServer(tools.answer) as model:
        place.configure(model.base_url, top=WAITING, rest=settings(lease=5.0, fence=3.0, url=url))
        sessions = begin_sessions(place, SESSIONS)
        posted: dict[str, list[int]] = {session: [] for session in sessions}
        try:
            nodes += [FleetNode(place, "--capacity", str(SESSIONS)) for _ in range(3)]
            with closing(open_store(Paths.of(place.environ))) as store:
                say(store, posted, 0)
                until(lambda: len(store.owners()) >= SESSIONS // 2, "that sessions are owned")
                until(lambda: tools.count, "that tools are at work")
                nodes[0].signal(signal.SIGKILL)
                say(store, posted, 1)
                nodes[1].signal(signal.SIGSTOP)
                say(store, posted, 2)
                primary.stop()
                primary.start()
                say(store, posted, 3)
                primary.kill()
                replica.execute("SELECT pg_promote()")
                say(store, posted, 4)
                until(lambda: not any(map(store.unconsumed, sessions)), "the end", quiet=90.0)
                nodes[1].signal(signal.SIGCONT)
                for at, session in enumerate(sessions):
                    keys = [f"{session}-{turn * SESSIONS + at}" for turn in range(ROUNDS)]
                    answers = [store.reply(number, 0.0) for number in posted[session]]
                    assert Counter(decided(store, session)) == Counter(keys), answers
                owners = {owner.node for owner in store.owners().values()}
                assert owners <= {nodes[1].name, nodes[2].name}
                assert tools.doubled() == []
        finally:
            for node in nodes:
                node.abandon()
