"""Commands on a session that another process may have open: most are slash commands, declared there.

`twin` makes the command line's form of a slash command from its declaration: the parameters have names,
types, choices and helps, and the docstring of the function is the help. A twin is `FAMILY VERB` in the
group of its family (`queue add`), or `sessions NAME ID` (`sessions mode last plan`). `EXCEPTIONS` names
the slash commands whose form is written by hand, and those without one, each with its reason.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ...gateway.commands.command import Command, CommandCall, Parameter
from ...gateway.commands.registry import COMMANDS
from ...gateway.events.contract import ReceiptEvent
from ...gateway.home.home import named_session, whole_row
from ...gateway.reach import SessionReach
from ...gateway.wording.acknowledgement import rejected_text
from ...journal.store import RowFilter, SessionRow, Store
from ...machines.errors import UsageError
from ...machines.pattern import lazy_pattern
from ...workflows.home_folder import expanded
from ...workflows.paths import Paths
from ..options import Json, Of
from ..output import show, show_document, warn
from ..stored import stored

EXCEPTIONS: Mapping[str, tuple[str, str]] = {
    "queue list": ("queue list", "it is read from the store, which needs no answer"),
    "queue restore": ("queue restore", "it lists, also of all sessions; no queue is brought here"),
    "queue discard": ("queue discard", "the session may be named without `--session`, too"),
    "queue resume": ("queue resume", "it resumes in the session itself; no queue is brought here"),
    "goal": ("goal set", "without a text it would be `goal status`"),
    "goal next": ("goal set", "it is the option `--next`"),
    "goal status": ("goal status", "it is read from the store"),
    "agents list": ("agents list", "it is read from the store"),
    "permissions": ("permissions list", "the rules are those of the folder"),
    "permissions list": ("permissions list", "the rules are those of the folder"),
    "permissions explain": ("permissions explain", "it goes by the rules of the folder"),
    "routes": ("routes list", "it shows the tables of the folder"),
    "routes use": ("routes use", "without `--session` it is for a folder"),
    "routes explain": ("routes explain", "it goes by the tables of the folder"),
    "rename": ("sessions rename", "it writes the journal of a session that no process has open"),
    "finalize": ("sessions finalize", "it opens a session that no process has open"),
    "export": ("sessions export", "it reads the store, and may write to standard output"),
    "history": ("sessions show", "it reads the store, the whole conversation"),
    "resume": ("sessions resume", "it opens a chat"),
    "inspect": ("inspect", "it reads the store, also the past"),
    "show": ("inspect", "`--events` has each call with its output"),
    "diff": ("sessions diff", "it also compares two sessions"),
    "stop": ("stop", "it takes no message"),
    "steer": ("send", "it is the option `--as steer`"),
    "help": ("", "each command has `--help`"),
    "queue": ("", "its verbs are commands"),
    "agents": ("", "its verbs are commands"),
    "smalltalk": ("", "its answer comes later, as an event"),
    "edit-last": ("", "it puts another session in the place of this one"),
    "new": ("", "it puts another session in the place of this one"),
    "init": ("", "it is a message, which `send` sends"),
    "copy": ("", "it copies to the clipboard of the terminal in which it is typed"),
    "shell": ("", "it is a command of one's own, which a shell runs"),
    "kill": ("", "it stops commands of one's own"),
    "share": ("", "it sends the output of a command of one's own"),
    "exit": ("", "it leaves the interface in which it is typed"),
    "detach": ("", "it leaves the interface in which it is typed"),
    "tools": ("", "its tools are known only to the program that has the session open"),
    "context": ("", "its tools are known only to the program that has the session open"),
    "mcp": ("", "servers run only in the program that has the session open"),
    "mcp restart": ("", "servers run only in the program that has the session open"),
}
"""Slash commands that have no twin: the command in its place, if there is one, and why."""

TAKEN = {
    "interrupt": "Interrupting",
    "queue": "Queued",
    "side_talk": "Side talk started",
    "posted": "Posted",
    "steer": "Steering",
    "turn": "Started",
}
"""What a message was accepted as, in words that its number follows."""


def twin(declared: Command[...], session: Any = Of) -> Callable[..., int]:
    """Make the function of a command that runs a slash command; `session` is how its session is named."""

    def run(session: str, as_json: bool, **given: Any) -> int:
        arguments = {
            parameter.name: _read(parameter, given[parameter.name])
            for parameter in declared.parameters
            if given[parameter.name] not in (None, parameter.default)
        }
        return run_on(session, CommandCall(command=declared, arguments=arguments), as_json=as_json)

    own = [_typed(parameter) for parameter in declared.parameters]
    of = _keyword("session", session, "" if session is Of else inspect.Parameter.empty)
    own.sort(key=lambda parameter: parameter.default is not inspect.Parameter.empty)
    parameters = [*own, of] if session is Of else [of, *own]
    parameters.append(_keyword("as_json", Json, False))
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__doc__, run.__module__ = declared.function.__doc__, declared.function.__module__
    return run


def _typed(parameter: Parameter) -> inspect.Parameter:
    """Declare a parameter of a slash command for Typer."""
    kind: Any = Path if parameter.of == "file" else parameter.type
    if parameter.is_repeated:
        kind = list[kind]
    default = None if parameter.is_repeated else parameter.default
    if default is None:
        kind = kind | None
    shown = parameter.shown.partition(" ")[2] if parameter.is_option else parameter.shown
    if parameter.is_option:
        info: Any = typer.Option(parameter.option, metavar=shown or None, help=parameter.help)
    else:
        info = typer.Argument(metavar=shown, help=parameter.help)
    return _keyword(parameter.name, Annotated[kind, info], default)


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, annotation=annotation, default=default)


def _read(parameter: Parameter, value: Any) -> Any:
    """Return an argument of the slash command. Raises `UsageError`."""
    if parameter.of == "file":
        return str(expanded(value).absolute())
    if parameter.is_repeated:
        return tuple(value)
    if parameter.is_needed and parameter.of and value == "":
        raise UsageError("which one?", f"{parameter.shown} is empty")
    if not parameter.choices:
        return value
    try:
        return parameter.read(value)
    except ValueError as error:
        raise UsageError(str(error), "the help of the command has its choices") from None


def run_on(session: str, call: CommandCall, *, as_json: bool) -> int:
    """Run a command on a session, also one that another process has open; print its result."""
    with stored(os.environ) as store:
        row = session_here(store, session)
        receipt = (
            SessionReach(Paths.of(os.environ), os.environ, store).remote(row.session).run(call)
        )
    if not as_json and receipt["type"] == "result" and receipt["ok"]:
        saved = (receipt["data"] or {}).get("session")
        if not isinstance(saved, str) or saved == row.session:
            say_which(session, row)
        elif saved not in receipt["text"]:
            warn(f"Of session {saved}, whose queue is saved:")
    return show_receipt(receipt, as_json=as_json)


_LOOKED_AT = 50
"""Sessions of a folder among which one is looked for that a program has open."""


def session_here(store: Store, name: str) -> SessionRow:
    """Find a session; without a name that of this folder, else the newest of all.

    Of those of the folder it is the newest that a program has open, else the newest. Raises `UsageError`.
    """
    if name:
        return named_session(store, name)
    owned = store.owners()
    newest = RowFilter(folder=str(Path.cwd()), is_top=True, most=_LOOKED_AT if owned else 1)
    for row in store.sessions(newest):
        if row.session in owned:
            return whole_row(store, row)
    return named_session(store, "last")


def say_which(name: str, found: SessionRow) -> None:
    """Name the session that was found where a person has not."""
    which = {"": "that of this folder", "last": "the newest"}.get(name)
    if which:
        warn(f"Of session {found.session}, {which}:")


def find_for_listing(store: Store, name: str) -> SessionRow | None:
    """Find a session to list; `None`, with a notice, if there is no session yet.

    Raises `UsageError` for a name that no session has.
    """
    try:
        found = session_here(store, name)
        if not name:
            say_which(name, found)
        return found
    except UsageError:
        if name not in ("", "last"):
            raise
    warn("There is no session yet; `steersman chat` starts one.")
    return None


def show_receipt(receipt: ReceiptEvent, *, as_json: bool) -> int:
    """Print what became of a message or command; return the exit code."""
    is_taken = receipt["type"] == "accepted" or (receipt["type"] == "result" and receipt["ok"])
    if as_json:
        show_document(receipt["data"] if receipt["type"] == "result" else dict(receipt))
    elif is_taken:
        show(_words(receipt))
    else:
        warn(_words(receipt))
    return 0 if is_taken else 1


_SLASH = lazy_pattern(
    r"(?<![\w/.`-])/([a-z][a-z-]*)(?: ([a-z]+))?((?: [A-Z0-9]+)*)(?![\w/`-]| there)"
    r"|`/([a-z][a-z-]*)(?: ([a-z]+))?((?: [^`\n]{1,80})?)`(?! there)"
)
"""A slash command as a text for people names it: its name, perhaps a verb, what is to be filled in.

One that is to be typed `there` is not meant.
"""
_ALIKE = {
    **dict.fromkeys(("goal", "queue resume", "queue discard"), ""),
    "goal next": "goal set --next{rest} --session {session}",
    "stop": "stop {session}",
    "steer": "send {session}{rest} --as steer",
}
"""Slash commands whose form in the shell is written by hand and does the same, and that form.

It is empty for one that is built as others are.
"""
_ITEM = lazy_pattern(
    r"(\s*#\d+(?: \[[A-Z]+\][^:\n]*| reads now)?: )(.*?)( \(`/queue resume \d+` goes on with it\))?"
)
"""A line with a message of a queue: its number and state, its text, and how it goes on."""
_QUOTES = ("history", "show", "diff")
"""Commands whose answer is what others wrote."""
_NAMES_ONE = lazy_pattern(r" (?:ID|[0-9a-f]{4,})\b")


def in_shell(text: str, session: str) -> str:
    """Name commands of families as the command line has them, in a text that was written for a chat."""
    translated = partial(_SLASH.sub, partial(_in_shell, session))
    return "\n".join(_around_words(line, translated) for line in text.split("\n"))


def _around_words(line: str, translated: Callable[[str], str]) -> str:
    """Translate a line, but not the message in it, which people wrote."""
    if (item := _ITEM.fullmatch(line)) is None:
        return translated(line)
    return f"{translated(item[1])}{item[2]}{translated(item[3] or '')}"


def _in_shell(session: str, found: re.Match[str]) -> str:
    family, verb, rest = (found[at] or found[at + 3] or "" for at in (1, 2, 3))
    declared = COMMANDS.built_in.get(family)
    is_verb = declared is not None and verb in declared.verbs
    name, behind = (f"{family} {verb}", "") if is_verb else (family, verb and f" {verb}")
    own = EXCEPTIONS.get(name, (name,))[0]
    if declared is not None and found[4] and " " not in name and name not in EXCEPTIONS:
        command = " ".join(filter(None, ("sessions", name, session, verb, rest.strip())))
        return f"`steersman {command}`"
    if (form := _ALIKE.get(name)) and found[0].startswith("`"):
        return f"`steersman {form.format(rest=rest, session=session)}`{behind}"
    if " " not in own or form or (name in EXCEPTIONS and name not in _ALIKE):
        return found[0]
    has_option = family in ("goal", "queue") and not _NAMES_ONE.search(rest)
    command = f"{own}{rest}{f' --session {session}' if has_option else ''}"
    return f"`steersman {command}`{behind}"


def _words(receipt: ReceiptEvent) -> str:
    match receipt["type"]:
        case "result" if receipt["data"].get("reason") == "several":
            *listed, _ = receipt["text"].splitlines()
            return "\n".join((*listed, "Say which one by its id: `--session ID`."))
        case "result" if receipt["name"] in _QUOTES:
            return receipt["text"] or "Done."
        case "result":
            return in_shell(receipt["text"], receipt["session"]) or "Done."
        case "rejected" if hint := receipt.get("hint"):
            return rejected_text({**receipt, "hint": in_shell(hint, receipt["session"])})
        case "rejected":
            return rejected_text(receipt)
        case "accepted":
            number = receipt["number"]
            at = f" as #{number}" if number is not None else ""
            return f"{TAKEN.get(receipt['as'], 'Accepted')}{at} ({receipt['session']})."
