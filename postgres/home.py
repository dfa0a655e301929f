"""Making, checking and describing a PostgreSQL home, beside using it."""

import secrets
import time

from ..journal.store import NodeRow
from ..machines.errors import UsageError
from ..machines.value import Value
from .connection import PostgresAddress, PostgresConnection, Raw, check_about
from .store import PostgresStore
from .tables import create_tables


def make_home(url: str) -> bool:
    """Make the tables of a home in its schema; False if they are there. Raises `SteersmanError`."""
    address = PostgresAddress.parse(url)
    line = PostgresConnection(address, fence=0.0)

    def make(raw: Raw) -> bool:
        ((encoding,),) = raw.rows("SHOW server_encoding")
        if encoding != "UTF8":
            raise UsageError(
                f"`{address.shown}` has the encoding {encoding}",
                "A home needs UTF8: `CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`.",
            )
        return create_tables(raw)

    try:
        is_new = line.run(make)
        check_about(address, line.rows("SELECT version, oldest, number FROM home.about"))
        return is_new
    finally:
        line.close()


class HomeReport(Value):
    """How a home on PostgreSQL is at this moment; times in seconds, `bell` none where nothing listens.

    `skew`: how far the clock of this host is ahead of the server's. `replicas` maps the names of
    replicas to how they follow (`sync`, `async`, …). `oldest` is the age of the oldest unread message.
    """

    server: str
    bell: float | None
    skew: float
    replicas: dict[str, str]
    nodes: tuple[NodeRow, ...]
    unread: int
    oldest: float


_NOTIFY_TIMEOUT = 5.0  # seconds for a notification to come back


def report_of(store: PostgresStore) -> HomeReport:
    """Look at a home, ring a bell of our own, and leave nothing behind."""
    line, node = store.line, f"doctor-{secrets.token_hex(4)}"
    before = time.time()
    ((server, now),) = line.rows(
        "SELECT current_setting('server_version'), extract(epoch FROM clock_timestamp())::float8"
    )
    skew = (before + time.time()) / 2 - now
    replicas = line.rows(
        "SELECT application_name, coalesce(sync_state, '?') FROM pg_stat_replication"
    )
    ((unread, oldest),) = line.rows(
        "SELECT count(*), coalesce(extract(epoch FROM clock_timestamp()) - min(time), 0)::float8"
        " FROM home.inbox WHERE NOT consumed"
    )
    return HomeReport(
        server=server.split()[0],
        bell=_round_trip(store, node),
        skew=skew,
        replicas=dict(replicas),
        nodes=tuple(store.nodes.rows()),
        unread=unread,
        oldest=max(0.0, oldest),
    )


def _round_trip(store: PostgresStore, node: str) -> float | None:
    """Time a ring from this process to itself, through the server; none if it cannot listen."""
    store.wait(node, 0.0)
    if not store.can_listen:
        return None
    began = time.monotonic()
    store.nodes.ring(node, "")
    store.wait(node, _NOTIFY_TIMEOUT)
    return time.monotonic() - began
