"""Whether the cost of reading a text grows with its length alone, and the texts for which it may not.

The cost is processor time of this thread, the least of several, and only its growth is judged: a busy
machine, or a slow one, changes nothing. A text of `LONGEST` characters that costs less than `SMALL` is no
reason to look further: were the cost quadratic, it would be a thousand times that.
"""

import gc
import importlib
import re
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

SHORTEST, LONGEST = 48, 48 * 3**5
"""Characters of the texts that are tried; their number is tripled from one to the next."""
SMALL = 0.004
"""Seconds that are enough to be compared."""
STEEPEST = 3.0
"""How much more each character of a text may cost that is four times as long. Quadratic: 4."""

_parser: Any = importlib.import_module("re._parser")
_COMMON = (
    *("a", "0", " ", "\n", "a ", "a.", "a\n", "\u00e9", "\x1b", "-", "_", "=", ":", "/", "\\", "."),
    *(
        "'",
        '"',
        "`",
        "*",
        "|",
        "<",
        ">",
        "[",
        "(",
        "{",
        "#",
        "$",
        "~",
        "a\n\n",
        "<a",
        "](",
        "```\n",
    ),
)


def grows_linearly(read: Callable[[str], object], text: Callable[[int], str]) -> bool:
    """Whether each character of `text(n)`, a text of about n, costs the same, however long it is."""
    length = SHORTEST
    while (cost := _cost(read, text(length))) < SMALL:
        if length >= LONGEST:
            return True
        length *= 3
    short, long = text(length), text(4 * length)
    longer = float("inf")
    cost = min(cost, *(_cost(read, short) for _ in range(4)))
    for _ in range(10):  # whatever else happened meanwhile may have made one of them dearer
        cost, longer = min(cost, _cost(read, short)), min(longer, _cost(read, long))
        if longer <= 4 * STEEPEST * cost:
            return True
    return False


def _cost(read: Callable[[str], object], text: str) -> float:
    """Return the processor time of a reading, without a look through the objects of all other tests."""
    gc.disable()
    try:
        begun = time.thread_time()
        read(text)
        return time.thread_time() - begun
    finally:
        gc.enable()


def texts_against(pattern: str, flags: int = 0) -> Iterator[Callable[[int], str]]:
    """Yield texts that a pattern nearly matches, in many ways: its parts, again and again."""
    tree = _parser.parse(pattern, flags)
    units = dict[tuple[str, str], None]()
    for sample in islice(_samples(list(tree)), 12):
        for end in range(1, len(sample) + 1):
            head = "".join(sample[:end])
            units["", head] = None
            units["".join(sample[: end - 1]), sample[end - 1]] = None
    for head, unit in units:
        if unit:
            yield from (repeated(head, unit, tail) for tail in ("", "\0"))
            yield repeated(head, f"{unit} ", "")
    yield from (repeated("", unit, "") for unit in _COMMON)


def repeated(head: str, unit: str, tail: str) -> Callable[[int], str]:
    """Return what makes a text of about n characters: `unit` again and again between the others."""

    def text(length: int) -> str:
        return head + unit * (length // len(unit)) + tail

    text.__name__ = f"{head!r} + {unit!r} * n + {tail!r}"
    return text


def _samples(nodes: list[Any]) -> Iterator[list[str]]:
    """Yield what a sequence of nodes matches, as the parts that its nodes match."""
    if not nodes:
        yield []
        return
    (kind, given), rest = nodes[0], nodes[1:]
    for part in islice(_matched(str(kind), given), 6):
        for others in islice(_samples(rest), 6):
            yield [*part, *others]


def _matched(kind: str, given: Any) -> Iterator[list[str]]:
    match kind:
        case "LITERAL":
            yield [chr(given)]
        case "NOT_LITERAL":
            yield ["b" if chr(given) == "a" else "a"]
        case "ANY":
            yield ["a"]
        case "IN":
            yield [_member(given)]
        case "BRANCH":
            for branch in given[1]:
                yield from islice(_samples(list(branch)), 2)
        case "SUBPATTERN":
            yield from _samples(list(given[3]))
        case "ATOMIC_GROUP":
            yield from _samples(list(given))
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least, _, inner = given
            for parts in _samples(list(inner)):
                yield ["".join(parts) * max(least, 1)]
                yield ["".join(parts) * least] if least else []
        case _:
            yield []


def _member(items: Any) -> str:
    """Return a character of a set; of a negated one a letter, if it has one."""
    (kind, given), is_negated = items[0], str(items[0][0]) == "NEGATE"
    if is_negated:
        inner = re.compile("a")  # the usual sets of separators and quotes leave letters out of it
        excluded = {chr(value) for kind, value in items[1:] if str(kind) == "LITERAL"}
        return next(char for char in "a0 .\n" if char not in excluded and inner)
    if str(kind) == "LITERAL":
        return chr(given)
    if str(kind) == "RANGE":
        return chr(given[0])
    return {"SPACE": " ", "DIGIT": "0"}.get(str(given).rpartition("_")[2], "a")
