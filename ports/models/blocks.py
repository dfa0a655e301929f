"""Work with a small model: the files come with the request, whole files come back in fenced blocks.

A model of one or two billion parameters calls tools badly, and writes a short file well. So the request
is sent with the files that it is about (the tool `survey`), the model prints each file that it changes,
and its blocks become calls of `write`, which are journalled, permitted and can be taken back like any
other. Where the folder has tests they are run afterwards, and a failure is told once. What comes next is
read from the conversation alone, so that a turn goes on after a crash like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ...machines.conversation import ChatMessage, ToolRequest
from ...machines.value import Value
from ..tools.survey import SURVEY, TESTS
from .fragments import merged
from .model import AnswerListener, Model, ModelAnswer, ModelRequest
from .said_calls import calls_in

PROMPT = """\
You answer questions about files and change files. You are given files of the folder.
If a file must be changed or created, print its path alone on a line, then its whole new content in a \
fenced block:

hello.py
```python
print("new content")
```

Use the paths as they are given. Print no file that stays as it is. If nothing must be changed, only \
answer in words."""
TOOLS = (SURVEY, "read", "search", "write", "shell")
"""The tools of the profile; the model itself is told of none."""

ROUNDS = 3
"""Answers with files in a turn: the second one, and a third, after a failure."""
LOOKS = 3
"""Answers with other calls in a turn."""
_TAIL = 1200  # characters of a failure that are told
_OUTPUT = 2000  # characters of a command's output
_EARLIER = 500  # characters of a message of an earlier turn
_TEST_SECONDS = 60

REMARKS = ("[No progress]", "[Facts]")
"""Begin what the program itself says to the model."""

_AGAIN = (
    "{what}\nSay in one sentence what is wrong, then print the path and the whole corrected file."
)
_SAME = "You printed the file as it was before. "
_PART = (
    "Only a part of {names} is shown. To look into it or to change it as a whole, print one shell "
    "command in a ```sh block, and nothing else.\n\n"
)
_FAILS = "The tests (`{command}`) still fail:\n{output}"
_FAILED_BEFORE = "The tests (`{command}`) fail:\n{output}\n\n"
_NOT_WRITTEN = "This was not done: {output}"
_PRINTED = "`{command}` printed:\n{output}\n\nThe request was: {request}"
_MENTIONS_TESTS = re.compile(r"\b(tests?|bugs?|fix|fails?|failing|broken|wrong|error)\b", re.I)
_EXIT = re.compile(r"\[exit code (-?\d+)\]\s*$")


class Ask(Value):
    """Ask the model."""

    messages: tuple[ChatMessage, ...]


class Call(Value):
    """Make calls without asking the model."""

    calls: tuple[tuple[str, Mapping[str, Any]], ...]


class Say(Value):
    """End the turn with words of our own."""

    text: str


Next = Ask | Call | Say


class BlocksDialect:
    """Lets a small model work in a folder; requests without the tools of its profile pass unchanged."""

    def __init__(self, inner: Model) -> None:
        self._inner = inner
        self.name = inner.name

    async def answer(self, request: ModelRequest, listener: AnswerListener) -> ModelAnswer:
        """Return the model's answer with its blocks as calls, or the calls that come before it."""
        names = {tool.name for tool in request.tools}
        if SURVEY not in names or request.is_plain or request.response_schema is not None:
            plain = replace(request, tools=(), messages=tuple(spoken(request.messages)))
            return await self._inner.answer(plain, listener)
        state = TurnView(request.messages)
        match state.next_step():
            case Say(text=text):
                listener.on_text(text)
                return ModelAnswer(text=text)
            case Call(calls=calls):
                return ModelAnswer(
                    text="", tool_calls=_requests(calls, request), stop_reason="tools"
                )
            case Ask(messages=messages):
                asked = replace(request, messages=messages, tools=())
                answer = await self._inner.answer(asked, listener)
        calls = state.calls_of(answer.text, names)
        if not calls:
            return answer
        return replace(answer, tool_calls=_requests(calls, request), stop_reason="tools")

    async def window(self) -> int:
        """Return the window of the inner model."""
        return await self._inner.window()

    async def aclose(self) -> None:
        """Close the inner model. Idempotent."""
        await self._inner.aclose()


def _requests(
    calls: Iterable[tuple[str, Mapping[str, Any]]], request: ModelRequest
) -> tuple[ToolRequest, ...]:
    return tuple(
        ToolRequest(call=f"{request.call_prefix}{number}", tool=tool, arguments=dict(arguments))
        for number, (tool, arguments) in enumerate(calls, 1)
    )


# What comes next ----------------------------------------------------------------------------------


class _Round(Value):
    """An answer of the model in this turn, with its calls and their results."""

    text: str
    calls: tuple[ToolRequest, ...]
    results: tuple[str, ...]

    @property
    def writes(self) -> tuple[ToolRequest, ...]:
        """Its calls that write files."""
        return tuple(call for call in self.calls if call.tool == "write")

    @property
    def pairs(self) -> list[tuple[ToolRequest, str]]:
        """Each call with its result."""
        return list(zip(self.calls, self.results, strict=False))


class TurnView:
    """One turn as its messages show it: the request, what was looked at, and what the model did."""

    def __init__(self, messages: Sequence[ChatMessage]) -> None:
        start = _start_of_turn(messages)
        self._earlier = messages[:start]
        turn = messages[start:]
        results = {said.call: said.text for said in turn if said.role == "tool"}
        asked = [said.text for said in turn if said.role == "user"]
        self.request = "\n".join(text for text in asked if not text.startswith(REMARKS))
        self._remarks = _remarks(turn)
        answers = [said for said in turn if said.role == "assistant" and said.tool_calls]
        rounds = [
            _Round(
                text=said.text,
                calls=said.tool_calls,
                results=tuple(results.get(call.call, "") for call in said.tool_calls),
            )
            for said in answers
        ]
        ours = [one for one in rounds if not one.text]
        self.rounds = [one for one in rounds if one.text]
        looked = [pair for one in ours for pair in one.pairs]
        surveys = [text for call, text in looked if call.tool == SURVEY]
        self.survey = surveys[-1] if surveys else ""
        self.before = next((pair for pair in looked[::-1] if pair[0].tool == "shell"), None)
        newest = max((at for at, said in enumerate(turn) if _is_request(said)), default=0)
        self._is_surveyed = any(
            call.tool == SURVEY for said in turn[newest:] for call in said.tool_calls
        )

    @property
    def tests(self) -> str:
        """The command that runs the folder's tests; empty if it has none."""
        last = self.survey.rpartition("\n")[2]
        return last.removeprefix(TESTS) if last.startswith(TESTS) else ""

    @property
    def files(self) -> dict[str, str | None]:
        """The files that the survey shows, by path; none for one that is not shown whole."""
        shown = dict(_blocks(self.survey.splitlines()))
        return {
            path: None if any(line.startswith("[… ") for line in text.splitlines()) else text
            for path, text in shown.items()
        }

    @property
    def _hint(self) -> str:
        """Say how to look into files that are shown in part; empty if the request is about none."""
        long = [path for path, text in self.files.items() if text is None]
        names = [f"`{path}`" for path in long if path.rpartition("/")[2] in self.request]
        return _PART.format(names=" and ".join(names[:3])) if names else ""

    def next_step(self) -> Next:
        """Say what to do now."""
        if not self._is_surveyed:
            return Call(calls=((SURVEY, {"request": self.request}),))
        if not self.rounds:
            if self.tests and self.before is None and _MENTIONS_TESTS.search(self.request):
                return Call(calls=(self._test_run(),))
            return Ask(messages=self._conversation())
        last = self.rounds[-1]
        if not last.writes or self._remarks:
            return Ask(messages=self._conversation())
        fault = self._fault(last)
        written = sum(bool(one.writes) for one in self.rounds)
        if fault and written < ROUNDS:
            return Ask(messages=self._conversation())
        return Say(text=self._farewell(last, fault))

    def calls_of(
        self, text: str, offered: Iterable[str]
    ) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        """Return the calls that an answer of the model comes to."""
        files = self._written(text)
        if not files and self._hint and len(self.rounds) < LOOKS:
            commands = commands_in(text)
            if commands:
                return (("shell", {"command": commands[0]}),)
        if files:
            writes = [("write", {"path": path, "content": body}) for path, body in files]
            return (*writes, *([self._test_run()] if self.tests else []))
        if len(self.rounds) >= LOOKS:
            return ()
        return tuple((call.tool, call.arguments) for call in calls_in(text, offered))

    def _test_run(self) -> tuple[str, Mapping[str, Any]]:
        return "shell", {"command": self.tests, "timeout": _TEST_SECONDS}

    def _written(self, text: str) -> list[tuple[str, str]]:
        """Return the files that an answer changes, without those that stay as they are."""
        known = self.files
        found = {
            _known_path(path, known): body
            for path, body in _placed(_blocks(text.splitlines(), known), known, self.request)
        }
        whole = {path: merged(path, known.get(path) or "", body) for path, body in found.items()}
        fits = {p: body for p, body in whole.items() if not _is_kept(p, known, self.request)}
        changed = [(p, body) for p, body in fits.items() if not _is_same(known.get(p), body)]
        fails = self.before is not None and not _has_passed(self.before[1])
        return changed or (list(fits.items()) if fails else [])  # it is told that nothing changed

    def _fault(self, one: _Round) -> str:
        """Say what went wrong with the files of an answer; empty if nothing did."""
        for call, result in one.pairs:
            if call.tool == "write" and not result.startswith(("Created", "Replaced", "Unchanged")):
                return _NOT_WRITTEN.format(output=result[:_TAIL])
            if call.tool == "shell" and not _has_passed(result):
                output = _EXIT.sub("", result).rstrip()[-_TAIL:]
                return _FAILS.format(command=call.arguments.get("command"), output=output)
        return ""

    def _farewell(self, last: _Round, fault: str) -> str:
        if fault:
            return fault
        has_tests = any(call.tool == "shell" for call in last.calls)
        return f"Done; `{self.tests}` passes." if has_tests else "Done."

    def _conversation(self) -> tuple[ChatMessage, ...]:
        """Return the conversation as the model is to read it."""
        shown = self.survey
        if self.tests:
            shown = shown.rpartition("\n")[0].rstrip()
        before = ""
        if self.before is not None and not _has_passed(self.before[1]):
            output = _EXIT.sub("", self.before[1]).rstrip()[-_TAIL:]
            before = _FAILED_BEFORE.format(command=self.tests, output=output)
        said = [*spoken(self._earlier, _EARLIER)]
        text = f"{shown}\n\n{before}{self._hint}{self.request}"
        said.append(ChatMessage(role="user", text=text))
        for one in self.rounds:
            said += [
                ChatMessage(role="assistant", text=one.text),
                ChatMessage(role="user", text=self._told(one)),
            ]
        return (*said, *self._remarks)

    def _told(self, one: _Round) -> str:
        if one.writes:
            is_same = all(
                result.startswith("Unchanged") for call, result in one.pairs if call.tool == "write"
            )
            what = self._fault(one) or "That is not all."
            return _AGAIN.format(what=f"{_SAME}{what}" if is_same else what)
        printed = (
            _PRINTED.format(
                command=call.arguments.get("command", call.tool),
                output=result[-_OUTPUT:],
                request=self.request,
            )
            for call, result in one.pairs
        )
        return "\n".join(printed)


def _start_of_turn(messages: Sequence[ChatMessage]) -> int:
    """Return where the turn begins: behind the last answer that made no call and was left at that."""
    for at in range(len(messages) - 2, -1, -1):
        said = messages[at]
        if said.role == "assistant" and not said.tool_calls and _is_request(messages[at + 1]):
            return at + 1
    return 0


def _is_request(said: ChatMessage) -> bool:
    return said.role == "user" and not said.text.startswith(REMARKS)


def _remarks(turn: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """Return the newest remark of the program, if nothing came after it, and the words it is about."""
    if not turn or turn[-1].role != "user" or _is_request(turn[-1]):
        return ()
    before = turn[-2] if len(turn) > 1 else turn[-1]
    is_answer = before.role == "assistant" and not before.tool_calls
    return (before, turn[-1]) if is_answer else (turn[-1],)


def _has_passed(result: str) -> bool:
    code = _EXIT.search(result)
    return code is None or code[1] == "0"


def spoken(messages: Iterable[ChatMessage], most: int = 0) -> Iterable[ChatMessage]:
    """Yield what was said, without calls and results; of each the first `most` characters."""
    last = ""
    for message in messages:
        text = (
            message.text if not most or len(message.text) <= most else f"{message.text[:most]} […]"
        )
        if message.role == "tool" or not text.strip() or (last, text) == (message.role, text):
            continue
        if message.role == last:
            continue
        last = message.role
        yield ChatMessage(role=message.role, text=text)


# Blocks -------------------------------------------------------------------------------------------


_FENCE = re.compile(r"^\s*(`{3,}|~{3,})(.*)$")
_PATH = re.compile(r"(?:[\w.+-]+/)*(?:[\w+-][\w.+-]*\.\w+|Makefile|Dockerfile|LICENSE|\.\w[\w.-]*)")
_SHELLS = ("sh", "bash", "shell", "console", "zsh")
Block = tuple[str, str]
"""The path of a fenced block, empty if it has none, and its content."""


def _blocks(lines: Sequence[str], known: Mapping[str, object] | None = None) -> list[Block]:
    """Read the whole fenced blocks of a text; those of a shell have no path."""
    found: list[Block] = []
    at = 0
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        at += 1
        if fence is None:
            continue
        end = _end_of(lines, at, fence[1])
        if end is None:  # it was cut off, or opened twice
            continue
        info, body = fence[2].strip(), lines[at:end]
        path = _path_in(info) or _path_above(lines[: at - 1])
        if not path and body and (inside := _path_in(body[0].lstrip("#/*-;<! "))):
            if known and inside in known and body[0].lstrip()[:1] in "#/*-;<":
                path, body = inside, body[1:]
        if info.partition(" ")[0].lower() not in _SHELLS or path.endswith((".sh", ".bash")):
            found.append((path, "\n".join(body) + "\n" if body else ""))
        at = end + 1
    return found


def _end_of(lines: Sequence[str], start: int, fence: str) -> int | None:
    """Return the line that closes a fence; a fence inside, with a language, is closed before it."""
    depth = 0
    for at in range(start, len(lines)):
        inner = _FENCE.match(lines[at])
        if inner is None or inner[1][0] != fence[0] or len(inner[1]) < len(fence):
            continue
        if inner[2].strip():
            depth += 1
        elif depth:
            depth -= 1
        else:
            return at
    return None


def _path_in(text: str) -> str:
    """Return the path that a heading or an info string is about; empty if it is about none."""
    words = re.split(r"[\s:=\"'()]+", text.strip().strip("*`#: "))
    for word in reversed(words):
        word = word.strip("*`\"',:")
        if word and _PATH.fullmatch(word):
            return word
    return ""


def _path_above(lines: Sequence[str]) -> str:
    """Return the path in the line above a block, if the line is a heading or ends with it."""
    above = next((line for line in reversed(lines[-3:]) if line.strip()), "").strip()
    if not above or _FENCE.match(above) or len(above) > 120:
        return ""
    quoted = re.findall(r"`([^`]+)`", above)
    paths = [text for text in quoted if _PATH.fullmatch(text)]
    return paths[-1] if paths else _path_in(above) if len(above.split()) <= 6 else ""


_DEFINED = re.compile(r"^(?:def|class|function|const|func|fn) (\w+)", re.M)


def _placed(
    blocks: Sequence[Block], known: Mapping[str, str | None], request: str
) -> Iterable[Block]:
    """Give blocks without a path the one that can be meant: a file by its definitions, or the named."""
    for path, body in blocks:
        if path:
            yield path, body
            continue
        names = set(_DEFINED.findall(body))
        fits = [
            name
            for name, text in known.items()
            if text and not _is_test(name) and (own := set(_DEFINED.findall(text))) and own <= names
        ]
        if len(fits) != 1:
            fits = list(dict.fromkeys(_PATH.findall(request)))
            fits = [name for name in fits if not _is_test(name)] if len(blocks) == 1 else []
        if len(fits) == 1:
            yield fits[0], body


def _known_path(path: str, known: Mapping[str, object]) -> str:
    """Return the path of the one known file that is meant by the end of its path."""
    path = path.removeprefix("./")
    ends = [name for name in known if name.endswith(f"/{path}")]
    return ends[0] if path not in known and len(ends) == 1 else path


def _is_test(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.startswith("test_") or name.endswith(("_test.py", "_test.go", ".test.js"))


def _is_kept(path: str, known: Mapping[str, str | None], request: str) -> bool:
    """Whether a file may not be replaced: it was shown in part, or is a test that nobody spoke of."""
    is_asked = path.rpartition("/")[2] in request
    return path in known and (known[path] is None or (_is_test(path) and not is_asked))


def _is_same(before: str | None, body: str) -> bool:
    return before is not None and before.rstrip() == body.rstrip()


def commands_in(text: str) -> list[str]:
    """Return the commands of the shell blocks of a text."""
    found: list[str] = []
    lines = text.splitlines()
    for at, line in enumerate(lines):
        fence = _FENCE.match(line)
        if fence is None or fence[2].strip().lower() not in _SHELLS:
            continue
        end = _end_of(lines, at + 1, fence[1])
        body = [one.removeprefix("$ ") for one in lines[at + 1 : end] if one.strip()]
        if end is not None and body:
            found.append("\n".join(body))
    return found
