"""The commands about the session itself: its name, its history, its export, its end, other sessions."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from ...machines import protocol as m
from ...machines.errors import SteersmanError
from ...workflows.home_folder import expanded
from ..client import SessionClient
from ..home.home import candidates, find_session, refuse_run
from ..recall import recalled
from ..session_info import SessionChoice, chosen, numbered, resumable
from ..views.session_file import exported, markdown, write_new
from ..views.tree import draw_dump
from ..wording.formats import item_line
from ..wording.redaction import Redactor
from ..wording.terminal import clean
from .command import Argument, Reply, command

LONGEST_NAME = 80
SHOWN = 20
"""Messages that are shown by default."""


def clean_name(text: str) -> str:
    """Return a typed name as one line without escape sequences, at most `LONGEST_NAME` long."""
    return Redactor({}).line(clean(text))[:LONGEST_NAME].strip()


@command("rename", "session", "Call this session something.", is_shared=True)
def rename(client: SessionClient, called: Annotated[str, Argument("NAME", is_rest=True)]) -> Reply:
    """Name the session; the name is listed, and finds the session."""
    name = clean_name(called)
    if not name:
        return Reply(ok=False, text="Which name? /rename NAME")
    answer = client.ask(m.Rename(name=name))
    is_ok = bool(answer.get("ok", True))
    data = {"session": client.session, "name": name}
    return Reply(
        ok=is_ok, data=data, text=f"This session is called {name} now." if is_ok else "Not renamed."
    )


@command("history", "session", "Show the last messages of the conversation.", is_shared=True)
def show_history(client: SessionClient, count: Annotated[int, Argument("N")] = SHOWN) -> Reply:
    """Show the newest messages of the conversation."""
    data, lines = newest_messages(client, client.session, count)
    spoken = client.record().spoken
    left = spoken - len(data)
    if left > 0:
        lines = [f"({left} earlier messages: /history {spoken})", *lines]
    return Reply(data={"messages": data}, text="\n".join(lines) or "There are no messages yet.")


def newest_messages(
    client: SessionClient, session: str, count: int = SHOWN
) -> tuple[list[dict[str, str]], list[str]]:
    """Return the newest messages of a session or a subagent of it, as data and as lines for people."""
    redactor = client.view.redactor
    shown = list(islice(client.view.newest_messages(session), max(0, count)))[::-1]
    data = [{"role": message.role, "text": redactor.text(message.text)} for message in shown]
    lines: list[str] = []
    for entry, message in zip(data, shown, strict=True):
        calls = ", ".join(redactor.line(call.tool) for call in message.tool_calls)
        lines.append(f"{entry['role']}: {entry['text']}" + (f" [{calls}]" if calls else ""))
    return data, lines


@command("export", "session", "Write the session as Markdown, or as JSON.")
def export(client: SessionClient, file: Annotated[str, Argument("FILE")]) -> Reply:
    """Write the session to a file: JSON if the file's name ends so, else Markdown."""
    store = client.store
    client.settle()
    row = store.load(client.session).row
    path = Path(row.folder, expanded(file))
    redactor = client.view.redactor
    is_json = path.suffix == ".json"
    lines = exported(store, row, redactor) if is_json else markdown(store, row, redactor)
    try:
        write_new(path, lines)
    except OSError as error:
        return Reply(ok=False, text=f"`{path}` was not written: {error.strerror}.")
    return Reply(data={"file": str(path)}, text=f"Written: {path}")


@command("resume", "session", "List other sessions, or take one up instead.")
def resume(
    client: SessionClient,
    session: Annotated[str, Argument("N|ID|TITLE", is_rest=True, of="session")] = "",
) -> Reply:
    """List the sessions that can be resumed here, or leave this session for one of them.

    `session` is a number of that list, an id, a name, or words of a title.
    """
    store, here = client.store, client.session
    if not session:
        return _listed(resumable(store, client.view.redactor, here))
    if session == here:
        return Reply(ok=False, text=f"This is session {here}. `/resume` lists the others.")
    try:
        name = chosen(resumable(store, client.view.redactor, here), session)
        rows = (row for row in candidates(store, name) if row.session != here)
        wanted = find_session([row for row in rows if row.seq and not row.parent], name)
        refuse_run(wanted)
        client.switch(wanted.session)
    except SteersmanError as error:
        return Reply(ok=False, text=f"{error.message}. {error.hint}".strip())
    text = f"Session {wanted.session}; {here} was left, everything in it is kept."
    last = recalled(store, wanted.session, client.view.redactor)
    return Reply(text=f"{text}\n{last}".rstrip())


def _listed(choices: list[SessionChoice]) -> Reply:
    if not choices:
        return Reply(data={"sessions": []}, text="There is no other session.")
    data = [choice.view() for choice in choices]
    text = "\n".join([*numbered(choices), "/resume N, an id or words of a title resumes one."])
    return Reply(data={"sessions": data}, text=text)


@command("finalize", "session", "End this session permanently, and exit.")
def finalize(client: SessionClient) -> Reply:
    """Finalize the session, and leave."""
    session = client.session
    client.finalize()
    return Reply(data={"session": session}, text=f"Session {session} is finalized.", leaves=True)


@command("new", "session", "End this session permanently and start another.")
def begin_new(
    client: SessionClient, *, is_sure: Annotated[bool, Argument("--yes")] = False
) -> Reply:
    """Finalize the session and begin another in its place; what waits ends only with `--yes`."""
    before = client.session
    items: list[dict[str, Any]] = client.queue(is_all=True)["items"] if client.is_open else []
    items = [item for item in items if item["state"] != "unanswered"]
    waiting = [item for item in items if item["state"] != "running"]
    if waiting and not is_sure:
        lines = ["This waits, and would end with the session:", *map(item_line, waiting)]
        lines.append("`/new --yes` begins another session all the same.")
        data = {"reason": "waiting", "left": len(waiting)}
        return Reply(ok=False, data=data, text="\n".join(lines))
    left = len(items)
    client.renew()
    data = {"finalized": before, "session": client.session, "left": left}
    what = f" What waited in {before} ({left}) ended with it." if left else ""
    back = f"\n{before} has ended; `steersman sessions fork {before}` takes up its conversation."
    return Reply(data=data, text=f"New session {client.session}.{what}{back}")


@command("exit", "session", "Save everything and leave.", "quit", is_shared=True)
def leave(client: SessionClient) -> Reply:
    """End the interface, which leaves the session."""
    return Reply(leaves=True)


@command(
    "detach",
    "session",
    "Leave the terminal; the session goes on in `steersman serve`.",
    is_shared=True,
)
def detach(client: SessionClient) -> Reply:
    """Explain why a session ends with its terminal; a terminal elsewhere answers this by leaving."""
    text = (
        "This session runs in the program that you type into, and would end with it. Sessions of chats "
        "that begin while `steersman serve` runs go on there: /exit, `steersman serve`, and "
        f"`steersman chat --resume {client.session}`."
    )
    return Reply(ok=False, data={"reason": "no_server"}, text=text)


@command("inspect", "session", "Show the state of every part of the session.", is_shared=True)
def inspect(client: SessionClient) -> Reply:
    """Show the dump of the session as a tree."""
    data = client.view.inspect()
    return Reply(data=data, text=draw_dump(data))
