"""A replay of a session of a home: the surroundings it is decided in, and what is kept of it."""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path

from msgspec.structs import replace

from ...journal import entries as e
from ...journal.codec import decode_entry, encode_entry
from ...journal.memory import MemoryStore
from ...journal.recovery import recovered
from ...journal.store import SessionRow, Store, StoredEntry
from ...machines.errors import UsageError
from ...workflows.config import load
from ...workflows.document import config_error, is_table, read_document
from ...workflows.paths import Paths
from ...workflows.suggestions import is_path
from ...workspace.scratch import scratch_copy
from ..host.host import Host
from ..host.offline_writer import writing
from ..launch_options import LaunchOptions
from .replay import Replay, Replayer, ReplayOptions


def replayed_in(
    store: Store,
    row: SessionRow,
    paths: Paths,
    environ: Mapping[str, str],
    options: ReplayOptions,
) -> Replay:
    """Replay a session of a home, and keep what came as another one. Raises `SteersmanError`.

    The surroundings are made of the configuration for its folder.
    """

    def host_of(environ: Mapping[str, str]) -> Host:
        config = load(paths, Path(row.folder), environ)
        return closing_with.enter_context(
            closing(Host(paths, config, environ, LaunchOptions(), MemoryStore()))
        )

    with ExitStack() as closing_with:
        host = other = host_of(environ)
        if is_path(options.agent):
            other = host_of({**environ, "STEERSMAN_CONFIG": options.agent})
            options = replace(options, agent=_agent_of(Path(options.agent), row.agent))
        stored = store.entries(row.session, 0, row.seq)
        found, player = Replayer(host, other).play(stored, options)
        copies = host.runtime.shared.storage.copies
    kept, scratch, lost = player.kept, None, list[str]()
    if options.is_live:
        kept = _without_begun(kept)
        scratch = Path(tempfile.mkdtemp(prefix="steersman-replay-")) / Path(row.folder).name
        ended = {entry.data["call"] for entry in kept if entry.data["kind"] == "tool_ended"}
        try:
            lost = scratch_copy(copies, Path(row.folder), row.session, ended, scratch, environ)
        except OSError as error:
            why = f"`{row.folder}` cannot be copied: {error.strerror or error}"
            raise UsageError(why, "leave out `--live`, or free disk space") from error
    name = f"replay of {row.name or row.session}"
    opened = replace(player.script.opened, folder=str(scratch or row.folder))
    session = keep(store, opened, kept, name, row.place)
    return replace(found, session=session, folder=str(scratch or ""), lost=tuple(lost))


def _agent_of(file: Path, recorded: str) -> str:
    """Return the agent that a configuration file is about. Raises `SteersmanError`."""
    document, diagnostics = read_document(file)
    if diagnostics:
        raise config_error(diagnostics)
    agents = document.data.get("agents", {})
    named = list(agents) if is_table(agents) else []
    if len(named) > 1 and recorded not in named:
        raise UsageError(
            f"`{file}` has several agents: {', '.join(named)}", "leave only one of them in it"
        )
    return named[0] if len(named) == 1 else recorded


def _without_begun(kept: list[StoredEntry]) -> list[StoredEntry]:
    """Return the entries up to the first call that has begun and not ended: it begins again."""
    ended = {entry.data["call"] for entry in kept if entry.data["kind"] == "tool_ended"}
    for number, entry in enumerate(kept):
        if entry.data["kind"] == "tool_intended" and entry.data["call"] not in ended:
            return kept[:number]
    return kept


def keep(
    store: Store, opened: e.SessionOpened, kept: list[StoredEntry], name: str, place: str
) -> str:
    """Write what came of a replay as a session of the home, which is suspended; return its id.

    Its times are moved so that the last entry was written now.
    """
    session = secrets.token_hex(4)
    moved = time.time() - kept[-1].time
    row = SessionRow(
        session=session,
        folder=opened.folder,
        agent=opened.agent,
        created=kept[0].time + moved,
        place=place,
    )
    store.create(row)
    entries = [(replace(one, time=one.time + moved), decode_entry(one.data)) for one in kept]
    first = replace(opened, session=session)
    entries[0] = replace(entries[0][0], data=encode_entry(first)), first
    with writing(store, session) as writer:
        writer.keep_all(entries)
        now = time.time()
        if writer.record.state == "finalized":
            return session
        if writer.record.state not in ("idle", "suspended"):
            writer.write(now, recovered(writer.record))
        writer.write(now, e.SessionRenamed(name=name))
        if writer.record.state != "suspended":
            writer.write(now, e.SessionLeaving(cause="replay"), e.SessionSuspended(cause="replay"))
    return session
