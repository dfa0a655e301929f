"""Long texts are looked at in threads: the event loop, on which a stop comes in, is free meanwhile."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from gateway.conftest import Begin, awaited
from support.nightly import daily

from steersman.gateway.control import Requests

LONG = 1_000_000
TEXTS = {
    "dots": "a." * (LONG // 2),
    "dashes": "-" * LONG,
    "marks": "password = " * (LONG // 11),
    "escapes": "\x1b]" * (LONG // 2),
    "quotes": "'\"`" * (LONG // 3),
}
LOOKS: dict[str, dict[str, Any]] = {
    "inspect": {},
    "queue": {},
    "export": {"name": "export", "arguments": {"file": "kept.md"}},
    "history": {"name": "history", "arguments": {}},
}
HEAVY = ("redaction.py", "secret_kind.py", "terminal.py", "classification.py", "shlex.py")


@contextmanager
def watched() -> Iterator[list[str]]:
    """List the functions that take a long text apart in this thread."""
    found: list[str] = []

    def look(frame: FrameType, event: str, arg: object) -> None:
        if event == "call" and frame.f_code.co_filename.endswith(HEAVY):
            given = frame.f_locals.values()
            if any(isinstance(value, str) and len(value) > LONG // 10 for value in given):
                found.append(f"{frame.f_code.co_filename}: {frame.f_code.co_name}")

    sys.setprofile(look)
    try:
        yield found
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("name", daily("marks", "dots", of=TEXTS))
def test_the_loop_is_free(begin: Begin, tmp_path: Path, name: str) -> None:
    """Whatever is said and looked at, the loop passes it on; and it takes its turns all the while."""
    (tmp_path / "answers.toml").write_text('[[answer]]\ntext = "never"\ndelay = inf\n')
    host = begin()
    conversation = host.begin(tmp_path / "project")
    with awaited(conversation, "turn_started"):
        conversation.say("work")
    turns = 0

    async def beat() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async def ask() -> list[Any]:
        beating = asyncio.create_task(beat())
        requests = Requests(host)
        session = {"session": conversation.session}
        said = await requests.call("say", {**session, "text": TEXTS[name], "as": "queue"})
        found = [said]
        for method, given in LOOKS.items():
            called = "command" if given else method
            found.append(await requests.call(called, {**session, **given}))
        beating.cancel()
        return found

    with watched() as here:
        said, *looks = asyncio.run(ask())
    assert said["type"] == "accepted"
    assert all(looks)
    assert here == []
    assert turns > len(LOOKS)
