"""What a failing command printed, in short: a small model reads little, and repeats what it reads."""

from __future__ import annotations

from collections.abc import Iterable

from ...machines.pattern import lazy_pattern

TAIL = 1200
"""Characters of a failure that are told."""
EXIT = lazy_pattern(r"\[exit code (-?\d+)[^\n]*+(?:\n\[(?!exit code)[^\n]*+)*+\s*$")
"""The end of a command's result: its exit code, and lines in brackets about how it ran."""

_NOTHING = "(no output)"
_LINE = 200  # characters of a line
_CASES = 5  # checks that have failed
_ERROR = lazy_pattern(r"(E\s+)?\w*(Error|Exception)\b|E\s+assert ")
_FRAME = lazy_pattern(r"\s*$|[=-]{5,}$|Traceback |Ran \d+ tests? |FAILED \(|\s+[\^~]+$")
_HEAD = lazy_pattern(r"(ERROR|FAIL): |_{3,} ")
_PLACE = lazy_pattern(r'File "(?:[^"/\n]*+/)*+([^/"\n]++)", (line \d+)')
_NO_INPUT = "EOFError: EOF when reading a line"
_ARGUMENTS = "nobody types; what is given is in sys.argv[1:]"


def has_passed(result: str | None) -> bool:
    """Whether a command has run and succeeded; one that was refused, or ended at its limit, has not."""
    code = EXIT.search(result or "")
    return code is not None and code[1] == "0"


def has_failed(result: str | None) -> bool:
    """Whether a command has run and failed; one that did not end by itself has shown nothing."""
    code = EXIT.search(result or "")
    return code is not None and code[1] != "0" and not code[1].startswith("-")


def tail_of(result: str) -> str:
    """Return the end of what a command printed, without lines that only frame a Python traceback.

    Where a script waits for what nobody types, it is said what it has to read instead.
    """
    text = EXIT.sub("", result).rstrip().replace(_NO_INPUT, f"{_NO_INPUT}: {_ARGUMENTS}")
    lines = text.splitlines() if text != _NOTHING else []
    lines = [_PLACE.sub(r"\1, \2", line) for line in lines if not _FRAME.match(line)]
    return "\n".join(lines)[-TAIL:]


def cases_in(results: Iterable[str]) -> str:
    """Return the checks that have failed, each with its error, else the end of the newest failure."""
    found, end = dict[str, None](), ""
    for result in results:
        check = ""
        for line in (end := tail_of(result)).splitlines():
            if _ERROR.match(line):
                found[f"{check.strip('> ')[:_LINE]}\n{line[:_LINE]}".strip()] = None
            elif _HEAD.match(line):
                check = ""
            elif (line[:1] == ">" != check[:1]) or (line.startswith("    ") and not check):
                check = line
    return "\n".join([*found][-_CASES:]) or end[-_LINE:]


def errors_in(result: str) -> str:
    """Return the lines of a failure that name errors, or its end."""
    told = tail_of(result)
    errors = [line[:_LINE] for line in told.splitlines() if _ERROR.match(line)]
    return "\n".join(errors[:3]) or told[-_LINE:]
