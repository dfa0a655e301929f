"""The commands about the session itself: its name, what was said in it, a copy of it, its end."""

from __future__ import annotations

import json
import os
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ...journal.recovery import load_record
from ...machines.errors import SteersmanError
from ...machines.messages import Rename
from ..formats import age
from ..home import find_session, refuse_run
from ..redaction import Redactor
from ..session_file import exported, markdown
from .reply import Reply

if TYPE_CHECKING:
    from ...journal.store import SessionRow
    from ..conversation import Conversation


LONGEST_NAME = 80
SHOWN = 20
"""Messages, or sessions, that are shown unless more are asked for."""


def clean_name(text: str) -> str:
    """Make a name of what a person typed: one line, nothing that moves a cursor, not too long."""
    return Redactor({}).line(text)[:LONGEST_NAME].strip()


def rename_command(conversation: Conversation, argument: str) -> Reply:
    """Call the session something; it is listed and found by that."""
    name = clean_name(argument)
    if not name:
        return Reply(False, text="Called what? /rename NAME")
    answer = conversation.ask(Rename(name))
    is_ok = bool(answer.get("ok", True))
    data = {"session": conversation.session, "name": name}
    return Reply(is_ok, data, f"This session is called {name} now." if is_ok else "Not renamed.")


def history_command(conversation: Conversation, argument: str) -> Reply:
    """Show the newest messages of the conversation."""
    count = int(argument) if argument.strip().isdigit() else SHOWN
    conversation.runtime.settle()
    record = load_record(conversation.runtime.store, conversation.session)
    redactor = Redactor(os.environ)
    shown = record.conversation[-count:] if count else ()
    data = [{"role": one.role, "text": redactor.text(one.text)} for one in shown]
    left = len(record.conversation) - len(shown)
    lines = [f"({left} earlier messages: /history {len(record.conversation)})"] if left else []
    for one, message in zip(data, shown, strict=True):
        calls = ", ".join(redactor.line(call.tool) for call in message.tool_calls)
        lines.append(f"{one['role']}: {one['text']}" + (f" [{calls}]" if calls else ""))
    return Reply(True, {"messages": data}, "\n".join(lines) or "Nothing was said yet.")


def export_command(conversation: Conversation, argument: str) -> Reply:
    """Write the session into a file: Markdown, or JSON by the file's name."""
    words = shlex.split(argument)
    if len(words) != 1:
        return Reply(False, text="Export into which file? /export FILE.md or FILE.json")
    store = conversation.runtime.store
    conversation.runtime.settle()
    row = store.load(conversation.session).row
    path = Path(row.folder, Path(words[0]).expanduser())
    redactor = Redactor(os.environ)
    if path.suffix == ".json":
        text = json.dumps(redactor.data(exported(store, row)), ensure_ascii=False)
    else:
        text = markdown(load_record(store, row.session), redactor)
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        return Reply(False, text=f"`{path}` was not written: {error.strerror}.")
    return Reply(True, {"file": str(path)}, f"Written: {path}")


def resume_command(conversation: Conversation, argument: str) -> Reply:
    """List the sessions that can be taken up here, or leave this one for one of them."""
    store = conversation.runtime.store
    here = conversation.session
    folder = store.load(here).row.folder
    rows = [one for one in store.sessions() if one.seq and one.session != here and not one.parent]
    if not argument.strip():
        here_too = [one for one in rows if one.folder == folder and not one.workflow]
        return _resumable(conversation, here_too)
    try:
        wanted = find_session(rows, argument.strip())
        refuse_run(wanted)
        conversation.switch(wanted.session)
    except SteersmanError as error:
        return Reply(False, text=f"{error.message}. {error.hint}".strip())
    data = {"session": wanted.session, "left": here}
    return Reply(
        True, data, f"Session {wanted.session}; {here} was left, everything in it is kept."
    )


def _resumable(conversation: Conversation, rows: list[SessionRow]) -> Reply:
    store, now = conversation.runtime.store, time.time()
    open_ones = [
        one for one in rows if one.state != "finalized" and not store.is_owned(one.session)
    ][:SHOWN]
    data = [{"id": one.session, "name": one.name, "waiting": one.waiting} for one in open_ones]
    lines = [
        f"{one.session}  {age(now - one.updated)}  {one.waiting} waiting  {one.name}".rstrip()
        for one in open_ones
    ]
    text = (
        "\n".join([*lines, "/resume ID takes one up."]) if lines else "There is no other session."
    )
    return Reply(True, {"sessions": data}, text)


def finalize_command(conversation: Conversation, argument: str) -> Reply:
    """End the session for good, and leave."""
    session = conversation.session
    conversation.runtime.finalize(session, "user")
    return Reply(True, {"session": session}, f"Session {session} has ended for good.", leaves=True)
