"""The commands of `steersman sessions` that change sessions, or copy them."""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import starmap
from pathlib import Path
from typing import Annotated

from ...gateway.commands.session import clean_name, finalize, rename
from ...gateway.home import retention
from ...gateway.home.home import named_row, named_session, open_store
from ...gateway.home.retention import family
from ...gateway.host.host import Host
from ...gateway.host.offline_writer import writing
from ...gateway.launch_options import LaunchOptions
from ...gateway.reach import SessionReach
from ...gateway.views.evidence import check_signature, kept_heads, sign, verified
from ...gateway.views.session_file import exported, fork, imported, markdown, read_export, write_new
from ...gateway.views.takeover import find_transcript, take_over, transcripts_in
from ...gateway.wording.formats import age, iso, size_text
from ...gateway.wording.redaction import redactor_of
from ...journal import entries as e
from ...journal.chain import ChainFault, ChainReport, Kept
from ...journal.codec import encode_whole
from ...journal.store import Store
from ...machines.errors import SteersmanError, StoreDamaged, UnknownSession, UsageError
from ...ports.tools.text import counted
from ...workflows.config import load
from ...workflows.paths import Paths
from ..exit_codes import DONE, FAILED
from ..options import Json, Session, argument, flag, option
from ..output import escaped, show_document, show_either, show_lines, show_table, warn
from ..stored import stored

FORMATS = ("markdown", "json")


def rename_session(
    session: Session,
    name: Annotated[str, argument("NAME", "The new name.")],
    as_json: Json = False,
) -> None:
    """Give a session a name by which it can be found.

    Example: steersman sessions rename last "the zod migration"
    """
    cleaned = clean_name(name)
    if not cleaned:
        raise UsageError("that is no name", 'steersman sessions rename last "the zod migration"')
    paths = Paths.of(os.environ)
    with closing(open_store(paths)) as store:
        row = named_session(store, session)
        if store.is_owned(row.session):
            receipt = (
                SessionReach(paths, os.environ, store).remote(row.session).run(rename(cleaned))
            )
            if receipt["type"] != "result" or not receipt["ok"]:
                raise SteersmanError(f"session `{row.session}` was not renamed", "try again")
        else:
            with writing(store, row.session) as offline_writer:
                offline_writer.write(time.time(), e.SessionRenamed(name=cleaned))
    show_either({"session": row.session, "name": cleaned}, f"{row.session}: {cleaned}", as_json)


def fork_session(
    session: Session,
    at: Annotated[str, option("TURN", "The last turn to copy, as 3 or t3.")] = "",
    as_json: Json = False,
) -> None:
    """Start a new session with the conversation of this one; files are not touched.

    Example: steersman sessions fork last --at 3
    """
    with closing(open_store(Paths.of(os.environ))) as store:
        row = named_session(store, session)
        made = fork(store, row, at, time.time())
    text = f"{made}: `steersman chat --resume {made}`. It has the conversation and the settings: "
    text += "files are as they are, and nothing waits."
    show_either({"session": made, "forked_from": row.session}, text, as_json)


def export_session(
    session: Session,
    file: Annotated[Path | None, argument("[FILE]", "If left out, standard output.")] = None,
    form: Annotated[str, option("FORMAT", "markdown or json.", "--format")] = "",
    whole: Annotated[bool, flag("--whole", "JSON with all data, including secrets.")] = False,
    key: Annotated[
        Path | None, option("KEY", "Sign FILE with this SSH key: FILE.sig.", "--sign")
    ] = None,
) -> None:
    """Write a session as Markdown, or as JSON for `sessions import`.

    Example: steersman sessions export last session.json
    """
    file = None if file == Path("-") else file
    form = form or ("json" if file is not None and file.suffix == ".json" else "markdown")
    if key is not None and file is None:
        raise UsageError("what goes to standard output is not signed", "name a FILE")
    if form not in FORMATS:
        raise UsageError(f"there is no format `{form}`", f"formats: {', '.join(FORMATS)}")
    with stored(os.environ) as store:
        row = named_session(store, session)
        redactor = redactor_of(os.environ, row.folder)
        lines: Iterator[str]
        if form == "json":
            lines = map(escaped, exported(store, row, None if whole else redactor))
        else:
            lines = markdown(store, row, redactor)
        if file is None:
            show_lines(lines)
        else:
            try:
                write_new(file, lines)
            except OSError as error:
                hint = "name a file that does not exist yet, in a folder that does"
                raise SteersmanError(f"`{file}` was not written: {error.strerror}", hint) from error
            signature = f", signed in {sign(file, key)}" if key is not None else ""
            warn(f"{row.session}: {file}{signature}")


def import_session(
    file: Annotated[
        str, argument("[FILE]", "A JSON file written by `export`; with --from, an id or `last`.")
    ] = "",
    source: Annotated[
        str, option("AGENT", "Take over a session of claude, codex, opencode or pi.", "--from")
    ] = "",
    new_id: Annotated[
        bool, flag("--new-id", "Import it under a new id if it exists already.")
    ] = False,
    signers: Annotated[
        Path | None,
        option("FILE", "Take only what one of these signed, as in ssh's allowed_signers."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Import an exported session, or the transcript of another agent; runs nothing.

    A file that was changed after its export is refused. Without an id, `--from` lists the transcripts
    of this folder, newest first.

    Example: steersman sessions import session.json
    """
    paths, here = Paths.of(os.environ), Path.cwd()
    if source:
        if signers is not None:
            raise UsageError("no agent signs its transcripts", "leave out `--signers`")
        if file:
            _take_over(paths, here, source, file, new_id, as_json)
        else:
            _list_transcripts(here, source, as_json)
        return
    if not file:
        raise UsageError("which file?", "name one that `sessions export` wrote, or give `--from`")
    signer = check_signature(Path(file), signers) if signers is not None else ""
    data, agent = read_export(Path(file)), load(paths, here, os.environ).default_agent
    name = secrets.token_hex(4) if new_id else ""
    with closing(open_store(paths)) as store:
        session, was_new = imported(store, data, file, str(here), agent, name)
    text = (
        f"{session}: imported into {here}; nothing runs, and nothing is allowed that was allowed there. "
        f"`steersman chat --resume {session}` goes on with it."
        if was_new
        else f"{session} is here already."
    )
    text += f" Signed by {signer}." if signer else ""
    about = {"signer": signer} if signer else {}
    show_either({"session": session, "new": was_new, **about}, text, as_json)


def _list_transcripts(here: Path, agent: str, as_json: bool) -> None:
    found, redactor = transcripts_in(agent, here, os.environ), redactor_of(os.environ)
    if as_json:
        views = [
            {"id": listed.id, "updated": iso(listed.updated), "title": redactor.line(listed.title)}
            for listed in found
        ]
        show_document({"agent": agent, "folder": str(here), "transcripts": views})
        return
    if not found:
        warn(f"{agent} has no transcript of {here}; one of another folder is named by its id.")
        return
    now = time.time()
    rows = [
        (listed.id, age(now - listed.updated), redactor.line(listed.title) or "-")
        for listed in found
    ]
    show_table(("TRANSCRIPT", "LAST CHANGE", "TITLE"), rows)
    warn(f"`steersman sessions import --from {agent} ID` takes one over; `last` is the first.")


def _take_over(paths: Paths, here: Path, agent: str, name: str, again: bool, as_json: bool) -> None:
    listed, own = find_transcript(agent, name, here, os.environ), load(paths, here, os.environ)
    with closing(open_store(paths)) as store:
        done = take_over(store, agent, listed, here, own.default_agent, time.time(), again=again)
    session, damaged = done["session"], done["damaged"]
    parts = f"{counted(done['messages'], 'message')} and {counted(done['calls'], 'call')}"
    lines = [f"{session} has this transcript already; `--new-id` imports it again."]
    if done["new"]:
        lines = [
            f"{session}: {parts} of {agent}, in {done['folder']}; nothing runs, and nothing is allowed "
            f"that was allowed there. `steersman chat --resume {session}` goes on with it."
        ]
    if done["new"] and done["earlier"]:
        lines.append(f"Imported before, as it was then: {', '.join(done['earlier'])}.")
    if skipped := [f"{number} of {kind}" for kind, number in done["skipped"].items()]:
        lines.append(f"Left out, of unknown kinds: {', '.join(skipped)}.")
    if more := done["damaged_count"]:
        lines.append(f"Left out, {counted(more, 'damaged record')}: {'; '.join(damaged)}.")
    show_either(done, "\n".join(map(redactor_of(os.environ).line, lines)), as_json)


def verify_session(
    session: Annotated[str, argument("[ID]", "A session; if left out, with `--all`, each.")] = "",
    all_of_them: Annotated[bool, flag("--all", "All sessions of the home.")] = False,
    heads: Annotated[
        Path | None, option("FILE", "What `--json` printed before: it must still hold.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Say whether a session's journal is as it was written, by its chain of hashes.

    Prints the newest hash, which stands for the whole journal: keep it elsewhere to prove more. Exits
    with 1, and the first entry that does not fit.

    Example: steersman sessions verify --all
    """
    if bool(session) == all_of_them:
        raise UsageError("which session?", "name one, or give `--all`")
    kept = kept_heads(heads) if heads is not None else {}
    with stored(os.environ) as store:
        names = [row.session for row in store.sessions()]
        if all_of_them:
            names += sorted(kept.keys() - set(names))
        else:
            names = [named_session(store, session).session]
        found = [(name, _verified(store, name, kept.get(name))) for name in names]
    data = [{"session": name, **encode_whole(report)} for name, report in found]
    text = "\n".join(starmap(_chain_line, found))
    show_either({"sessions": data}, text or "There are no sessions.", as_json)
    return FAILED if any(report.fault for _, report in found) else DONE


def _verified(store: Store, session: str, kept: Kept | None) -> ChainReport:
    try:
        return verified(store, session, kept)
    except UnknownSession:
        gone = ChainFault(seq=1, what="is missing, with its session")
        return ChainReport(entries=0, unproven=0, head="", fault=gone)
    except StoreDamaged as damage:
        fault = ChainFault(seq=0, what=f"cannot be read: {damage.message}")
        return ChainReport(entries=0, unproven=0, head="", fault=fault)


def _chain_line(session: str, report: ChainReport) -> str:
    if report.fault is not None:
        return f"{session}: entry {report.fault.seq} {report.fault.what}"
    bare = f", {report.unproven} of them without a hash" if report.unproven else ""
    return f"{session}: {counted(report.entries, 'entry')} as written{bare}; {report.head}"


def delete_session(
    session: Session,
    yes: Annotated[bool, flag("--yes", "Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Delete a session permanently, with its outputs and copies of files.

    Example: steersman sessions delete 9f3a --yes
    """
    paths = Paths.of(os.environ)
    config = load(paths, Path.cwd(), os.environ)
    with closing(open_store(paths)) as store:
        row = named_row(store, session)
        below = len(family(store, row.session)) - 1
        if not yes and sys.stdin.isatty():
            called = f' "{redactor_of(os.environ).line(row.name)}"' if row.name else ""
            others = f" and {below} of its subagents" if below else ""
            warn(f"Delete session {row.session}{called}{others} permanently? Type its id:")
            yes = sys.stdin.readline().strip() == row.session
        if not yes:
            raise UsageError(
                "nothing was deleted",
                f"`steersman sessions delete {row.session} --yes` does not ask",
            )
        ids, freed = retention.delete_session(store, paths, config, os.environ, row.session)
    text = f"Deleted: {', '.join(ids)}"
    show_either({"deleted": ids, "freed": freed}, f"{text} ({size_text(freed)} of files).", as_json)


def finalize_session(session: Session, as_json: Json = False) -> None:
    """End a session permanently; it stays readable.

    Example: steersman sessions finalize last
    """
    paths = Paths.of(os.environ)
    with closing(open_store(paths)) as store:
        row = named_session(store, session)
        is_owned = store.is_owned(row.session)
        if is_owned:
            SessionReach(paths, os.environ, store).remote(row.session).run(finalize())
    if not is_owned and row.state != "finalized":
        config = load(paths, Path(row.folder), os.environ)
        with closing(Host(paths, config, os.environ, LaunchOptions())) as host:
            host.resume(row.session).finalize()
    show_either({"finalized": row.session}, f"{row.session} is finalized.", as_json)
