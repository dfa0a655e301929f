"""A shell command line as permission rules see it: its control operators and its parts.

This is no shell parser, on purpose: an operator counts wherever it stands, also inside quotes. So a
harmless command may look like two, which costs a question; two never look like one.
"""

import re
from itertools import accumulate

_OPERATOR = re.compile(r"&&|\|\||;;|>>|<<|\$\(|\$\{|[;&|<>()`\n\r\0]")
_SPLIT = re.compile(rf"{_OPERATOR.pattern}|[\"'{{}}]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=\S*$")
_WRAPPERS = frozenset(
    "! builtin command do doas else env eval exec if nice nohup setsid sudo then time timeout "
    "until while xargs".split()
)


def operators(command: str) -> tuple[str, ...]:
    """List the control operators, substitutions and redirections, in order."""
    return tuple(_OPERATOR.findall(command.strip()))


def parts(command: str) -> frozenset[str]:
    """Give everything in the line that could be a command of its own, and the line itself.

    Each comes as written, and without what may stand before a command's name: assignments, `sudo`
    and its like with their options, the folder of the program, a backslash.
    """
    found = {" ".join(command.split())}
    for piece in _SPLIT.split(command):
        words = piece.split()
        found.add(" ".join(words))
        found.update(_bare_forms(words))
    return frozenset(found - {""})


def _bare_forms(words: list[str]) -> list[str]:
    """Drop leading words one by one as long as they only introduce the command."""
    skippable = (
        bool(_ASSIGNMENT.match(word)) or word in _WRAPPERS or word.startswith("-") for word in words
    )
    starts = [0, *(at for at, is_led in enumerate(accumulate(skippable, min), 1) if is_led)]
    return [" ".join([_name(words[at]), *words[at + 1 :]]) for at in starts if at < len(words)]


def _name(word: str) -> str:
    return word.rpartition("/")[2].replace("\\", "") or word
