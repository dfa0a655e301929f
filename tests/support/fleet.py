"""Nodes of one home, as programs of their own, and the messages to its sessions."""

import itertools
import re
import shlex
import signal
import subprocess
from pathlib import Path
from random import Random
from typing import Any

from support.driver import Place
from support.model_server import Behaviour, Recorded, Text, Tools
from support.patience import seconds
from support.until import until

from steersman.gateway.hosts import Hosts
from steersman.gateway.launch_options import LaunchOptions
from steersman.journal.codec import decode_entry
from steersman.journal.entries import Queued
from steersman.journal.store import Store
from steersman.machines import protocol as m
from steersman.workflows.paths import Paths

WAITING = 'busy_input_mode = "queue"\n[auto_queue]\nmax_queue_size = 1000\n'
"""The head of a configuration with which many messages wait for each other."""
ALLOWED = '[permissions]\nrules = [{ tool = "shell", do = "allow" }]\n'
TIMES = '[home]\nurl = "{url}"\nlease = {lease}\nfence = {fence}\n'


def settings(lease: float = 6.0, fence: float = 4.0, url: str = "") -> str:
    """Return the configuration of a home with nodes, whose times are in seconds."""
    return ALLOWED + TIMES.format(lease=lease, fence=fence, url=url)


_ASKED = re.compile(r"message (\d+) to (\S+)")
_COUNT = itertools.count()


class FleetNode:
    """A running `steersman node`; what it prints is in the file `log`."""

    def __init__(self, place: Place, *arguments: str) -> None:
        self.place = place
        self.log = place.home.parent / f"node{next(_COUNT)}.log"
        with self.log.open("w") as log:
            self.process = place.start("node", *arguments, stdout=log, stderr=subprocess.STDOUT)
        self.name = until(self._found_name, "that a node takes sessions")

    def _found_name(self) -> str:
        said = self.said
        assert self.process.poll() is None, said
        return said.split()[1] if " takes sessions of " in said else ""

    @property
    def said(self) -> str:
        """All that it has printed."""
        return self.log.read_text(errors="replace")

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def ended(self) -> int:
        """Wait for its end and return its exit code."""
        self.process.communicate(timeout=seconds(60))
        return self.process.returncode

    def abandon(self) -> None:
        """End it in any way. Idempotent."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.communicate()


def listed(place: Place) -> dict[str, dict[str, Any]]:
    """Return what `node list` says, by node."""
    return {row["node"]: row for row in place.data("node", "list")["nodes"]}


def states(place: Place) -> dict[str, str]:
    """Return the state of each session, as `sessions list` says."""
    return {row["id"]: row["state"] for row in place.data("sessions", "list")["sessions"]}


def begin_sessions(place: Place, count: int) -> list[str]:
    """Begin sessions in the home of a place, and leave them; return their ids."""
    paths = Paths.of(place.environ)
    hosts = Hosts(paths, place.environ, LaunchOptions())
    host = hosts.of_folder(place.folder)
    sessions = [host.begin(place.folder).session for _ in range(count)]
    hosts.close()
    return sessions


def ask_for_tool(store: Store, session: str, number: int, how: str = "auto") -> int:
    """Post a message that `LoneTools` answers; its key is `SESSION-NUMBER`."""
    text = f"message {number} to {session}"
    return post(store, session, text, f"{session}-{number}", how=how)


def post(store: Store, session: str, text: str, key: str, *, how: str = "queue") -> int:
    """Post what `steersman send` does, and do not wait for its answer; durable when it returns."""
    params = {"text": text, "as": how, "plain": False}
    lane = m.Lane.CONTROL if how == "interrupt" else m.Lane.DATA
    return store.post(session, lane, {"method": "say", "params": params, "user": ""}, key)


def decided(store: Store, session: str) -> list[str]:
    """Return the keys of the messages that a session's journal has, in order; it has no gap."""
    entries = list(store.entries(session))
    assert [stored.seq for stored in entries] == list(range(1, len(entries) + 1))
    found = (decode_entry(stored.data) for stored in entries)
    return [entry.said.client_id for entry in found if isinstance(entry, Queued)]


class LoneTools:
    """Commands for the tool `shell`, of which no two of one session may ever be alive.

    Each command and all that it starts hold a lock of its session, which the kernel drops when the last
    of them is dead. So a command that finds it taken has found another one that lives. `seed` decides how
    long those take for which a model asks: every sixth about as long as a lease, in seconds.
    """

    def __init__(self, folder: Path, seed: int = 0, lease: float = 10.0) -> None:
        folder.mkdir()
        self._folder, self._seed, self._lease = folder, seed, lease
        self._began, self._doubled = folder / "began", folder / "doubled"
        for file in (self._began, self._doubled):
            file.touch()

    def answer(self, request: Recorded) -> Behaviour:
        """Answer a message as a model: with a command, and the result of that with a word."""
        if request.body["messages"][-1]["role"] == "tool":
            return Text("Done.")
        number, session = _ASKED.findall(request.prompt)[-1]
        chance = Random(f"{self._seed} {number}")
        is_long = chance.random() < 1 / 6
        duration = chance.uniform(0.5, 1.5) * self._lease if is_long else chance.expovariate(2.0)
        arguments = {"command": self.command(session, duration, number)}
        return Tools([{"tool": "shell", "arguments": arguments}])

    def command(self, session: str, duration: float, label: str = "") -> str:
        """Return a shell command that takes so many seconds."""
        began, doubled = shlex.quote(str(self._began)), shlex.quote(str(self._doubled))
        lock = shlex.quote(str(self._folder / f"{session}.lock"))
        work = shlex.quote(f"echo {session} {label} $$ >> {began}; sleep {duration:.2f}; true")
        found = f"echo {session} {label} `date +%s.%N` >> {doubled}"
        return f"flock -n -E 9 {lock} sh -c {work} || [ $? -ne 9 ] || {found}"

    @property
    def count(self) -> int:
        """How many commands have begun."""
        return len(self._began.read_text().splitlines())

    def doubled(self) -> list[str]:
        """List the commands that found another one of their session alive: session, label, time."""
        return self._doubled.read_text().splitlines()
