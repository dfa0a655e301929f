"""PostgreSQL servers of their own for tests: Debian's binaries, a scratch folder, a Unix socket.

One server serves a whole run of the tests; each test gets a schema. As root, the server runs as `nobody`,
because it refuses to run as root. Without the binaries or psycopg, the tests are skipped.
"""

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.until import until

from .changes import is_left_out
from .patience import seconds

_COUNT = itertools.count()
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",  # processes are killed here, no machine loses its power
    "shared_buffers": "16MB",
    "max_connections": "60",
    "max_wal_senders": "4",
    "wal_level": "replica",
    "max_prepared_transactions": "0",
    "autovacuum_naptime": "1h",
}


def binaries() -> Path | None:
    """Return the folder of the newest PostgreSQL server that is installed, if there is one."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3])
    )
    return found[-1].parent if found else None


def reason_to_skip() -> str:
    """Say what is missing for these tests; empty if nothing is."""
    if binaries() is None:
        return "there is no PostgreSQL server here: `apt-get install postgresql`"
    try:
        import psycopg  # noqa: F401
    except ModuleNotFoundError as error:
        return f"there is no {error.name} here"
    return ""


def as_server(folder: Path | None = None) -> dict[str, Any]:
    """Return how a process is started as the account of the server, which may use `folder`."""
    if os.geteuid() != 0:
        return {}
    if folder is not None:
        shutil.chown(folder, "nobody")
    return {"user": "nobody", "group": "nogroup", "extra_groups": []}


class PostgresServer:
    """A server in a scratch folder; `settings` go before the usual ones of tests."""

    def __init__(self, **settings: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
        self.data = self.folder / "data"
        self._settings = {**_SETTINGS, **settings}
        self._account = as_server(self.folder)
        self.process: subprocess.Popen[bytes] | None = None

    def make(self) -> "PostgresServer":
        """Make an empty cluster and start it."""
        options = ("-N", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8")
        self._run("initdb", "-D", self.data, *options)
        self.start()
        return self

    def copy_of(self, primary: "PostgresServer", name: str) -> "PostgresServer":
        """Become a streaming replica of another server, and start."""
        self._run(
            *("pg_basebackup", "-D", self.data, "-R", "-X", "stream", "-c", "fast", "--no-sync"),
            *("-d", f"host={primary.folder} user=postgres application_name={name}"),
        )
        self.start()
        return self

    def start(self) -> None:
        """Start the server and wait until it answers."""
        command = [str(_binary("postgres")), "-D", str(self.data), "-k", str(self.folder)]
        for name, value in self._settings.items():
            command += ["-c", f"{name}={value}"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd="/", **self._account
            )

        def answers() -> bool:
            with suppress(Exception):
                self.execute("SELECT 1")
                return True
            assert self.process
            assert self.process.poll() is None, log_text()
            return False

        def log_text() -> str:
            return (self.folder / "log").read_text()[-2000:]

        until(answers, log_text)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: SIGINT at once, SIGTERM when all have left; and wait for its end."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(seconds(30))

    def kill(self) -> None:
        """Kill all processes of the server, as if its machine were gone."""
        assert self.process is not None
        below = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        for pid in (self.process.pid, *map(int, below.split())):
            os.kill(pid, signal.SIGKILL)
        self.process.wait(seconds(30))

    def execute(self, statement: str, *, on: str = "postgres") -> list[tuple[Any, ...]]:
        """Run a statement as the superuser, and return its rows."""
        import psycopg

        with psycopg.connect(
            host=str(self.folder),
            user="postgres",
            dbname=on,
            autocommit=True,
            options="-c default_transaction_read_only=off",
        ) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def url(self, schema: str = "", *, host: str = "", **more: str) -> str:
        """Return the address of a home: a schema of its own, unless one is named."""
        schema = schema or f"t{next(_COUNT)}_{os.getpid()}"
        query = {"host": host or str(self.folder), "schema": schema, **more}
        rest = "&".join(f"{name}={value}" for name, value in query.items())
        return f"postgresql://postgres@/postgres?{rest}"

    def remove(self) -> None:
        """Stop the server and remove its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, name: str, *arguments: object) -> None:
        command = [str(_binary(name)), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, cwd="/", **self._account)
        assert done.returncode == 0, done.stderr


def _binary(name: str) -> Path:
    folder = binaries()
    assert folder is not None
    return folder / name


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the same tests on this store out where its extension is left out."""
    if is_left_out("postgres", config):
        left = [item for item in items if "postgres" in _choices(item)]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]


def _choices(item: pytest.Item) -> list[object]:
    spec = getattr(item, "callspec", None)
    return [*spec.params.values()] if spec is not None else []


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The server of this run."""
    if why := reason_to_skip():
        pytest.skip(why)
    server = PostgresServer()
    try:
        yield server.make()
    finally:
        server.remove()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of an empty home, which goes with the test."""
    from steersman.extensions.postgres.store import PostgresStore

    url = postgres_server.url()
    PostgresStore.make_home(url)
    yield url
    schema = url.partition("schema=")[2]
    # Under its new name nobody finds the tables any more who would lock them in another order.
    postgres_server.execute(f'ALTER SCHEMA "{schema}" RENAME TO "{schema}_gone"')
    postgres_server.execute(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    postgres_server.execute(f'DROP SCHEMA "{schema}_gone" CASCADE')


@pytest.fixture
def own_server() -> Iterator[Callable[..., PostgresServer]]:
    """Make servers that a test may stop; they go with it."""
    if why := reason_to_skip():
        pytest.skip(why)
    made: list[PostgresServer] = []

    def make(**settings: str) -> PostgresServer:
        made.append(PostgresServer(**settings))
        return made[-1]

    yield make
    for server in made:
        server.remove()
