"""`steersman sessions rename`, `fork`, `export`, `import`, `delete`, `finalize`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from ..gateway.commands.session import clean_name
from ..gateway.deletion import delete, family
from ..gateway.errand import Errand
from ..gateway.fork import fork
from ..gateway.formats import size_text
from ..gateway.home import find_session, named_session, open_store
from ..gateway.host import Host
from ..gateway.redaction import Redactor
from ..gateway.scribe import writing
from ..gateway.session_file import exported, imported, markdown, read_export
from ..gateway.wish import Wish
from ..journal import entries as e
from ..journal.recovery import load_record
from ..machines.errors import SteersmanError, UsageError
from ..workflows.config import load
from ..workflows.paths import Paths
from .page import document, show, show_document, warn
from .stored import stored

FORMATS = ("markdown", "json")


def rename_session(environ: Mapping[str, str], session: str, name: str, *, as_json: bool) -> int:
    """Give a session a name, whoever has it open."""
    cleaned = clean_name(name)
    if not cleaned:
        raise UsageError("that is no name", 'steersman sessions rename last "the zod migration"')
    paths = Paths.of(environ)
    with closing(open_store(paths)) as store:
        row = named_session(store, session)
        if store.is_owned(row.session):
            said = f"/rename {cleaned}"
            receipt = Errand(paths, environ, store, row.session).say(said)
            if receipt["type"] != "result" or not receipt["ok"]:
                raise SteersmanError(f"session `{row.session}` was not renamed", "try again")
        else:
            with writing(store, row.session) as scribe:
                scribe.write(time.time(), e.SessionRenamed(cleaned))
    _tell({"session": row.session, "name": cleaned}, f"{row.session}: {cleaned}", as_json)
    return 0


def fork_session(environ: Mapping[str, str], session: str, turn: str, *, as_json: bool) -> int:
    """Begin a session with the conversation of another one."""
    with closing(open_store(Paths.of(environ))) as store:
        row = named_session(store, session)
        made = fork(store, row, turn, time.time())
    text = (
        f"{made}: `steersman chat --resume {made}`. Only the conversation was taken along: files "
    )
    text += "are as they are, and nothing waits."
    _tell({"session": made, "forked_from": row.session}, text, as_json)
    return 0


def export_session(
    environ: Mapping[str, str], session: str, file: Path | None, form: str, *, is_whole: bool
) -> int:
    """Write a session to a file, or to standard output. Raises `UsageError`."""
    form = form or ("json" if file is not None and file.suffix == ".json" else "markdown")
    if form not in FORMATS:
        raise UsageError(f"there is no format `{form}`", f"formats: {', '.join(FORMATS)}")
    redactor = Redactor(environ)
    with stored(environ) as store:
        row = named_session(store, session)
        if form == "json":
            data = exported(store, row)
            text = json.dumps(data) if is_whole else document(redactor.data(data), None)
        else:
            text = markdown(load_record(store, row.session), redactor)
    if file is None:
        show(text.rstrip("\n"))
        return 0
    try:
        with open(file, "x", encoding="utf-8") as out:
            out.write(text.rstrip("\n") + "\n")
    except OSError as error:
        raise SteersmanError(
            f"`{file}` was not written: {error.strerror}", "name a file that is not there yet"
        ) from error
    warn(f"{row.session}: {file}")
    return 0


def import_session(environ: Mapping[str, str], file: Path, *, is_new: bool, as_json: bool) -> int:
    """Take in an exported session; one that is here already stays as it is."""
    import secrets

    data = read_export(file)
    with closing(open_store(Paths.of(environ))) as store:
        session, was_new = imported(store, data, str(file), secrets.token_hex(4) if is_new else "")
    text = f"{session}: taken in; nothing runs." if was_new else f"{session} is here already."
    _tell({"session": session, "new": was_new}, text, as_json)
    return 0


def delete_session(
    environ: Mapping[str, str], session: str, *, is_sure: bool, as_json: bool
) -> int:
    """Delete a session for good, if whoever asks is sure."""
    paths = Paths.of(environ)
    config = load(paths, Path.cwd(), environ)
    queues = Path(config.auto_queue.persistence.path or paths.state / "queues").expanduser()
    with closing(open_store(paths)) as store:
        rows = store.sessions()
        row = find_session(rows, session)
        below = len(family(rows, row.session)) - 1
        if not is_sure and not _confirmed(row.session, row.name, below, environ):
            raise UsageError(
                "nothing was deleted",
                f"`steersman sessions delete {row.session} --yes` asks nobody",
            )
        ids, freed = delete(store, paths.state, queues, row.session)
        store.compact()
    text = f"Deleted: {', '.join(ids)}"
    _tell({"deleted": ids, "freed": freed}, f"{text} ({size_text(freed)} of files).", as_json)
    return 0


def finalize_session(environ: Mapping[str, str], session: str, *, as_json: bool) -> int:
    """End a session for good; its conversation stays readable."""
    paths = Paths.of(environ)
    with closing(open_store(paths)) as store:
        row = named_session(store, session)
        is_owned = store.is_owned(row.session)
        if is_owned:
            Errand(paths, environ, store, row.session).say("/finalize")
    if not is_owned and row.state != "finalized":
        config = load(paths, Path(row.folder), environ)
        with closing(Host(paths, config, environ, Wish())) as host:
            host.resume(row.session)
            host.runtime.finalize(row.session, "user")
    _tell({"finalized": row.session}, f"{row.session} has ended for good.", as_json)
    return 0


def _confirmed(session: str, name: str, below: int, environ: Mapping[str, str]) -> bool:
    if not sys.stdin.isatty():
        return False
    called = f' "{Redactor(environ).line(name)}"' if name else ""
    others = f" and {below} of its subagents" if below else ""
    warn(f"Delete session {session}{called}{others} for good? Type its id:")
    return sys.stdin.readline().strip() == session


def _tell(data: Mapping[str, object], text: str, as_json: bool) -> None:
    if as_json:
        show_document(data)
    else:
        show(text)
