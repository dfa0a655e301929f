"""Inputs from outside that are broken at random, kind by kind: each is taken or refused, none crashes.

A kind has texts to begin with. `mutate` breaks one, and the kind's `Take` gives it to the product: it
returns whether the input was accepted, and raises `AssertionError`, or anything that is no error for
people, if the product did not answer as it must.
"""

import asyncio
import itertools
import json
import os
import random
import re
import socket
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from soak.wires import WIRES
from support.driver import Chat, Place
from support.model_behaviours import chat_events, message_events
from support.model_server import ModelServer, Raw, Text, Tools
from support.patience import seconds

from steersman.gateway.views.queue_file import read_file
from steersman.gateway.views.session_file import imported, read_export
from steersman.gateway.wording.terminal import HIDDEN, audited, clean, exposed
from steersman.journal.memory import MemoryStore
from steersman.journal.recovery import load_record
from steersman.machines.classification import Keywords, classify
from steersman.machines.conversation import ChatMessage
from steersman.machines.errors import ModelError, SteersmanError
from steersman.machines.verdict import Verdict, read_verdict
from steersman.ports.models.anthropic import AnthropicModel
from steersman.ports.models.chat import ChatModel
from steersman.ports.models.model import AnswerListener, ModelRequest
from steersman.ports.models.retry import RetryPolicy
from steersman.workflows.config import load
from steersman.workflows.document import tell
from steersman.workflows.flow.check import Surroundings, check_file
from steersman.workflows.flow.plan import draw_plan, plan_mermaid, plan_of
from steersman.workflows.flow.workflow_file import SHIPPED_WORKFLOWS
from steersman.workflows.paths import Paths
from steersman.workflows.routing import find_table

__all__ = ["KINDS", "Fuzzer", "Kind", "mutate"]

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent

ODD = (
    *("[]", "{}", '""', "-1", "1e400", "nan", "true", "null", "1979-05-27", "[[]]", '["a", 1]'),
    *("{ a = {} }", '"{{"', '"{% if %}"', '"{{ steps }}"', '"{{ steps.find }}"', '"\\u0000"'),
    *('"{{ 9 ** 9 ** 9 }}"', '"{{ [[[[[[]]]]]] }}"', '"' + "(" * 400 + '"', '"steps[0][1]"'),
    *('"item"', "9223372036854775808", '"{{ vars[vars] }}"', '"vars.search.x.y.z"'),
    *('["{{ steps.a.output }}"]', '"../../etc/passwd"', "[" * 400, "\x1b]0;x\x07", "\u202e", "\0"),
)
"""Values that fit almost nowhere."""


def mutate(text: str, chance: random.Random, words: Sequence[str]) -> str:
    """Break a text in one to four places: lines, values, words, characters; of JSON also a value."""
    if text.startswith("{") and chance.random() < 0.5:
        with suppress(ValueError):
            return json.dumps(_with_another_value(json.loads(text), chance))
    for _ in range(chance.randint(1, 4)):
        lines = text.split("\n")
        at = chance.randrange(len(lines))
        line = lines[at]
        place = chance.randrange(len(line) + 1)
        match chance.randrange(9):
            case 0 if len(lines) > 1:
                del lines[at]
            case 1:
                lines.insert(chance.randrange(len(lines)), line)
            case 2:
                value = f"\\1 {chance.choice(ODD)}".replace("\\", "\\\\").replace("\\\\1", "\\1")
                lines[at] = re.sub(r"([=:]).*?(?=$|[,}\]])", value, line, count=1)
            case 3:
                lines[at] = re.sub(r"\w+", lambda _: chance.choice(words), line, count=1)
            case 4:
                lines[at] = line[:place]
            case 5:
                lines.insert(at, f"{chance.choice(words)} = {chance.choice(ODD)}")
            case 6:
                lines[at] = line[:place] + chance.choice(ODD) + line[place:]
            case 7:
                lines[at] = (
                    line[:place]
                    + chr(chance.choice((chance.randrange(256), 0x202E, 0xD7FF)))
                    + line[place + 1 :]
                )
            case _:
                lines[at] = chance.choice(lines)
        text = "\n".join(lines) or "x"
    return text


def _with_another_value(data: Any, chance: random.Random) -> Any:
    """Replace, remove or double a value anywhere in some data."""
    if not isinstance(data, dict | list) or not data or chance.random() < 0.1:
        return chance.choice(VALUES)
    keys = list(data) if isinstance(data, dict) else list(range(len(data)))
    key = chance.choice(keys)
    match chance.randrange(8):
        case 0:
            del data[key]
        case 1 if isinstance(data, list):
            data.insert(key, data[chance.choice(keys)])
        case 2:
            data[key] = data[chance.choice(keys)]
        case _:
            data[key] = _with_another_value(data[key], chance)
    return data


VALUES = (
    None,
    True,
    -1,
    0,
    1 << 70,
    1e308,
    "",
    "x",
    "\0",
    "\ud800",
    "../x",
    [],
    [[]],
    {},
    {"a": 1},
)
"""Values of JSON that fit almost nowhere."""

Take = Callable[[str], bool]


@dataclass(frozen=True)
class Kind:
    """One kind of input: texts to begin with, and what takes an input in, in a folder of its own."""

    texts: Callable[[], list[str]]
    open: Callable[[Path], AbstractContextManager[Take]]
    is_line: bool = False


class Fuzzer:
    """Gives inputs of one kind to the product; `accepted` counts those that were sound."""

    def __init__(self, name: str, seed: int, folder: Path) -> None:
        self._kind = KINDS[name]
        self._chance = random.Random(f"{name} {seed}")
        self._texts = self._kind.texts()
        self._words = sorted(
            {word for text in self._texts for word in re.findall(r"\b[a-z_]{2,12}\b", text)}
        )
        self._folder = folder
        self.accepted = 0

    def run(self) -> Generator[str]:
        """Give one input after the other; yield what is wrong with the answer, or nothing.

        After a wrong answer the product is begun again.
        """
        for number in itertools.count():
            folder = self._folder / str(number)
            folder.mkdir()
            with self._kind.open(folder) as take:
                wrong = ""
                while not wrong:
                    text = self._broken()
                    try:
                        self.accepted += take(text)
                    except Exception as error:  # whatever it is, no input may lead to it
                        wrong = f"{type(error).__name__}: {error} after {text[:500]!r}"
                    yield wrong

    def _broken(self) -> str:
        text = mutate(self._chance.choice(self._texts), self._chance, self._words)
        return text.replace("\n", " ") if self._kind.is_line else text


# Files --------------------------------------------------------------------------------------------


def _texts(*patterns: str) -> Callable[[], list[str]]:
    def read() -> list[str]:
        paths = [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]
        return [path.read_text("utf-8", "replace") for path in paths]

    return read


def _of_workflows() -> list[str]:
    shipped = [path.read_text("utf-8") for path in sorted(SHIPPED_WORKFLOWS.glob("*.toml"))]
    return shipped * 5 + _texts("tests/flow/faults/*.toml")()  # as likely as one with faults


def _refusable(
    check: Callable[[Path], object], name: str
) -> Callable[[Path], AbstractContextManager[Take]]:
    """Take files of this name in; a refusal says what, and what to do."""

    @contextmanager
    def opened(folder: Path) -> Generator[Take]:
        path = folder / name

        def take(text: str) -> bool:
            path.write_text(text, "utf-8", "surrogatepass")
            try:
                check(path)
            except SteersmanError as refusal:
                found = str(refusal)
            else:
                return True
            assert found
            assert "Traceback" not in found
            return False

        yield take

    return opened


def _check_workflow(path: Path) -> None:
    folder = path.parent
    around = Surroundings(
        paths=Paths.of({"STEERSMAN_HOME": str(folder)}), folder=folder, environ=dict(os.environ)
    )
    checked = check_file(path, around)
    for found in (*checked.errors, *checked.warnings):
        assert found.problem.message
        assert "Traceback" not in tell(found)
    if checked.errors:
        raise SteersmanError("it has faults")
    assert checked.spec is not None
    plan = plan_of(checked.spec, checked.spec.variables)
    assert draw_plan(plan)
    assert plan_mermaid(plan)


def _check_configuration(path: Path) -> None:
    home = {"STEERSMAN_HOME": str(path.parent)}
    load(Paths.of(home), path.parent, home)


def _check_export(path: Path) -> None:
    store = MemoryStore()
    session, _ = imported(store, read_export(path), str(path), "/home", "assistant")
    record = load_record(store, session)
    assert not record.allowed
    assert not record.grants
    assert record.system == ""


QUEUE_FILE = """
session_id = "abc"
saved_at = 2027-01-15T08:01:40Z

[[items]]
id = "m1"
content = "first"
status = "pending"
created_at = 2027-01-15T08:00:00Z
progress = "file 23/50"
user = "ann"

[[items]]
id = "m2"
content = "second\\nline"
status = "interrupted"
created_at = 2027-01-15T08:00:00Z
"""

# Texts --------------------------------------------------------------------------------------------

MESSAGES = [
    *("stop", "please just stop this now", "no, wait", "scratch that", "stop and revert"),
    *("revert the last file", "stop, use zod instead", "the stopwatch `exit(1)` in undo.py"),
    *(
        "/queue steer 5",
        "/goal all tests pass",
        "@scout: look",
        "don't stop",
        "thanks, ok",
        '"stop"',
    ),
]
VERDICTS = [
    '{"verdict": "achieved", "reason": "all is there"}',
    'It is.\n```json\n{"verdict": "continue", "reason": "x", "next": "y"}\n```',
    '{"verdict": "waiting", "reason": "x", "until": {"seconds": 5}}',
    '{"verdict": "waiting", "reason": "x", "until": {"file": "a/b"}}',
]
SHOWN = [
    *("plain text\n\tof two lines", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07x", "\x1bPq\x1b\\y"),
    *("a\u202eb\u2066c", "\U000e0041", "\x9b31m", "family: \U0001f468\u200d\U0001f469", "für 停止"),
]
_ACTING = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{HIDDEN}]")


@contextmanager
def _classified(_: Path) -> Generator[Take]:
    words = Keywords()

    def take(text: str) -> bool:
        known = classify(text, words, commands=("queue", "goal"))
        assert known == classify(text, words, commands=("queue", "goal"))
        return not known.says_more

    yield take


@contextmanager
def _judged(_: Path) -> Generator[Take]:
    yield lambda text: isinstance(read_verdict(text), Verdict)


@contextmanager
def _shown(_: Path) -> Generator[Take]:
    def take(text: str) -> bool:
        for safe in (audited(text), exposed(text), clean(text)):
            assert not _ACTING.search(safe)
        return clean(text) == text

    yield take


# Models -------------------------------------------------------------------------------------------

_ANSWERS = (
    Text("A plain answer.\nOf two lines."),
    Tools([{"tool": "read", "arguments": {"path": "a"}}]),
)


def _streams() -> list[str]:
    return ["".join(make(what)) for make in (chat_events, message_events) for what in _ANSWERS]


@contextmanager
def _streamed(_: Path) -> Generator[Take]:
    """Ask a model of either kind whose server answers with the input."""
    answer = [""]
    silent = AnswerListener(on_text=lambda _: None, on_notice=lambda _: None)
    request = ModelRequest(
        system="", messages=(ChatMessage(role="user", text="?"),), call_prefix="c"
    )
    never = RetryPolicy(retries=0)

    def ask(model: ChatModel | AnthropicModel) -> bool:
        async def once() -> bool:
            try:
                async with asyncio.timeout(seconds(30)):
                    found = await model.answer(request, silent)
            except ModelError:
                return False
            finally:
                await model.aclose()
            assert all(isinstance(call.arguments, dict) for call in found.tool_calls)
            return True

        return asyncio.run(once())

    with ModelServer(lambda _: Raw(answer[0])) as server:

        def take(text: str) -> bool:
            answer[0] = text
            server.requests.clear()
            kinds = (ChatModel, AnthropicModel)
            found = [ask(kind(server.base_url, "m", retry=never)) for kind in kinds]
            return any(found)

        yield take


# The installed command ----------------------------------------------------------------------------

LINES = [
    *(json.dumps({"text": text, "client_id": "a"}) for text in ("hello", "stop", "/queue")),
    *(json.dumps({"text": "x", "as": word}) for word in ("queue", "steer", "interrupt", "turn")),
    *(
        "plain",
        "/queue add more",
        "/queue edit 1 other",
        "/queue move 1 2",
        "/queue pop",
        "/busy steer",
    ),
    *('{"answer": "q1", "choice": "allow"}', "/queue clear", "/goal clear", "/agents", "/usage"),
]
REQUESTS = [
    json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    for method, params in (
        (
            "say",
            {"session": "last", "text": "hello", "as": "queue", "client_id": "c", "user": "ann"},
        ),
        ("queue", {"session": "last", "text": "more"}),
        ("inspect", {"session": "last"}),
        ("edit", {"session": "last", "number": 1}),
        ("answer", {"session": "last", "id": "q1", "choice": "allow"}),
        ("run", {"session": "last", "again": [["a", 0]], "done": []}),
        ("list", {}),
        ("sessions", {}),
        ("subscribe", {"session": "last"}),
    )
]


class _Program:
    """A chat that is begun again whenever an input has ended it, in good order."""

    def __init__(self, folder: Path, url: str) -> None:
        self.place = Place(folder)
        self.place.configure(url)
        self.session = ""
        self.chat = self._begin()
        self.count = 0

    def _begin(self) -> Chat:
        chat = self.place.chat()
        self.session = str(chat.wait("session_started")["session"])
        return chat

    def marked(self) -> bool:
        """Say something of ours behind the input; False if that was refused, or had ended the chat."""
        self.count += 1
        key = f"ours-{self.count}"
        try:
            self.chat.send({"text": "/queue clear", "client_id": key})
            self.chat.wait("accepted", client_id=key)
        except (AssertionError, BrokenPipeError):
            assert self.chat.ended() == 0, self.chat.story()
            assert self.chat.kinds()[-1] in ("session_suspended", "session_finalized")
            self._check()
            self.chat = self._begin()
            return False
        is_sound = not self.chat.seen("error", "rejected")
        self._check()
        return is_sound

    def _check(self) -> None:
        assert "Traceback" not in self.chat.diagnostics, self.chat.diagnostics
        assert not self.chat.seen("not json")
        self.chat.forget()

    def close(self) -> None:
        """End it."""
        try:
            assert self.chat.close() == 0, self.chat.story()
        finally:
            self.place.close()


@contextmanager
def _said(folder: Path) -> Generator[Take]:
    """Send lines to the standard input of `chat --json`."""
    with (
        ModelServer([Text("Yes.")]) as server,
        closing(_Program(folder, server.base_url)) as program,
    ):

        def take(text: str) -> bool:
            program.chat.send(text.encode("utf-8", "replace"))
            return program.marked()

        yield take


@contextmanager
def _requested(folder: Path) -> Generator[Take]:
    """Send lines to the control socket of a chat, over one connection until it is closed."""
    with (
        ModelServer([Text("Yes.")]) as server,
        closing(_Program(folder, server.base_url)) as program,
    ):
        sockets = program.place.home / "state" / "sockets"

        def take(text: str) -> bool:
            here = os.open(sockets, os.O_PATH)
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(seconds(30))
                [path] = sockets.glob("*.sock")
                try:
                    client.connect(
                        f"/proc/self/fd/{here}/{path.name}"
                    )  # the kernel takes 107 bytes
                finally:
                    os.close(here)
                line = text.replace("last", program.session).encode("utf-8", "replace")
                client.sendall(line + b'\n{"id": "ours", "method": "sessions", "params": {}}\n')
                is_sound = True
                with client.makefile("rb") as answers:
                    for answer in answers:
                        said = json.loads(answer)
                        if said.get("id") == "ours":
                            break
                        is_sound &= "error" not in said
            return program.marked() and is_sound

        yield take


KINDS: dict[str, Kind] = {
    "workflow file": Kind(_of_workflows, _refusable(_check_workflow, "job.toml")),
    "configuration file": Kind(
        _texts("config.toml", "workflows/starter.toml", "tests/config/*.toml"),
        _refusable(_check_configuration, "config.toml"),
    ),
    "routing table": Kind(
        _texts("workflows/routes/*.toml"), _refusable(lambda path: find_table(str(path)), "t.toml")
    ),
    "exported session": Kind(
        _texts("tests/journal/golden/1.json"), _refusable(_check_export, "session.json")
    ),
    "queue file": Kind(lambda: [QUEUE_FILE], _refusable(read_file, "queue.toml")),
    "message": Kind(lambda: MESSAGES, _classified),
    "judge's answer": Kind(lambda: VERDICTS, _judged),
    "text on a terminal": Kind(lambda: SHOWN, _shown),
    "model's answer": Kind(_streams, _streamed),
    "line of a program": Kind(lambda: LINES, _said, is_line=True),
    "request at the socket": Kind(lambda: REQUESTS, _requested, is_line=True),
    **{name: Kind(*kind) for name, kind in WIRES.items()},
}
