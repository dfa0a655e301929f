"""Calls a Python function for a workflow's step, or an isolated tool, in a process of its own.

This file is a program that the same interpreter runs by its path, and imports nothing of this package:
its process begins quickly, and holds nothing but the function's own modules. It reads one JSON object
from standard input: `call` (`package.module:function`, or `FILE.py:function`), `with` (the arguments by
name) and `folder`, which is searched first for modules; for a tool also `path`, the whole search path,
and `about`, which tells the tool of its call. The result goes to standard output as JSON, with exit code
0; if there is none, the reason does, in a sentence, with exit code 1. Whatever the function prints goes
to standard error. Before the result, a tool may write notes: lines that begin with `NOTE`.
"""

import importlib
import inspect
import json
import os
import runpy
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

NOTE = "\x1e"
"""The record separator of RFC 7464."""
FAULT = 1
"""The exit code if there is no result, but a reason."""
_LONGEST = 2000
"""Characters of a reason."""


def call_input(arguments: Mapping[str, Any]) -> bytes:
    """Return the standard input for a call."""
    return json.dumps({name: arguments[name] for name in ("call", "with", "folder")}).encode()


class _Answer:
    """The standard output that this process was started with.

    Nothing else writes to it: neither a `print` nor a program that the function starts has it.
    """

    def __init__(self) -> None:
        self._file = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="backslashreplace")
        os.dup2(2, 1)
        reconfigure = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:  # what is printed is there also if it is killed
            reconfigure(line_buffering=True)
        self.is_given = False

    def note(self, data: Any) -> None:
        """Write a line before the answer."""
        self._file.write(f"{NOTE}{json.dumps(data)}\n")
        self._file.flush()

    def give(self, text: str) -> None:
        """Write the only answer."""
        self.is_given = True
        self._file.write(text)
        self._file.close()

    def fail(self, reason: str) -> NoReturn:
        """End the process with a reason."""
        self.give(_sentence(reason))
        sys.exit(FAULT)


def main() -> None:
    """Make the call that standard input asks for."""
    asked = json.load(sys.stdin)
    answer = _Answer()
    sys.dont_write_bytecode = True  # a folder of workflows is no place for caches
    sys.path[:] = asked.get("path", sys.path)
    sys.path.insert(0, asked["folder"])
    place: str = asked["call"]

    def told(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """Report what the function or its module raised, with the traceback for people."""
        traceback.print_exception(kind, error, trace)
        said = f"{kind.__name__}: {error}" if str(error) else kind.__name__
        answer.give(_sentence(f"{said}{_line(trace)}"))

    sys.excepthook = told
    try:
        function = _function(place, answer)
        if "about" in asked:
            result = function.called_apart(asked["with"], asked["about"], answer.note, answer.fail)
        else:
            result = _called(function, asked["with"], place, answer)
    except SystemExit as end:
        if answer.is_given:
            raise
        answer.fail(f"`{place}` called sys.exit({end.code!r}) instead of returning")
    try:
        text = json.dumps(result, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        answer.fail(f"`{place}` returned what JSON does not have: {error}")
    answer.give(text)


def _function(place: str, answer: _Answer) -> Any:
    """Import the module and return the function."""
    name, _, attribute = place.rpartition(":")
    if name.endswith(".py"):  # a program is run, but for what it does as the main one
        return runpy.run_path(name, run_name="__mp_main__")[attribute]
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if missing != name and not name.startswith(f"{missing}."):
            raise
        answer.fail(f"there is no module `{missing}`, in {sys.path[0]} or installed")
    function = module
    for part in attribute.split("."):
        if not hasattr(function, part):
            answer.fail(f"module `{name}` has no function `{attribute}`{_near(part, function)}")
        function = getattr(function, part)
    if not callable(function):
        answer.fail(f"`{place}` is no function but of the type {type(function).__name__}")
    return function


def _near(name: str, owner: object) -> str:
    import difflib

    known = [known for known in dir(owner) if not known.startswith("_")]
    close = difflib.get_close_matches(name, known, 1)
    return f"; did you mean `{close[0]}`?" if close else ""


def _called(function: Any, given: dict[str, Any], place: str, answer: _Answer) -> Any:
    """Call the function, and wait for it if it is a coroutine."""
    with suppress(ValueError):  # what is written in C may have no signature
        signature = inspect.signature(function)
        try:
            signature.bind(**given)
        except TypeError as error:
            answer.fail(f"`{place}` does not take what `with` gives: {error}")
    result = function(**given)
    if not inspect.isawaitable(result):
        return result
    import asyncio

    async def awaited() -> Any:
        return await result

    return asyncio.run(awaited())


def _sentence(text: str) -> str:
    """Put a text on one line, and cut it if it is long."""
    line = " ".join(text[:_LONGEST].split())
    return line if len(text) <= _LONGEST else f"{line}…"


def _line(trace: TracebackType | None) -> str:
    """Name the line that raised, the last one that is not of the interpreter's own library."""
    library = os.path.dirname(os.__file__)
    frames = traceback.extract_tb(trace)
    own = [frame for frame in frames if not frame.filename.startswith((library, "<", __file__))]
    return f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""


if __name__ == "__main__":
    main()
