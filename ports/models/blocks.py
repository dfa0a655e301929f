"""Work with a small model: the files come with the request, whole files come back in fenced blocks.

A model of one or two billion parameters calls tools badly, and writes a short file well. So the request
is sent with the files that it is about (the tool `survey`), the model prints each file that it changes,
and its blocks become calls of `write`, which are journalled, permitted and can be taken back like any
other. Where tests are spoken of, or a file that was there is changed, the folder's tests are run, and a
failure is told. What comes next is read from the conversation alone, so that a turn goes on after a crash
like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ...machines.conversation import ChatMessage, ToolRequest
from ...machines.value import Value
from ..tools.survey import SURVEY, TESTS
from .fragments import merged, repaired
from .model import AnswerListener, ModelAnswer, ModelRequest, WrappedModel
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

_EVERYWHERE = re.compile(
    r"\b(every ?where|all over|every|all|each|rename|bump|refers?|replace|instead of)\b", re.I
)
"""A request that may be about several files; for one that is, what is left over is looked for."""
_WORDS = re.compile(r"[A-Za-z_][\w-]{2,}|\d+(?:\.\d+)*")
_AGAIN = "Say in one sentence what is wrong, then print the path and the whole corrected file."
_PART = (
    "Only a part of {names} is shown. To look into it, or to make something of all its lines, print one "
    "short command (of grep, sort, awk or python3 -c) in a ```sh block, and nothing else.\n\n"
)
_MOVES = re.compile(r"\b(rename|move|delete|remove)\b.{0,200}?[\w/-]\.\w{1,5}\b", re.I)
_MOVE = (
    "To move or remove a file, print first the one command for it (such as `mv old.txt new.txt`) in a "
    "```sh block, and nothing else.\n\n"
)
_FAILS = "The tests (`{command}`) still fail:\n{output}"
_FAILED = "The tests (`{command}`) fail:\n{output}"
_NOT_WRITTEN = "This was not done: {output}"
_PRINTED = "`{command}` printed:\n{output}\n\nThe request was: {request}"
_MENDS = re.compile(r"\b(fix|bugs?|fails?|failing|broken)\b", re.I)
_SPEAKS_OF_TESTS = re.compile(r"\b(tests?|test_\w+|check\w*|verif\w+|fix|bugs?|fails?)\b", re.I)
_MAKES = re.compile(r"\b(write|create|make|add|put|convert|generate|save)\b", re.I)
_NUDGE = (
    "Nothing was changed yet. Print the path of the file alone on a line, then its whole new content in "
    "a fenced block."
)
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


class BlocksDialect(WrappedModel):
    """Lets a small model work in a folder; requests without the tools of its profile pass unchanged."""

    async def answer(self, request: ModelRequest, listener: AnswerListener) -> ModelAnswer:
        """Return the model's answer with its blocks as calls, or the calls that come before it."""
        names = {tool.name for tool in request.tools}
        if SURVEY not in names or request.is_plain or request.response_schema is not None:
            plain = replace(request, tools=(), messages=tuple(spoken(request.messages)))
            return await self.inner.answer(plain, listener)
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
                answer = await self.inner.answer(asked, listener)
        calls = state.calls_of(answer.text, names)
        if not calls and state.owes_file(answer.text):
            said = ChatMessage(role="assistant", text=answer.text)
            told = ChatMessage(role="user", text=_NUDGE)
            again = replace(asked, messages=(*messages, said, told))
            second = await self.inner.answer(again, listener)
            text, usage = f"{answer.text}\n\n{second.text}", answer.usage + second.usage
            answer = replace(second, text=text, usage=usage)
            calls = state.calls_of(second.text, names)
        if not calls:
            return answer
        return replace(answer, tool_calls=_requests(calls, request), stop_reason="tools")


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
        self.rounds = [one for one in rounds if one.text]
        looked = [pair for one in rounds if not one.text for pair in one.pairs]
        self._surveys = [text for call, text in looked if call.tool == SURVEY]
        self.survey = self._surveys[-1] if self._surveys else ""
        at = max((n for n, one in enumerate(rounds) if _is_survey(one)), default=-1)
        runs = [pair for one in rounds for pair in one.pairs if self._is_test(pair[0])]
        self._since = [
            one
            for one in rounds[at + 1 :]
            if one.text and not all(self._is_test(call) for call in one.calls)
        ]
        self.tested = runs[-1][1] if runs else None
        newest = max((n for n, said in enumerate(turn) if _is_request(said)), default=0)
        self._is_surveyed = any(
            call.tool == SURVEY for said in turn[newest:] for call in said.tool_calls
        )

    def _is_test(self, call: ToolRequest) -> bool:
        return call.tool == "shell" and call.arguments.get("command") == self.tests

    @property
    def tests(self) -> str:
        """The command that runs the folder's tests; empty if it has none."""
        last = self.survey.rpartition("\n")[2]
        return last.removeprefix(TESTS) if last.startswith(TESTS) else ""

    @property
    def files(self) -> dict[str, str | None]:
        """The files that the survey shows, by path; none for one that is not shown whole."""
        return _files_in(self.survey)

    @property
    def _hint(self) -> str:
        """Say for what a command is needed: to look into files that are shown in part, or to move one."""
        if not self.rounds and _MOVES.search(self.request):
            return _MOVE
        long = [path for path, text in self.files.items() if text is None]
        names = [f"`{path}`" for path in long if path.rpartition("/")[2] in self.request]
        return _PART.format(names=" and ".join(names[:3])) if names else ""

    def next_step(self) -> Next:
        """Say what to do now."""
        look = Call(calls=((SURVEY, {"request": self.request}),))
        if not self._is_surveyed:
            return look
        if not self.rounds:
            return Ask(messages=self._conversation())
        last = self.rounds[-1]
        if not last.writes and self._since and _MOVES.search(self.request) and not self._remarks:
            return look
        has_passed = self.tested is not None and _has_passed(self.tested)
        if has_passed and not (last.writes or self._since or self._remarks):
            return Say(text=f"Nothing was changed; `{self.tests}` passes.")
        if not last.writes or self._remarks:
            return Ask(messages=self._conversation())
        fault = self._fault(last)
        if sum(bool(one.writes) for one in self.rounds) < ROUNDS:
            is_looked = not self._since  # after the last change
            if not is_looked and (fault or _EVERYWHERE.search(self.request)):
                return look
            if is_looked and (fault or self._left_over()):
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
            is_change = any(path in self.files for path, _ in files)
            is_tested = self.tests and (is_change or _SPEAKS_OF_TESTS.search(self.request))
            return (*writes, *([self._test_run()] if is_tested else []))
        if self.tests and self.tested is None and _MENDS.search(self.request):
            return (self._test_run(),)  # what fails says more than the request
        if len(self.rounds) >= LOOKS:
            return ()
        return tuple((call.tool, call.arguments) for call in calls_in(text, offered))

    def owes_file(self, text: str) -> bool:
        """Whether an answer without a file should have had one: code without a path, or nothing fixed."""
        is_question = self.request.rstrip().endswith("?") and not _MENDS.search(self.request)
        named = set(_PATH.findall(self.request))
        wants_new = bool(_MAKES.search(self.request) and named - self.files.keys())
        has_code = any(path in ("", *_ENDINGS.values()) for path, _ in _blocks(text.splitlines()))
        wants_any = has_code or wants_new or bool(_MENDS.search(self.request))
        return wants_any and not is_question

    def _test_run(self) -> tuple[str, Mapping[str, Any]]:
        return "shell", {"command": self.tests, "timeout": _TEST_SECONDS}

    def _written(self, text: str) -> list[tuple[str, str]]:
        """Return the files that an answer changes, without those that stay as they are."""
        known = self.files
        found = {
            _known_path(path, known): body
            for path, body in _placed(_blocks(text.splitlines(), known), known, self.request)
        }
        whole = {
            path: merged(path, known.get(path) or "", repaired(path, body))
            for path, body in found.items()
        }
        fails = self.tested is not None and _has_failed(self.tested)
        fits = {
            path: body
            for path, body in whole.items()
            if not _is_kept(path, known, self.request, is_failing=fails)
        }
        changed = [(p, body) for p, body in fits.items() if not _is_same(known.get(p), body)]
        return changed or (list(fits.items()) if fails else [])  # it is told that nothing changed

    def _fault(self, one: _Round) -> str:
        """Say what went wrong with the files of an answer; empty if nothing did."""
        for call, result in one.pairs:
            if call.tool == "write" and not result.startswith(("Created", "Replaced", "Unchanged")):
                return _NOT_WRITTEN.format(output=result[:_TAIL])
            if call.tool == "shell" and _has_failed(result):
                output = _EXIT.sub("", result).rstrip()[-_TAIL:]
                return _FAILS.format(command=call.arguments.get("command"), output=output)
        return ""

    def _farewell(self, last: _Round, fault: str) -> str:
        if fault:
            return fault
        runs = [result for call, result in last.pairs if self._is_test(call)]
        if not runs:
            return "Done."
        how = "passes" if _has_passed(runs[-1]) else "was not run to its end"
        return f"Done; `{self.tests}` {how}."

    def _conversation(self) -> tuple[ChatMessage, ...]:
        """Return the conversation as the model is to read it."""
        shown = self.survey
        if self.tests:
            shown = shown.rpartition("\n")[0].rstrip()
        last = self.rounds[-1] if self.rounds else None
        fault = ""
        if self.tested is not None and _has_failed(self.tested):
            output = _EXIT.sub("", self.tested).rstrip()[-_TAIL:]
            fault = _FAILED.format(command=self.tests, output=output)
        elif last is not None and last.writes:
            fault = self._fault(last)
        fault = " ".join(filter(None, (fault, self._left_over())))
        said = [*spoken(self._earlier, _EARLIER)]
        if said and said[-1].role == "user":  # it was interrupted, and is asked again
            said.pop()
        text = "\n\n".join(filter(None, (shown, fault, f"{self._hint}{self.request}")))
        if last is not None and fault and not self._since:
            text = f"{shown}\n\nThe request was: {self.request}\n\n{fault}\n{_AGAIN}"
        elif last is not None and not (last.writes or self._since):
            commands = (str(call.arguments.get("command", "")) for call in last.calls)
            text = f"{shown}\n\n`{'; '.join(commands)}` was run. Do the rest: {self.request}"
        said.append(ChatMessage(role="user", text=text))
        for one in self._since:
            said += [
                ChatMessage(role="assistant", text=one.text),
                ChatMessage(role="user", text=self._told(one)),
            ]
        return (*said, *self._remarks)

    def _left_over(self) -> str:
        """Say where a name or number that a change replaced is left in other files; empty if nowhere."""
        if len(self._surveys) < 2 or not _EVERYWHERE.search(self.request):
            return ""
        before, now = _files_in(self._surveys[0]), self.files
        changed = [path for path, text in now.items() if before.get(path) != text]
        gone = {
            word
            for path in changed
            for word in _WORDS.findall(before.get(path) or "")
            if word not in _WORDS.findall(now.get(path) or "")
        }
        asked = gone & {*_WORDS.findall(self.request)} or gone
        found = [
            f"`{word}` is still in {', '.join(where)}."
            for word in sorted(asked)
            if (
                where := [p for p, text in now.items() if p not in changed and word in (text or "")]
            )
        ]
        return " ".join(found[:3])

    def _told(self, one: _Round) -> str:
        if one.writes:
            return self._fault(one) or "That is not all."
        printed = (
            _PRINTED.format(
                command=call.arguments.get("command", call.tool),
                output=result[-_OUTPUT:],
                request=self.request,
            )
            for call, result in one.pairs
        )
        return "\n".join(printed)


def _files_in(survey: str) -> dict[str, str | None]:
    return {
        path: None if any(line.startswith("[… ") for line in text.splitlines()) else text
        for path, text in _blocks(survey.splitlines())
        if path
    }


def _is_survey(one: _Round) -> bool:
    return any(call.tool == SURVEY for call in one.calls)


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
    """Whether a command has run and succeeded; one that was refused, or ended at its limit, has not."""
    code = _EXIT.search(result)
    return code is not None and code[1] == "0"


def _has_failed(result: str) -> bool:
    """Whether a command has run and failed; one that did not end by itself has shown nothing."""
    code = _EXIT.search(result)
    return code is not None and code[1] != "0" and not code[1].startswith("-")


def spoken(messages: Iterable[ChatMessage], most: int = 0) -> Iterable[ChatMessage]:
    """Yield what was said, without calls and results; of each the first `most` characters."""
    last = ""
    for message in messages:
        text = (
            message.text if not most or len(message.text) <= most else f"{message.text[:most]} […]"
        )
        is_note = message.role == "assistant" and text.startswith("[") and text.endswith("]")
        if message.role in ("tool", last) or is_note or not text.strip():
            continue
        last = message.role
        yield ChatMessage(role=message.role, text=text)


# Blocks -------------------------------------------------------------------------------------------


_FENCE = re.compile(r"^\s*(`{3,}|~{3,})(.*)$")
_PATH = re.compile(
    r"(?<![\w.+-])(?:[\w.+-]++/){0,40}"
    r"(?:[\w+-][\w.+-]*\.\w+|Makefile|Dockerfile|LICENSE|\.\w[\w.-]*)"
)
_SHELLS = ("sh", "bash", "shell", "console", "zsh")
_ENDINGS = {
    "python": ".py",
    "py": ".py",
    "json": ".json",
    "toml": ".toml",
    "yaml": ".yaml",
    "yml": ".yml",
    "csv": ".csv",
    "markdown": ".md",
    "html": ".html",
    "css": ".css",
    "javascript": ".js",
}
Block = tuple[str, str]
"""The path of a fenced block, or the ending that its language has, or nothing; and its content."""


def _blocks(lines: Sequence[str], known: Mapping[str, object] | None = None) -> list[Block]:
    """Read the whole fenced blocks of a text; those of a shell have no path."""
    found: list[Block] = []
    at = 0
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        at += 1
        if fence is None:
            continue
        end = _end_of(lines, at, fence[1], known or {})
        if end is None:  # it was cut off, or opened twice
            continue
        info, body = fence[2].strip(), lines[at:end]
        path = _path_in(info) or _path_above(lines[: at - 1])
        if body and path and body[0].strip() == path:
            body = body[1:]
        if not path and body and (inside := _path_in(body[0].lstrip("#/*-;<! "))):
            if known and inside in known and body[0].lstrip()[:1] in "#/*-;<":
                path, body = inside, body[1:]
        if info.partition(" ")[0].lower() not in _SHELLS or path.endswith((".sh", ".bash")):
            path = path or _ENDINGS.get(info.lower(), "")
            found.append((path, "\n".join(body) + "\n" if body else ""))
        at = end + 1 if _FENCE.match(lines[end]) else end
    return found


def _end_of(
    lines: Sequence[str], start: int, fence: str, known: Mapping[str, object] | None = None
) -> int | None:
    """Return the line that closes a fence; a fence inside, with a language, is closed before it.

    A known path with a fence below it begins the next file: the fence before was left open.
    """
    depth = 0
    for at in range(start, len(lines)):
        if known and lines[at].strip("*`#: ") in known and _has_fence_below(lines, at):
            return at
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


def _has_fence_below(lines: Sequence[str], at: int) -> bool:
    below = next((line for line in lines[at + 1 : at + 3] if line.strip()), "")
    return _FENCE.match(below) is not None


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
        if path and path not in _ENDINGS.values():
            yield path, body
            continue
        names = set(_DEFINED.findall(body))
        fits = [
            name
            for name, text in known.items()
            if text and not _is_test(name) and (own := set(_DEFINED.findall(text))) and own <= names
        ]
        if len(fits) != 1 and len(blocks) == 1:
            named = [name for name in dict.fromkeys(_PATH.findall(request)) if not _is_test(name)]
            named = [name for name in named if name.endswith(path)]
            fits = [name for name in named if name not in known] if len(named) > 1 else named
        if len(fits) == 1:
            yield fits[0], body


def _known_path(path: str, known: Mapping[str, object]) -> str:
    """Return the path of the one known file that is meant by the end of its path."""
    path = path.removeprefix("./")
    ends = [name for name in known if name.endswith(f"/{path}")]
    return ends[0] if path not in known and len(ends) == 1 else path


def _is_test(path: str) -> bool:
    name = path.rpartition("/")[2]
    ends = ("_test.py", "_test.go", ".test.js", ".test.ts")
    return name.startswith("test_") or name.endswith(ends) or name in ("test.sh", "run_tests.sh")


def _is_kept(path: str, known: Mapping[str, str | None], request: str, *, is_failing: bool) -> bool:
    """Whether a file may not be replaced: shown in part, or a test that fails or is not named."""
    is_asked = path.rpartition("/")[2] in request and not is_failing
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
