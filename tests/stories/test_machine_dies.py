"""Nodes run many sessions of one PostgreSQL home: one is killed, one frozen, the database restarts."""

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.driver import Place
from support.fleet import FleetNode, begin_sessions, decided, post, settings, until
from support.model_server import ModelServer, Text
from support.postgres_server import PostgresServer

from steersman.gateway.home import open_store
from steersman.journal.postgres_home import make_home
from steersman.journal.store import Store
from steersman.workflows.home_place import URL
from steersman.workflows.paths import Paths

SESSIONS = int(os.environ.get("STEERSMAN_STORY_SESSIONS", "24"))
ROUNDS = 4


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """One home and one project folder."""
    made = Place(tmp_path)
    yield made
    made.close()


def say(store: Store, posted: dict[str, list[int]], turn: int) -> None:
    """Post a message to each session."""
    for session, numbers in posted.items():
        numbers.append(post(store, session, f"message {turn}", f"{session}-{turn}"))


@pytest.mark.slow
def test_a_machine_dies(
    place: Place,
    own_server: Callable[..., PostgresServer],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every message that was posted is decided once, each session has one owner, and none is lost."""
    server = own_server().make()
    place.environ[URL] = server.url("story")
    make_home(place.environ[URL])
    monkeypatch.setenv(URL, place.environ[URL])
    paths = Paths.of(place.environ)
    nodes: list[FleetNode] = []
    with ModelServer([Text("Done.", times=0)]) as model:
        place.configure(model.base_url, rest=settings(lease=5.0, fence=3.0))
        sessions = begin_sessions(place, SESSIONS)
        posted: dict[str, list[int]] = {session: [] for session in sessions}
        try:
            nodes += [FleetNode(place, "--capacity", str(SESSIONS)) for _ in range(3)]
            with closing(open_store(paths)) as store:
                say(store, posted, 0)
                until(lambda: len(store.owners()) >= SESSIONS // 2, "that sessions are owned")
                nodes[0].signal(signal.SIGKILL)
                say(store, posted, 1)
                nodes[1].signal(signal.SIGSTOP)
                say(store, posted, 2)
                server.stop()
                server.start()
                say(store, posted, 3)
                until(lambda: not any(map(store.unconsumed, sessions)), "the end", 90.0)
                nodes[1].signal(signal.SIGCONT)
                for session in sessions:
                    keys = [f"{session}-{turn}" for turn in range(ROUNDS)]
                    answers = [store.reply(number, 0.0) for number in posted[session]]
                    assert Counter(decided(store, session)) == Counter(keys), answers
                owners = {owner.node for owner in store.owners().values()}
                assert owners <= {nodes[1].name, nodes[2].name}
        finally:
            for node in nodes:
                node.abandon()
