"""A stop is quick while another session has a megabyte of the worst text in any place."""

import json
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest
from gateway.conftest import Begin, awaited

from steersman.gateway.client import SessionClient
from steersman.ports.models import scripted
from steersman.workflows.flow.check import Surroundings, check_file

LONG = 1_000_000
_PIECES = (
    *("a.", "*_a", "stop, ", "token=", "[a](", "`", "\n", "> ", "- ", '{"a":', "eyJ", "aB3", "sk-"),
    *("-----BEGIN ", " ", "\u0301", "|a|", "://", "x@y"),
)
_DRAWN = random.Random(37)
TEXTS = {
    "dots": "a." * (LONG // 2),
    "quotes": ">" * LONG,
    "brackets": "[" * LONG,
    "objects": '{"a":' * (LONG // 5),
    "emphasis": "*a **b " * (LONG // 7),
    "tables": "|a|-|\n" * (LONG // 6),
    "lines": "\n" * LONG,
    "escapes": "\x1b]" * (LONG // 2),
    "marks": "password = " * (LONG // 11),
    "accents": "\u0301" * LONG,
    "stops": "stop, " * (LONG // 6),
    "tokens": "eyJ" + "aB3_" * (LONG // 4),
    "drawn": "".join(_DRAWN.choice(_PIECES) for _ in range(LONG // 3)),
}
"""What a fuzzer found to be slow once, and what is drawn anew."""
RULES = """
[permissions]
rules = [{ tool = "shell", match = "rm *", do = "deny" }, { tool = "*", do = "allow" }]
[tools]
sandbox = "off"
"""
MOST = 20
"""How many times as long as one look at each character of the text: the square of it is thousands."""


def answers(text: str) -> Iterator[dict[str, Any]]:
    """Give what the model does when somebody says the name of a place: then the text is there."""
    yield {"match": "answer", "text": text}
    calls: dict[str, tuple[str, dict[str, str]]] = {
        "output": ("shell", {"command": "cat long.txt"}),
        "read": ("read", {"path": "long.txt"}),
        "search": ("search", {"pattern": "a.*b", "path": "."}),
        "command": ("shell", {"command": text}),
        "written": ("write", {"path": "new.txt", "content": text}),
        "edited": ("edit", {"path": "long.txt", "old": text[: LONG // 2], "new": "x"}),
    }
    for place, (tool, arguments) in calls.items():
        yield {"match": place, "tool_calls": [{"tool": tool, "arguments": arguments}]}
        yield {"match": place, "text": "Done."}
    yield from ({"text": "Yes."} for _ in range(50))


def one_pass(text: str) -> float:
    """Return the seconds of processor time of a look at each character, on this machine now."""
    began = time.process_time()
    assert sum(character == "x" for character in text) < len(text)
    return time.process_time() - began


class Stops:
    """A session that is stopped again and again while something else is done."""

    def __init__(self, conversation: SessionClient) -> None:
        self._conversation = conversation
        self.worst: dict[str, float] = {}

    def during(self, place: str, work: Callable[[], object]) -> None:
        """Note the longest of the stops while `work` runs."""
        took = [0.0]
        with ThreadPoolExecutor(1) as worker:
            doing = worker.submit(work)
            while not doing.done():
                began = time.process_time()
                self._conversation.interrupt()
                took.append(time.process_time() - began)
                wait([doing], 0.01)
        doing.result()
        self.worst[place] = max(took)


@pytest.mark.nightly
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", TEXTS)
def test_a_stop_elsewhere_is_quick(
    begin: Begin, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the text is said, answered, printed, read, run, written, and stands in a project's files."""
    text, project = TEXTS[name], tmp_path / "project"
    host = begin(RULES)
    script = json.dumps({"answer": list(answers(text))})
    monkeypatch.setattr(scripted, "read_text", lambda path: script)  # which has a bound
    monkeypatch.setattr(scripted, "parse_toml", json.loads)
    (project / "long.txt").write_text(text, "utf-8")
    stops = Stops(host.begin(project))

    def say(said: str, folder: Path = project) -> None:
        conversation = host.begin(folder)
        with awaited(conversation, "turn_ended"):
            conversation.say(said)

    for place in ("answer", "output", "read", "search", "command", "written", "edited"):
        stops.during(place, lambda place=place: say(place))
    stops.during("said", lambda: say(text))
    for file in (
        "AGENTS.md",
        "steersman.toml",
        ".steersman/prompts/a.md",
        ".steersman/skills/a/SKILL.md",
    ):
        folder = tmp_path / file.replace("/", "_")
        (folder / file).parent.mkdir(parents=True)
        (folder / file).write_text(text, "utf-8")
        stops.during(file, lambda folder=folder: say("hello", folder))
    flow = tmp_path / "flow.toml"
    shown = json.dumps(text[: LONG // 2])
    flow.write_text(f"[[step]]\nid = 'a'\nrun = ['true']\nwhen = {shown}\n", "utf-8")
    around = Surroundings(paths=host.paths, folder=tmp_path, environ={})
    stops.during("workflow", lambda: check_file(flow, around))
    most = MOST * max(one_pass(text) for _ in range(3))
    assert {place: took for place, took in stops.worst.items() if took > most} == {}
