"""One connection to a PostgreSQL home, which is made again when it is lost.

A statement whose answer is lost may have happened or not. What may be done twice is done again here;
anything else raises `ConnectionLost`, and the caller asks the database what happened. The statements
call the schema `home`; its real name is in the address.
"""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from ...journal.sql import Sql
from ...machines.errors import (
    ConnectionLost,
    SteersmanError,
    StoreError,
    StoreFailed,
    StoreTooNew,
    StoreTooOld,
    UsageError,
)
from ...machines.pattern import lazy_pattern
from ...machines.value import Value
from ...workflows.extras import how_to_install
from ...workflows.home_place import POSTGRES, without_password

try:
    import psycopg
    from psycopg import errors as errors  # the tables take it from here, where it may be missing
    from psycopg.conninfo import conninfo_to_dict
except ModuleNotFoundError as missing:
    raise UsageError(
        f"a home on PostgreSQL needs the package `{missing.name}`",
        how_to_install("postgres"),
    ) from missing

T = TypeVar("T")
Rows = list[tuple[Any, ...]]

VERSION = 3
"""The version of the tables that this program writes; see `home.about` for the one that is there."""

_SCHEMA = lazy_pattern(r"[a-z_][a-z0-9_]{0,50}")
_PAUSES = (0.02, 0.05, 0.1, 0.2)  # seconds before another attempt to connect; the last one stays
_TRANSIENT = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.TooManyConnections,
    errors.ReadOnlySqlTransaction,  # the server became a replica: the primary is another one now
    errors.IdleInTransactionSessionTimeout,
)
_CONFLICTS = (errors.SerializationFailure, errors.DeadlockDetected)


class PostgresAddress(Value):
    """Where a home is: what libpq connects to, and the schema. `shown` is for people: no password."""

    conninfo: str
    schema: str
    shown: str

    @classmethod
    def parse(cls, url: str) -> "PostgresAddress":
        """Read `postgresql://USER@HOST/DATABASE?schema=NAME`. Raises `UsageError`."""
        try:
            parts = urlsplit(url)
            pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        except ValueError:
            raise _malformed() from None
        if parts.scheme not in POSTGRES:
            raise _malformed()
        schema = dict(pairs).get("schema", "steersman")
        if not _SCHEMA.fullmatch(schema):
            raise UsageError(
                f"{schema[:60]!r} is not the name of a schema",
                "A schema has up to 51 characters of a-z, 0-9 and `_`.",
            )
        rest = [(name, value) for name, value in pairs if name != "schema"]
        conninfo = urlunsplit(parts._replace(query=urlencode(rest, quote_via=quote)))
        try:
            conninfo_to_dict(conninfo)
        except psycopg.Error:
            raise _malformed() from None
        return cls(conninfo=conninfo, schema=schema, shown=without_password(url))


_FOR_NOW = (
    "try again later",  # PgBouncer, for `server_login_retry` after a failed login
    "server conn crashed",
    "server closed the connection unexpectedly",
    "the database system is starting up",
    "the database system is shutting down",
    "the database system is not yet accepting connections",
    "no more connections allowed",
    "too many clients already",
)
"""How servers and poolers refuse a connection that they may allow in a moment; they give no code."""


class PostgresConnection:
    """A connection for one thread at a time; see the module for what happens when it is lost.

    `fence`: seconds for which a lost connection is tried again, before `StoreFailed`. One that was
    never there, or was given up, is tried once, unless the server says that it is so only for now.
    `prepare` is called with each new connection.
    """

    def __init__(
        self,
        address: PostgresAddress,
        fence: float,
        prepare: Callable[[Any], None] = lambda raw: None,
    ) -> None:
        self.address = address
        self._fence = fence
        self._prepare = prepare
        self._raw: psycopg.Connection[tuple[Any, ...]] | None = None
        self._mutex = threading.RLock()
        self._was_there = False
        self._is_closed = False
        self._writing_since: float | None = None

    def rows(self, statement: str, *values: Any) -> Rows:
        """Run a statement that only reads, or may be run twice, and return its rows."""
        return self.run(lambda raw: raw.rows(statement, *values))

    def change(self, statement: str, *values: Any) -> Rows:
        """Run a statement that must not be run twice. Raises `ConnectionLost` if its answer is lost."""
        return self.run(lambda raw: raw.rows(statement, *values), is_repeatable=False)

    def run(self, work: Callable[["Raw"], T], *, is_repeatable: bool = True) -> T:
        """Give the connection to `work`; again with a new one if it was lost and work is repeatable.

        Raises `ConnectionLost` if work is not repeatable and its answer was lost, `StoreFailed` if no
        connection could be made for `fence` seconds, and whatever work raises.
        """
        until = time.monotonic() + self._fence
        with self._mutex:
            while True:
                raw = self._connected(until)
                self._writing_since = None if is_repeatable else time.monotonic()
                try:
                    return work(Raw(raw, self.address.schema))
                except psycopg.Error as fault:
                    is_lost = raw.closed or raw.broken or isinstance(fault, _TRANSIENT)
                    if is_lost:
                        self._drop()
                    elif not isinstance(fault, _CONFLICTS):
                        raise self._translated(fault) from fault
                    if isinstance(fault, errors.ReadOnlySqlTransaction) or not is_lost:
                        if time.monotonic() > until:  # nothing happened
                            raise self._translated(fault) from fault
                        time.sleep(_PAUSES[-1])
                    elif not is_repeatable:
                        raise ConnectionLost(
                            f"the connection to `{self.address.shown}` was lost during a write"
                        ) from fault
                finally:
                    self._writing_since = None

    def hurry(self) -> None:
        """Wait for no server any more that is away: from now on there is one attempt to connect."""
        self._fence = 0.0

    def cut(self) -> None:
        """End the connection under the thread that waits for its answer. From any thread."""
        raw = self._raw
        if raw is not None:
            with contextlib.suppress(OSError, psycopg.Error):
                with socket.socket(fileno=os.dup(raw.fileno())) as wire:
                    wire.shutdown(socket.SHUT_RDWR)

    def cut_if_stuck(self, seconds: float) -> None:
        """Do that if a write that must not be repeated has had no answer for so long."""
        since = self._writing_since
        if since is not None and time.monotonic() - since > seconds:
            self.cut()

    def close(self, *, is_cut: bool = False) -> None:
        """Close; later calls raise `StoreError`. Idempotent. `is_cut`: do not wait for its thread."""
        self._is_closed = True
        if is_cut:
            self.cut()
        with self._mutex:
            self._drop()

    def _connected(self, until: float) -> Any:
        if self._is_closed:
            raise StoreError("the journal is closed", "Open it again.")
        attempt = 0
        while self._raw is None:
            try:
                self._connect()
            except psycopg.OperationalError as fault:
                is_for_now = any(said in str(fault).lower() for said in _FOR_NOW)
                is_awaited = self._was_there or is_for_now
                if not is_awaited or self._is_closed or time.monotonic() > until:
                    self._was_there = False
                    raise self._unreachable(fault) from None
                time.sleep(_PAUSES[min(attempt, len(_PAUSES) - 1)])
                attempt += 1
            except psycopg.Error as fault:
                raise self._translated(fault) from fault
        self._was_there = True
        return self._raw

    def _connect(self) -> None:
        """Make a connection; the keep-alive settings notice a host that is gone.

        It can be cut while it is prepared, too.
        """
        usual = {
            "application_name": "steersman",
            "connect_timeout": max(2, round(self._fence)),
            "tcp_user_timeout": round(1000 * self._fence),
            "keepalives_idle": max(1, round(self._fence)),
        }
        given = conninfo_to_dict(self.address.conninfo)
        settings: Any = {**usual, **given}
        self._raw = raw = psycopg.connect(**settings, autocommit=True)
        with contextlib.ExitStack() as undo:
            undo.callback(self._drop)
            if raw.execute("SELECT pg_backend_pid()").fetchone() != (raw.info.backend_pid,):
                raw.prepare_threshold = None  # a pooler, which may not keep prepared statements
            self._prepare(raw)
            undo.pop_all()

    def _drop(self) -> None:
        raw, self._raw = self._raw, None
        if raw is not None:
            with contextlib.suppress(psycopg.Error):
                raw.close()

    def _unreachable(self, fault: psycopg.Error) -> StoreFailed:
        why = " ".join(self._safe(str(fault)).split())
        return StoreFailed(
            f"`{self.address.shown}` cannot be reached: {why[:400]}",
            "Check the address, the server and your access; nothing that was acknowledged is lost.",
        )

    def _safe(self, text: str) -> str:
        """Take the password out of a text of libpq."""
        password = conninfo_to_dict(self.address.conninfo).get("password")
        return text.replace(str(password), "…") if password else text

    def _translated(self, fault: psycopg.Error) -> SteersmanError:
        shown, why = self.address.shown, self._safe(str(fault).strip().split("\n")[0])
        match fault:
            case errors.UndefinedTable() | errors.InvalidSchemaName():
                return no_home(self.address)
            case errors.ReadOnlySqlTransaction():
                return StoreFailed(
                    f"`{shown}` is read-only",
                    "Use the primary (`target_session_attrs=read-write`), or make it writable.",
                )
            case errors.DiskFull() | errors.OutOfMemory() | errors.ConfigurationLimitExceeded():
                return StoreFailed(
                    f"`{shown}` has no room: {why}",
                    "Make room there, then try again: nothing accepted is lost.",
                )
            case errors.InsufficientPrivilege():
                return StoreFailed(
                    f"`{shown}` refuses: {why}",
                    "Ask the owner of the schema for `GRANT` on its tables.",
                )
            case _:
                return StoreFailed(
                    f"`{shown}` cannot be used: {why}",
                    "`steersman home check` looks at it; nothing that was acknowledged is lost.",
                )


class Raw(Sql):
    """A connection as the statements see it, those of `sql.py`, too; see `Sql`.

    `schema` takes the place of `home`.
    """

    def __init__(self, raw: Any, schema: str) -> None:
        self.raw = raw
        self.schema = schema

    @property
    def name(self) -> str:
        """The schema, for errors."""
        return f"schema {self.schema}"

    def rows(self, statement: str, *values: Any) -> Rows:
        """Run a statement and return its rows."""
        cursor = self._execute(statement, values)
        return cursor.fetchall() if cursor.description is not None else []

    def row(self, statement: str, *values: Any) -> tuple[Any, ...] | None:
        """Run a statement and read its only row, or none."""
        return next(iter(self.rows(statement, *values)), None)

    def change(self, statement: str, *values: Any) -> int:
        """Run a statement and return how many rows it changed."""
        return int(self._execute(statement, values).rowcount)

    def transaction(self) -> Any:
        """Run the block in one transaction."""
        return self.raw.transaction()

    def _execute(self, statement: str, values: tuple[Any, ...]) -> Any:
        if values and "?" in statement:  # as `sql.py` marks the places of values
            statement = statement.replace("%", "%%").replace("?", "%s")
        return self.raw.execute(statement.replace("home.", f'"{self.schema}".'), values or None)


def check_about(address: PostgresAddress, found: Sequence[tuple[Any, ...]]) -> int:
    """Return the home's number, from the row (version, oldest reader, number). Raises `StoreError`."""
    if not found:
        raise no_home(address)
    version, oldest, number = found[0]
    if oldest > VERSION:
        raise StoreTooNew(
            f"`{address.shown}` has version {version}; this program reads versions up to {VERSION}",
            "Install the newest steersman, or use another home.",
        )
    if version < VERSION:
        raise StoreTooOld(
            f"`{address.shown}` has version {version}, and this program writes version {VERSION}",
            "`steersman home init URL` upgrades it; nodes of the version before may go on meanwhile.",
        )
    return int(number)


def no_home(address: PostgresAddress) -> StoreError:
    """Make the error for a database without our tables."""
    return StoreError(
        f"there is no home in `{address.shown}` (schema `{address.schema}`)",
        "`steersman home init URL` makes one.",
    )


def _malformed() -> UsageError:
    return UsageError(
        "this is not the address of a PostgreSQL home",
        "An example: `postgresql://USER@HOST/DATABASE`; `%` and `@` in a password are `%25` and `%40`.",
    )
