"""What the looks at a folder leave out: the rules that hide files, and what lies behind them.

The rules of what is ignored are read when a turn begins and hold for all its looks, since its commands
may change them. Of what they hide, of repositories inside, of pipes, sockets and devices, and of git's
own data no copies are kept. They are listed when a turn begins; later the lists and the times of change,
which no program can set, show which of them are not as they were. Of their contents nothing is read.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Collection, Iterable
from pathlib import Path

from msgspec import field

from ..machines.value import Value
from ..workflows.foreign_file import read_foreign
from .git import is_pin
from .scan import IGNORE_FILE, is_folder

MOST_SEEN = 300_000
"""Entries below one name that are looked at for their times."""
TICK = 0.001
"""Seconds between two looks at the clock of the file systems."""
LEAP = 1.0
"""Seconds that the clock may have been set back, as far as we know, before times prove nothing."""
_SPECIAL = re.compile(rb"[\\*?\[]")


# The rules ----------------------------------------------------------------------------------------


def read_rules(top: Path, name: str) -> bytes:
    """Return what git takes from an ignore file: nothing from one that is a link, or unreadable."""
    try:
        return read_foreign(top / name, follows_links=False)
    except OSError:
        return b""


def join_rules(always: Iterable[str], found: Iterable[tuple[str, bytes]]) -> bytes:
    """Write the rules of ignore files, given with their paths, as one file at the top of the tree.

    The last rule that matches decides, so what lies deeper comes later. See gitignore(5).
    """
    deeper = sorted(found, key=lambda pair: (pair[0].count("/"), pair[0]))
    parts = [rule.encode() for rule in always]
    parts += [_anchored(name.removesuffix(IGNORE_FILE), rules) for name, rules in deeper]
    return b"\n".join(parts) + b"\n"


def _anchored(folder: str, rules: bytes) -> bytes:
    """Write a folder's rules as they read at the top; `folder` is empty or ends with a slash."""
    rules = rules.removeprefix(b"\xef\xbb\xbf")
    if not folder:
        return rules
    start = b"/" + _SPECIAL.sub(rb"\\\g<0>", os.fsencode(folder)).replace(b"\n", b"?")
    return b"\n".join(
        _below(start, line.removesuffix(b"\r"))
        for line in rules.split(b"\n")
        if line.strip(b" \r/!") and not line.startswith(b"#")
    )


def _below(start: bytes, rule: bytes) -> bytes:
    sign, body = (b"!", rule[1:]) if rule.startswith(b"!") else (b"", rule)
    is_path = b"/" in body.rstrip(b" ").removesuffix(b"/")
    return sign + start + (body.removeprefix(b"/") if is_path else b"**/" + body)


# What lies outside --------------------------------------------------------------------------------


class Surroundings(Value):
    """What a look at one moment leaves out; names are relative to the session's folder.

    `moment` is in nanoseconds; `drift` is how far the wall clock is ahead of one that nobody sets, in
    seconds. `rules` decode with Latin-1. `staged` stands for the entries of the person's index. `special`
    maps a pipe, socket or device to what it is: its times change when it is used. `modes` are the
    permission bits of folders that have others than `mode`.
    """

    moment: int
    drift: float
    rules: str
    staged: str = ""
    hidden: tuple[str, ...] = ()
    nested: tuple[str, ...] = ()
    special: dict[str, str] = field(default_factory=dict[str, str])
    closed: tuple[str, ...] = ()
    mode: int = 0o755
    modes: dict[str, int] = field(default_factory=dict[str, int])


KINDS = {
    "hidden": "ignored files that changed",
    "nested": "repositories inside that changed",
    "special": "pipes, sockets or devices that changed",
}
GIT_CHANGED = "commits, branches or what is staged, which changed"
UNSEEN = "not looked at"


def what_it_is(path: Path) -> str:
    """Return the kind, the permission bits and the device of a file that is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return ""
    return f"{found.st_mode:o}:{found.st_rdev}"


def clock() -> tuple[int, float]:
    """Return a moment, as of `Surroundings`, later than the time of every change so far; and the drift.

    The times of files come from a clock that advances some hundred times a second, so it may wait for
    its next tick.
    """
    coarse = getattr(time, "CLOCK_REALTIME_COARSE", time.CLOCK_REALTIME)
    before = moment = time.clock_gettime_ns(coarse)
    while moment == before:
        time.sleep(TICK)
        moment = time.clock_gettime_ns(coarse)
    return moment, time.time() - time.monotonic()


def differences(
    root: Path, before: Surroundings, now: Surroundings, restored: Collection[str]
) -> dict[str, list[str]]:
    """Name what is not as it was, by what it is; paths that were `restored` are known to be right."""
    found: dict[str, list[str]] = {}
    touched = {
        name: [path for path in restored if path == name or path.startswith(name.rstrip("/") + "/")]
        for name in (*before.hidden, *before.nested, *before.special)
        if restored
    }
    is_timed = now.drift > before.drift - LEAP
    for kind, text in KINDS.items():
        was, is_now = set[str](getattr(before, kind)), set[str](getattr(now, kind))
        found[text] = sorted((was ^ is_now) - set(restored))
        for name in sorted(was & is_now):
            mine = touched.get(name, [])
            if name in mine or (kind == "special" and before.special[name] == now.special[name]):
                continue
            changed = _has_changed(root / name, before.moment) if is_timed and not mine else None
            if changed or changed is None:
                found.setdefault(text if changed else UNSEEN, []).append(name)
    found["permissions of folders, which changed"] = sorted(
        name or "."
        for name in {"", *before.modes, *now.modes}
        if before.modes.get(name, before.mode) != now.modes.get(name, before.mode)
        and is_folder(root / name)
    )
    found.setdefault(UNSEEN, []).extend(sorted({*before.closed, *now.closed}))
    return {text: names for text, names in found.items() if names}


def has_git_changed(folder: Path, before: Surroundings, now: Surroundings) -> bool:
    """Whether commits, branches, settings or what is staged differ; `folder` is the git folder."""
    return before.staged != now.staged or _has_changed(folder, before.moment) is not False


def _has_changed(place: Path, moment: int) -> bool | None:
    """Whether anything at or below a place changed since a moment; none if that cannot be said."""
    waiting, seen = [os.fspath(place)], 0
    try:
        while waiting:
            here = waiting.pop()
            found, seen = os.lstat(here), seen + 1
            names = os.listdir(here) if stat.S_ISDIR(found.st_mode) else []
            is_git = "HEAD" in names and ("objects" in names or "commondir" in names)
            if found.st_ctime_ns >= moment and not is_git:
                return True
            if seen + len(waiting) > MOST_SEEN:
                return None
            # Commands that only show something refresh the index, and so change its folder.
            skipped = ("index", "index.lock") if is_git else ()
            inner = [os.path.join(here, name) for name in names if name not in skipped]
            waiting += [path for path in inner if not (is_git and is_pin(path))]
    except OSError:
        return None
    return False
