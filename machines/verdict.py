"""A judge's verdict: what it may say, and how its words are read.

A judge answers with one JSON object: `{"verdict": "continue", "reason": "two tests fail"}`, where the
verdict is `done`, `continue`, `wait` or `impossible`, and `wait` has a `condition`. Reading is strict.
These are the fallbacks, and there are no others: text or a code fence around the object is passed over,
the verdict's case does not matter, `{"done": true}` and `{"done": false}` mean done and continue, a
missing reason is empty, and a `wait` without a condition that can be used waits for `SOME_SECONDS`.
Whatever else comes is no verdict; nor is an answer that contradicts itself.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, Literal, cast

from .json_shape import is_number
from .value import Value

VerdictKind = Literal["done", "continue", "wait", "impossible"]
VERDICTS: Final[tuple[VerdictKind, ...]] = ("done", "continue", "wait", "impossible")

SOME_SECONDS: Final = 30.0
"""How long a `wait` lasts that names nothing to wait for."""
MOST_SECONDS: Final = 30 * 24 * 3600.0
LONGEST_REASON: Final = 1_000
MOST_OBJECTS: Final = 20
"""Objects that are looked at in one answer."""

VERDICT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "verdict": {"type": "string", "enum": list(VERDICTS)},
        "reason": {"type": "string", "maxLength": 400},
        "condition": {
            "type": "object",
            "properties": {
                "seconds": {"type": "number"},
                "process": {"type": "integer"},
                "file": {"type": "string", "maxLength": 200},
            },
            "additionalProperties": False,
        },
    },
    "required": ["verdict", "reason"],
    "additionalProperties": False,
}
"""The JSON Schema of an answer, for servers that can be held to one."""


class Condition(Value):
    """A condition to wait for: so many seconds, the end of a process, or a file that comes or changes.

    `process` is a pid, `file` a path in the session's folder.
    """

    kind: Literal["time", "process", "file"] = "time"
    seconds: float = SOME_SECONDS
    process: int = 0
    file: str = ""

    def as_data(self) -> dict[str, Any]:
        """Return it as machine interfaces show it."""
        match self.kind:
            case "time":
                return {"seconds": self.seconds}
            case "process":
                return {"process": self.process}
            case "file":
                return {"file": self.file}

    def __str__(self) -> str:
        match self.kind:
            case "time":
                return f"{self.seconds:g} seconds"
            case "process":
                return f"the end of process {self.process}"
            case "file":
                return f"the file `{self.file}`"


class Verdict(Value):
    """The judge's decision; `condition` only of a `wait`."""

    kind: VerdictKind
    reason: str = ""
    condition: Condition | None = None


class Unusable(Value):
    """No verdict; `why` is a sentence for people."""

    why: str


def read_verdict(text: str) -> Verdict | Unusable:
    """Read a judge's answer."""
    found = [
        verdict for verdict in (_verdict(data) for data in _objects(text)) if verdict is not None
    ]
    if not found:
        shown = " ".join(text.split())[:80]
        return Unusable(
            why=f"the judge gave no verdict: `{shown}`" if shown else "the judge said nothing"
        )
    kinds = {verdict.kind if isinstance(verdict, Verdict) else "" for verdict in found}
    return found[0] if len(kinds) == 1 else Unusable(why="it contradicts itself")


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Find the JSON objects in an answer that are in no other one."""
    decoder, end, count = json.JSONDecoder(strict=False), 0, 0
    for brace in re.finditer(r"\{", text):
        if brace.start() < end or count == MOST_OBJECTS:
            continue
        count += 1
        try:
            value, end = decoder.raw_decode(text, brace.start())
        except (ValueError, RecursionError):
            continue
        yield cast("dict[str, Any]", value)


def _verdict(data: dict[str, Any]) -> Verdict | Unusable | None:
    """Read one object; none if it does not mean to be a verdict."""
    said, done = data.get("verdict"), data.get("done")
    reason = data.get("reason")
    why = " ".join(reason.split())[:LONGEST_REASON] if isinstance(reason, str) else ""
    if said is None and isinstance(done, bool):
        return Verdict(kind="done" if done else "continue", reason=why)
    if said is None:
        return None
    kind = said.strip().casefold() if isinstance(said, str) else ""
    for known in VERDICTS:
        if kind == known:
            if isinstance(done, bool) and done != (known == "done"):
                return Unusable(why="it contradicts itself")
            condition = read_condition(data.get("condition")) if known == "wait" else None
            return Verdict(kind=known, reason=why, condition=condition)
    return Unusable(why=f"`{' '.join(str(said).split())[:40]}` is no verdict")


def read_condition(data: object) -> Condition:
    """Read what is to be waited for; some time, if it can't be read."""
    given = cast("dict[str, Any]", data) if isinstance(data, dict) else {"seconds": data}
    pid, path, seconds = given.get("process"), given.get("file"), given.get("seconds")
    if isinstance(pid, int) and not isinstance(pid, bool) and 0 < pid < 1 << 22:
        return Condition(kind="process", seconds=0.0, process=pid)
    if isinstance(path, str) and _is_inside(path):
        return Condition(kind="file", seconds=0.0, file=path)
    if is_number(seconds) and 0 < seconds <= MOST_SECONDS:
        return Condition(kind="time", seconds=float(seconds))
    return Condition()


def _is_inside(path: str) -> bool:
    """Whether a path stays in the folder by its words alone."""
    parts = path.split("/")
    is_plain = path.isprintable() and 0 < len(path) <= 300
    return is_plain and not path.startswith(("/", "~")) and ".." not in parts
