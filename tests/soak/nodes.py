"""Nodes of one PostgreSQL home run many sessions, while nodes, connections and the server are broken.

A client posts messages all the time, and the model answers each with a command. A trigger notes each
change of an owner; locks of the kernel show where two commands of one session are alive.
"""

import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

from support.driver import Place, wait_gone
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
from support.model_server import ModelServer, Recorded
from support.postgres_server import PostgresServer

from steersman.extensions.postgres.store import PostgresStore
from steersman.gateway.home.home import open_store
from steersman.journal.store import Store
from steersman.machines import protocol as m
from steersman.machines.errors import StoreError
from steersman.workflows.paths import Paths

__all__ = ["Change", "Nodes", "faults_of"]

SCHEMA = "soak"
_AUDIT = f"""
CREATE TABLE {SCHEMA}.changes (at bigserial, session text, epoch bigint, node text);
CREATE FUNCTION {SCHEMA}.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO {SCHEMA}.changes (session, epoch, node) VALUES (new.session, new.epoch, new.node);
    RETURN NULL;
END $$;
CREATE TRIGGER note AFTER UPDATE ON {SCHEMA}.sessions FOR EACH ROW
    WHEN (old.epoch <> new.epoch OR old.node <> new.node) EXECUTE FUNCTION {SCHEMA}.note();
"""
_TERMINATE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE application_name = 'steersman' AND pid <> pg_backend_pid()"
)
_UNREAD = f"SELECT count(*) FROM {SCHEMA}.inbox WHERE NOT consumed"
_MANY = 500
"""Messages from which on the suite has its full size."""
_MOST_UNREAD = 300
"""Messages that wait for a decision; then the client waits, too."""
_PACE = 0.15  # seconds between two messages
_SAID_AS = ("auto",) * 8 + ("queue", "interrupt")

Change = tuple[str, int, str]
"""A session, its epoch, and the node that owns it from then on, empty for none."""


class Client:
    """Posts messages to sessions chosen at random, in a thread of its own, until it is closed.

    A message whose answer was lost is posted again with its key. `acknowledged` has the keys of the
    others, by session.
    """

    def __init__(self, store: Store, sessions: list[str], seed: int, count: int) -> None:
        self._store, self._sessions, self._count = store, sessions, count
        self._random = random.Random(seed)
        self.acknowledged: dict[str, list[str]] = {session: [] for session in sessions}
        self.count = 0
        self.may_go = threading.Event()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="soak-client", daemon=True)
        self._thread.start()

    @property
    def is_done(self) -> bool:
        """Whether it has posted as many as it should."""
        return self.count >= self._count

    def close(self) -> None:
        """Stop, and wait for what is under way. Idempotent."""
        self._is_over.set()
        self.may_go.set()
        self._thread.join()

    def _run(self) -> None:
        for number in range(self._count):
            self.may_go.wait()
            self._is_over.wait(_PACE)
            if self._is_over.is_set():
                return
            self._post(number, self._random.choice(self._sessions))

    def _post(self, number: int, session: str) -> None:
        how = self._random.choice(_SAID_AS)
        while not self._is_over.is_set():
            try:
                ask_for_tool(self._store, session, number, how)
            except StoreError:
                self._is_over.wait(0.2)  # it was not acknowledged; its key says that it is the same
                continue
            self.acknowledged[session].append(f"{session}-{number}")
            self.count += 1
            return


class Fleet:
    """The nodes of a home and its server, and the ways in which they are broken.

    `lease` is the nodes', in seconds. `broken` counts the ways.
    """

    def __init__(self, server: PostgresServer, place: Place, lease: float, seed: int) -> None:
        self._server, self._place, self._lease = server, place, lease
        self._random = random.Random(seed)
        self._nodes: list[FleetNode] = []
        self._killed: list[FleetNode] = []
        self._frozen = set[FleetNode]()
        self.broken = Counter[str]()

    def start(self) -> None:
        """Start one more node."""
        self._nodes.append(FleetNode(self._place, "--capacity", "200"))

    def abandon(self) -> None:
        """End all nodes in any way."""
        for node in self._nodes:
            node.abandon()

    def break_each_way(self) -> Iterator[None]:
        """Break something in each way, in any order, with a pause after each."""
        ways: list[Callable[[], None]] = [self._kill, self._kill, self._freeze]
        ways += [self._freeze_for_long, self._end_connections, self._restart_server]
        self._random.shuffle(ways)
        for way in ways:
            way()
            self.broken[way.__name__.replace("_", " ").strip()] += 1
            _pause(self._random.uniform(0.2, 3.0))
            yield

    def wait_awake(self) -> None:
        """Wait until no node is stopped."""
        until(lambda: not self._frozen, "that no node is stopped")

    def end(self) -> list[str]:
        """End the nodes in order, and say what was wrong with them."""
        for node in self._nodes:
            node.signal(signal.SIGTERM)
        codes = {node.name: node.ended() for node in self._nodes}
        wrong = [f"{name}: exit code {code}" for name, code in codes.items() if code]
        texts = {node.name: node.said for node in (*self._nodes, *self._killed)}
        return wrong + [f"{name}: {text}" for name, text in texts.items() if "Traceback" in text]

    def _kill(self) -> None:
        """Kill a node, and start a new one a moment later."""
        node = self._random.choice(self._nodes)
        node.signal(signal.SIGKILL)
        node.ended()
        self._nodes.remove(node)
        self._killed.append(node)
        self._frozen.discard(node)
        _pause(self._random.uniform(0.0, 2.0))
        self.start()

    def _freeze(self) -> None:
        """Stop a node for less than its lease."""
        self._stop_one(self._random.uniform(0.05, 0.9) * self._lease)

    def _freeze_for_long(self) -> None:
        """Stop a node for longer than its lease."""
        self._stop_one(self._random.uniform(1.1, 1.4) * self._lease)

    def _stop_one(self, duration: float) -> None:
        """Stop a node for so many seconds, unless it is the last one that is awake."""
        awake = [node for node in self._nodes if node not in self._frozen]
        if len(awake) < 2:
            return
        node = self._random.choice(awake)
        node.signal(signal.SIGSTOP)
        self._frozen.add(node)
        timer = threading.Timer(duration, self._wake, (node,))
        timer.daemon = True
        timer.start()

    def _wake(self, node: FleetNode) -> None:
        """Let a node go on, unless it was killed. From any thread."""
        node.signal(signal.SIGCONT)
        self._frozen.discard(node)

    def _end_connections(self) -> None:
        """Have the server end all connections, also those of nodes that are stopped."""
        self._server.execute(_TERMINATE)

    def _restart_server(self) -> None:
        """Stop the server or kill it, and start it again."""
        if self._random.random() < 0.5:
            self._server.stop()
        else:
            self._server.kill()
        _pause(self._random.uniform(0.0, 1.0))
        self._server.start()


class Nodes:
    """Four nodes with 200 sessions, or for few messages two with twelve, and what came of them."""

    def __init__(self, folder: Path, seed: int, count: int) -> None:
        self._seed, self._count = seed, count
        lease = 10.0 if count >= _MANY else 5.0
        self._ending = ExitStack()
        self._server = PostgresServer()
        self._ending.callback(self._server.remove)
        self._server.make()
        self._place = self._ending.enter_context(closing(Place(folder / "place")))
        url = self._server.url(SCHEMA)
        PostgresStore.make_home(url)
        self._server.execute(_AUDIT)
        self._tools = LoneTools(folder / "tools", seed, lease)
        model = self._ending.enter_context(ModelServer(self._tools.answer))
        model.requests = _Nothing()
        self._place.configure(model.base_url, top=WAITING, rest=settings(lease, 0.7 * lease, url))
        self._fleet = Fleet(self._server, self._place, lease, seed)
        self._ending.callback(self._fleet.abandon)
        self._longest = 0.0

    def close(self) -> None:
        """End everything."""
        self._ending.close()

    def play(self, is_over: Callable[[], bool]) -> Iterator[tuple[int, list[str]]]:
        """Break something again and again while messages come; at the end give what was wrong.

        Nothing more is broken when all messages are posted or the time is over.
        """
        is_whole = self._count >= _MANY
        sessions = begin_sessions(self._place, 200 if is_whole else 12)
        for _ in range(4 if is_whole else 2):
            self._fleet.start()
        with closing(open_store(Paths.of(self._place.environ))) as store:
            client = Client(store, sessions, self._seed, self._count)
            with closing(client):
                before = 0
                while not (client.is_done or is_over()):
                    for _ in self._fleet.break_each_way():
                        self._pace(client)
                        before, count = client.count, client.count - before
                        yield count, []
            self._let_through(store, sessions)
            known = {session: decided(store, session) for session in sessions}
            wrong = faults_of(client.acknowledged, known, self._changes())
        yield 0, wrong + self._end()

    def _pace(self, client: Client) -> None:
        """Let the client go on unless too many of its messages are unread."""
        if self._unread() > _MOST_UNREAD:
            client.may_go.clear()
        else:
            client.may_go.set()

    def _unread(self) -> int:
        ((unread,),) = self._server.execute(_UNREAD)
        return int(unread)

    def _let_through(self, store: Store, sessions: list[str]) -> None:
        """Wait until each message is decided, resume the queues, and wait until all turns have ended."""
        began = time.monotonic()
        self._fleet.wait_awake()
        until(lambda: not self._unread(), "the decisions", quiet=120.0)
        resume = {"name": "queue resume", "arguments": {}}
        for session in sessions:
            request = {"method": "command", "params": resume, "user": ""}
            store.post(session, m.Lane.DATA, request)
        until(lambda: not self._unread(), "the decisions about what is held", quiet=120.0)

        def is_idle() -> bool:
            """Whether nothing waits or runs; a message whose turn was replaced stays aside for ever."""
            return not any(row.waiting or row.state == "busy" for row in store.sessions())

        until(is_idle, "the end of all turns", quiet=120.0 + self._count / 5)
        self._longest = time.monotonic() - began

    def _changes(self) -> list[Change]:
        """List the changes of owners, in their order."""
        found = self._server.execute(
            f"SELECT session, epoch, node FROM {SCHEMA}.changes ORDER BY at"
        )
        return [(session, epoch, node) for session, epoch, node in found]

    def _end(self) -> list[str]:
        """End the nodes, and say what was wrong with them, the tools, and the home."""
        wrong = [f"two tools at a time: {line}" for line in self._tools.doubled()]
        wrong += self._fleet.end()
        checked = self._place.run("home", "check")
        wrong += [f"home check: {checked.stderr}"] if checked.returncode else []
        left = self._place.processes()
        return wrong + [f"still there: {pid} {left[pid]}" for pid in wait_gone(left)]

    @property
    def figures(self) -> dict[str, float]:
        """What was broken, what ran, and how often sessions changed hands."""
        taken = sum(bool(node) for _, _, node in self._changes())
        ways = sorted(self._fleet.broken.items())
        figures = {f"times to {way}": float(count) for way, count in ways}
        figures |= {"commands run": self._tools.count, "times a session was taken": taken}
        return figures | {"seconds until all was done": round(self._longest, 1)}


def _pause(duration: float) -> None:
    """Let so many seconds pass."""
    threading.Event().wait(duration)


class _Nothing(list[Recorded]):
    """A list that keeps nothing, for a long run."""

    def append(self, item: Recorded) -> None:
        """Forget it."""


def faults_of(
    acknowledged: dict[str, list[str]], known: dict[str, list[str]], changes: Iterable[Change]
) -> list[str]:
    """Say which messages were lost or doubled, and which sessions had an epoch twice or an older one.

    `acknowledged` has the keys of the messages of each session, `known` those that its journal has.
    """
    wrong: list[str] = []
    for session, keys in acknowledged.items():
        counted = Counter(known[session])
        wrong += [f"{key}: lost" for key in keys if not counted[key]]
        wrong += [f"{key}: decided {n} times" for key, n in counted.items() if key and n > 1]
    last: dict[str, tuple[int, str]] = {}
    for session, epoch, node in changes:
        before, owner = last.get(session, (0, ""))
        is_next = epoch == before + 1 if node else epoch == before
        if not is_next:
            names = node or "no node", owner or "no node"
            wrong.append(f"{session}: epoch {epoch} of {names[0]} after {before} of {names[1]}")
        last[session] = (epoch, node)
    return wrong
