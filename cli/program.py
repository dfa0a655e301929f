"""Runs a command line, and reports what goes wrong in it."""

from __future__ import annotations

import errno
import os
import resource
import sys
from pathlib import Path

from ..machines.deprecation import renamed_arguments
from ..machines.errors import ConfigError, SteersmanError

LEAST = 128 << 20
"""Bytes of address space below which no thread can be counted on to start: Python then waits for ever."""
MOST_NAMED = 4
"""Commands that are named to somebody who typed only the last word of one."""
_REFUSED = (*(errno.EACCES, errno.EPERM, errno.EROFS), *(errno.ENOTDIR, errno.ENOSPC, errno.EDQUOT))
"""How the system refuses a file that a command has to write: no bug, wherever it comes from."""


def run(arguments: list[str]) -> int:
    """Run the command line and return its exit code; a user's mistake is reported in two lines."""
    try:
        room, _ = resource.getrlimit(resource.RLIMIT_AS)
        if 0 <= room < LEAST:  # no limit is a negative number
            raise MemoryError
        arguments, older = renamed_arguments(arguments)
        if older:
            from .output import warn

            warn("\n".join(f"steersman: {said}" for said in older))
        if not arguments and "_STEERSMAN_COMPLETE" not in os.environ:  # a shell asks for words
            arguments = ["chat"]
        elif arguments and arguments[0].startswith("--") and arguments[0] != "--help":
            from .chat_options import FLAGS, VALUES

            if arguments[0].partition("=")[0] in {*FLAGS, *VALUES}:  # the chat needs no name
                arguments = ["chat", *arguments]
        if "--help" not in arguments:
            from ..workflows.stored_keys import add_stored_keys

            add_stored_keys(os.environ)
        if arguments[:1] == ["chat"]:
            from .chat_options import named_sessions, usual_options

            arguments = named_sessions(arguments)
            if options := usual_options(arguments[1:]):
                from .chat import chat

                return chat(options, os.environ)
        from .app import dispatch

        return dispatch(arguments)
    except SteersmanError as error:
        return _report(error)
    except Exception as error:
        return _usage(error, arguments)


def _report(error: SteersmanError) -> int:
    from .output import warn

    if isinstance(error, ConfigError) and error.file:  # positions begin a line, for editors
        warn(f"steersman: `{Path(error.file).name}` cannot be used:")
        warn(str(error))
    else:
        warn(f"steersman: {error}")
    if error.hint:
        warn(f"  {error.hint}")
    return error.exit_code


def _usage(error: Exception, arguments: list[str]) -> int:
    """Print an error of the argument parser, or say what the system does not give enough of.

    Any other error is a bug and keeps its trace.
    """
    # Before anything else is imported, which may want what is missing.
    if missing := _missing(error):
        sys.unraisablehook = lambda _: None  # what had half begun complains at the end
        sys.stderr.write(f"steersman: {missing[0]}\n  {missing[1]}\n")
        return 1
    from .output import warn

    describe, context = getattr(error, "format_message", None), getattr(error, "ctx", None)
    if describe is None:
        raise error
    message = str(describe())
    if message.startswith("Usage:"):  # a group without a command: its help
        warn(message)
    else:
        warn(f"steersman: {message.rstrip('.')}")
        path = context.command_path if context is not None else f"steersman {arguments[0]}"
        is_unknown = path == "steersman" and message.startswith("No such command")
        warn(f"  {_instead_of(arguments[0]) if is_unknown else f'try `{path} --help`'}")
    return int(getattr(error, "exit_code", 2))


def _instead_of(name: str) -> str:
    """Return what to type instead of a command that there is not."""
    from difflib import get_close_matches

    from .app import commands_named
    from .options import ABOUT

    found = commands_named(name) or get_close_matches(name, ABOUT, 1)
    if 0 < len(found) <= MOST_NAMED:
        return f"perhaps {' or '.join(f'`steersman {command}`' for command in found)}"
    return 'try `steersman --help`; `steersman chat "MESSAGE"` talks to an agent'


def _missing(error: BaseException | None) -> tuple[str, str] | None:
    """Find a limit of the system in an error, or in one before it: what is missing, and a hint."""
    seen: set[int] = set()
    if isinstance(error, OSError) and error.errno in _REFUSED and error.filename:
        hint = "check the folder's rights and free space, or set STEERSMAN_HOME to one that you own"
        return (f"`{error.filename}` cannot be used: {error.strerror}", hint)
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        number = getattr(error, "errno", None)
        if number in (errno.EMFILE, errno.ENFILE):
            hint = "raise the limit, for example with `ulimit -n 256`, or close other programs"
            return ("the system allows too few open files for this program", hint)
        if isinstance(error, MemoryError) or number == errno.ENOMEM:
            hint = "raise the limit (`ulimit -v`), or close other programs"
            return ("the system allows too little memory for this program", hint)
        if str(error) == "can't start new thread":
            hint = "raise the limits (`ulimit -u`, `ulimit -v`), or close other programs"
            return ("the system allows too few threads for this program", hint)
        error = error.__cause__ or error.__context__
    return None
