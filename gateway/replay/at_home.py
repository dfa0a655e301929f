"""A replay of a session of a home: the surroundings it is decided in, and what is kept of it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...journal import entries as e
from ...journal.codec import decode_entry, encode_entry
from ...journal.memory import MemoryStore
from ...journal.recovery import recovered
from ...journal.store import SessionRow, Store, StoredEntry
from ...machines.conversation import Usage
from ...machines.errors import UsageError
from ...workflows.config import load
from ...workflows.document import config_error, is_table, read_document
from ...workflows.paths import Paths
from ...workflows.suggestions import is_path
from ...workspace.scratch import scratch_copy
from ..home.retention import replay_folder
from ..host.host import Host
from ..host.offline_writer import writing
from ..launch_options import LaunchOptions
from ..own_agent import own_agent
from .replay import Replay, Replayer, ReplayOptions

if TYPE_CHECKING:
    from ..library import Agent


def replayed_in(
    store: Store,
    row: SessionRow,
    paths: Paths,
    environ: Mapping[str, str],
    options: ReplayOptions,
    own: Agent | None = None,
) -> Replay:
    """Replay a session of a home, and keep what came as another one. Raises `SteersmanError`.

    The surroundings are made of the configuration for its folder; `own` is a program's agent that it ran.
    """

    def host_of(environ: Mapping[str, str]) -> Host:
        config = load(paths, Path(row.folder), environ)
        return closing_with.enter_context(
            closing(Host(paths, config, environ, LaunchOptions(), MemoryStore()))
        )

    with ExitStack() as closing_with:
        host = other = host_of(environ)
        if own is not None:
            introduce(host, row.agent, own)
        if is_path(options.agent):
            other = host_of({**environ, "STEERSMAN_CONFIG": options.agent})
            options = replace(options, agent=_agent_of(Path(options.agent), row.agent))
        stored = store.entries(row.session, 0, row.seq)
        found, player = Replayer(host, other).play(stored, options)
        copies = host.runtime.shared.storage.copies
    kept, session = player.kept, secrets.token_hex(4)
    opened = replace(
        player.script.opened,
        session=session,
        parent="" if options.is_live else row.session,
        replay_of=f"{row.session}@{found.common}",
    )
    name = f"replay of {row.name or row.session}"
    if options.is_live:
        kept = _without_begun(kept)
        scratch = replay_folder(paths, session) / Path(row.folder).name
        scratch.parent.mkdir(mode=0o700, parents=True)
        ended = {entry.data["call"] for entry in kept if entry.data["kind"] == "tool_ended"}
        try:
            lost = scratch_copy(copies, Path(row.folder), row.session, ended, scratch, environ)
            opened = replace(opened, folder=str(scratch))
            found = replace(found, folder=str(scratch), lost=tuple(lost))
        except OSError as error:
            why = f"`{row.folder}` cannot be copied: {error.strerror or error}"
            raise UsageError(why, "leave out `--live`, or free disk space") from error
    keep(store, opened, kept, name, row)
    return replace(found, session=session)


def introduce(host: Host, name: str, agent: Agent) -> None:
    """Let a name mean a program's agent, whose own tools need no rule. Raises `UsageError`."""
    host.opener.profiles.introduce(name, replace(own_agent(agent, host, None), is_installed=False))


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
    store: Store, opened: e.SessionOpened, kept: list[StoredEntry], name: str, of: SessionRow
) -> None:
    """Write what came of a replay as a session of the home: below the one it is of, and finalized.

    One that is to go on stands for itself, and is suspended. Its times are moved so that the last entry
    was written now, and nothing was paid for what came from the record.
    """
    moved, common = time.time() - kept[-1].time, int(opened.replay_of.rpartition("@")[2])
    row = SessionRow(
        session=opened.session,
        parent=opened.parent,
        root=of.root or of.session if opened.parent else "",
        folder=opened.folder,
        agent=opened.agent,
        created=kept[0].time + moved,
        place=of.place,
    )
    store.create(row)
    entries: list[tuple[StoredEntry, e.Entry]] = []
    for one in kept:
        entry = opened if one.seq == 1 else decode_entry(one.data)
        if one.seq <= common and hasattr(entry, "usage"):
            entry = replace(entry, usage=Usage())
        entries.append((replace(one, time=one.time + moved, data=encode_entry(entry)), entry))
    with writing(store, opened.session) as writer:
        writer.keep_all(entries)
        now, state = time.time(), writer.record.state
        if state == "finalized":
            return
        if state not in ("idle", "suspended"):
            writer.write(now, recovered(writer.record))
        writer.write(now, e.SessionRenamed(name=name))
        if opened.parent:
            ending = e.SessionFinalizing(cause="replay")
            writer.write(now, ending, e.SessionFinalized(finalize="", cause="replay"))
        elif state != "suspended":
            writer.write(now, e.SessionLeaving(cause="replay"), e.SessionSuspended(cause="replay"))
