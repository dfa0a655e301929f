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
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
_MENDS = re.compile(r"\b(fix|bugs?|fails?|failing|broken)\b", re.I)
_SPEAKS_OF_TESTS = re.compile(r"\b(tests?|test_\w+|check\w*|verif\w+|fix|bugs?|fails?)\b", re.I)
_MAKES = re.compile(r"\b(write|create|make|add|put|convert|generate|save)\b", re.I)
_NUDGE = (
    "Nothing was changed yet. Print the path of the file alone on a line, then its whole new content in "
    "a fenced block."
)
_EXIT = re.compile(r"\[exit code (-?\d+)\]\s*$")


Calls = tuple[tuple[str, Mapping[str, Any]], ...]
"""Tools and their arguments."""


class BlocksDialect(WrappedModel):
    """Lets a small model work in a folder; requests without the tools of its profile pass unchanged."""

    async def answer(self, request: ModelRequest, listener: AnswerListener) -> ModelAnswer:
        """Return the model's answer with its blocks as calls, or the calls that come before it."""
        names = {tool.name for tool in request.tools}
        if SURVEY not in names or request.is_plain or request.response_schema is not None:
            plain = replace(request, tools=(), messages=tuple(spoken(request.messages)))
            return await self.inner.answer(plain, listener)
        state = TurnView(request.messages)
        step = state.next_step()
        if step is None:
            look = _requests(((SURVEY, {"request": state.request}),), request)
            return ModelAnswer(text="", tool_calls=look, stop_reason="tools")
        if isinstance(step, str):
            listener.on_text(step)
            return ModelAnswer(text=step)
        asked = replace(request, messages=step, tools=())
        answer = await self.inner.answer(asked, listener)
        calls = state.calls_of(answer.text, names)
        if not calls and state.owes_file(answer.text):
            said = ChatMessage(role="assistant", text=answer.text)
            told = ChatMessage(role="user", text=_NUDGE)
            again = replace(asked, messages=(*step, said, told))
            second = await self.inner.answer(again, listener)
            text, usage = f"{answer.text}\n\n{second.text}", answer.usage + second.usage
            answer = replace(second, text=text, usage=usage)
            calls = state.calls_of(second.text, names)
        if not calls:
            return answer
        return replace(answer, tool_calls=_requests(calls, request), stop_reason="tools")


def _requests(calls: Calls, request: ModelRequest) -> tuple[ToolRequest, ...]:
    return tuple(
        ToolRequest(call=f"{request.call_prefix}{number}", tool=tool, arguments=dict(arguments))
        for number, (tool, arguments) in enumerate(calls, 1)
    )


# What comes next ----------------------------------------------------------------------------------


class _Round(Value):
    """An answer of the model in this turn, and each of its calls with the result."""

    text: str
    pairs: tuple[tuple[ToolRequest, str], ...]

    @property
    def writes(self) -> bool:
        """Whether a call of it writes a file."""
        return any(call.tool == "write" for call, _ in self.pairs)


class TurnView:
    """One turn as its messages show it: the request, what was looked at, and what the model did.

    `files` are those that the newest survey shows, by path, none for one that is not shown whole; `tests`
    is the command that runs the folder's tests, empty if it has none; `tested` is what it printed last.
    """

    def __init__(self, messages: Sequence[ChatMessage]) -> None:
        start = _start_of_turn(messages)
        self._earlier, turn = messages[:start], messages[start:]
        results = {said.call: said.text for said in turn if said.role == "tool"}
        asked = [said.text for said in turn if said.role == "user"]
        self.request = "\n".join(text for text in asked if not text.startswith(REMARKS))
        self._remarks = _remarks(turn)
        answers = [said for said in turn if said.role == "assistant" and said.tool_calls]
        rounds = [
            _Round(
                text=said.text,
                pairs=tuple((call, results.get(call.call, "")) for call in said.tool_calls),
            )
            for said in answers
        ]
        looks = [[text for call, text in each.pairs if call.tool == SURVEY] for each in rounds]
        surveys = [
            text for each, of in zip(rounds, looks, strict=True) if not each.text for text in of
        ]
        survey = surveys[-1] if surveys else ""
        shown, _, last = survey.rpartition("\n")
        self.tests = last.removeprefix(TESTS) if last.startswith(TESTS) else ""
        self._shown = shown.rstrip() if self.tests else survey
        self.files = _files_in(survey)
        self._before = _files_in(surveys[0]) if len(surveys) > 1 else None
        self.rounds = [each for each in rounds if each.text]
        at = max((number for number, found in enumerate(looks) if found), default=-1)
        self._since = [
            each
            for each in rounds[at + 1 :]
            if each.text and not all(self._is_test(call) for call, _ in each.pairs)
        ]
        runs = [text for each in rounds for call, text in each.pairs if self._is_test(call)]
        self.tested = runs[-1] if runs else None
        newest = max((n for n, said in enumerate(turn) if _is_request(said)), default=0)
        self._is_surveyed = any(
            call.tool == SURVEY for said in turn[newest:] for call in said.tool_calls
        )

    def _is_test(self, call: ToolRequest) -> bool:
        return call.tool == "shell" and call.arguments.get("command") == self.tests

    @property
    def _hint(self) -> str:
        """Say for what a command is needed: to look into files that are shown in part, or to move one."""
        if not self.rounds and _MOVES.search(self.request):
            return _MOVE
        long = [path for path, text in self.files.items() if text is None]
        names = [f"`{path}`" for path in long if path.rpartition("/")[2] in self.request]
        return _PART.format(names=" and ".join(names[:3])) if names else ""

    def next_step(self) -> tuple[ChatMessage, ...] | str | None:
        """Return what to ask the model, what to say to end the turn, or none to look at the files."""
        if not self._is_surveyed:
            return None
        if not self.rounds:
            return self._conversation()
        last = self.rounds[-1]
        if not last.writes and self._since and _MOVES.search(self.request) and not self._remarks:
            return None
        if _has_passed(self.tested) and not (last.writes or self._since or self._remarks):
            return f"Nothing was changed; `{self.tests}` passes."
        if not last.writes or self._remarks:
            return self._conversation()
        fault = self._fault(last)
        if sum(each.writes for each in self.rounds) < ROUNDS:
            if self._since and (fault or _EVERYWHERE.search(self.request)):
                return None
            if not self._since and (fault or self._left_over()):
                return self._conversation()
        runs = [result for call, result in last.pairs if self._is_test(call)]
        if fault or not runs:
            return fault or "Done."
        how = "passes" if _has_passed(runs[-1]) else "was not run to its end"
        return f"Done; `{self.tests}` {how}."

    def calls_of(self, text: str, offered: Iterable[str]) -> Calls:
        """Return the calls that an answer of the model comes to."""
        test_run = ("shell", {"command": self.tests, "timeout": _TEST_SECONDS})
        if files := self._written(text):
            writes = [("write", {"path": path, "content": body}) for path, body in files]
            is_change = any(path in self.files for path, _ in files)
            is_tested = self.tests and (is_change or _SPEAKS_OF_TESTS.search(self.request))
            return (*writes, *([test_run] if is_tested else []))
        may_look = len(self.rounds) < LOOKS
        if self._hint and may_look and (commands := commands_in(text)):
            return (("shell", {"command": commands[0]}),)
        if self.tests and self.tested is None and _MENDS.search(self.request):
            return (test_run,)  # what fails says more than the request
        found = calls_in(text, offered) if may_look else ()
        return tuple((call.tool, call.arguments) for call in found)

    def owes_file(self, text: str) -> bool:
        """Whether an answer without a file should have had one: code without a path, or nothing fixed."""
        is_question = self.request.rstrip().endswith("?") and not _MENDS.search(self.request)
        named = set(_PATH.findall(self.request))
        wants_new = bool(_MAKES.search(self.request) and named - self.files.keys())
        has_code = any(path in ("", *_ENDINGS.values()) for path, _ in _blocks(text.splitlines()))
        wants_any = has_code or wants_new or bool(_MENDS.search(self.request))
        return wants_any and not is_question

    def _written(self, text: str) -> list[tuple[str, str]]:
        """Return the files that an answer changes, without those that stay as they are.

        A file may not be replaced that is shown in part, or is a test that fails or is not named.
        """
        known, is_failing = self.files, _has_failed(self.tested)
        fits: dict[str, str] = {}
        for path, body in _placed(_blocks(text.splitlines(), known), known, self.request):
            path = _known_path(path, known)
            before = known.get(path)
            is_asked = path.rpartition("/")[2] in self.request and not is_failing
            if path in known and (before is None or (_is_test(path) and not is_asked)):
                continue
            fits[path] = merged(path, before or "", repaired(path, body))
        changed = [
            (path, body)
            for path, body in fits.items()
            if path not in known or (known[path] or "").rstrip() != body.rstrip()
        ]
        return changed or (
            list(fits.items()) if is_failing else []
        )  # it is told that nothing changed

    def _fault(self, round: _Round) -> str:
        """Say what went wrong with the files of an answer; empty if nothing did."""
        for call, result in round.pairs:
            if call.tool == "write" and not result.startswith(("Created", "Replaced", "Unchanged")):
                return f"This was not done: {result[:_TAIL]}"
            if call.tool == "shell" and _has_failed(result):
                return f"The tests (`{call.arguments.get('command')}`) still fail:\n{_tail(result)}"
        return ""

    def _conversation(self) -> tuple[ChatMessage, ...]:
        """Return the conversation as the model is to read it."""
        shown, last = self._shown, self.rounds[-1] if self.rounds else None
        fault = ""
        if self.tested is not None and _has_failed(self.tested):
            fault = f"The tests (`{self.tests}`) fail:\n{_tail(self.tested)}"
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
            commands = (str(call.arguments.get("command", "")) for call, _ in last.pairs)
            text = f"{shown}\n\n`{'; '.join(commands)}` was run. Do the rest: {self.request}"
        said.append(ChatMessage(role="user", text=text))
        for each in self._since:
            told = ChatMessage(role="user", text=self._told(each))
            said += [ChatMessage(role="assistant", text=each.text), told]
        return (*said, *self._remarks)

    def _left_over(self) -> str:
        """Say where a name or number that a change replaced is left in other files; empty if nowhere."""
        before, now = self._before, self.files
        if before is None or not _EVERYWHERE.search(self.request):
            return ""
        changed = [path for path, text in now.items() if before.get(path) != text]
        gone = {
            word
            for path in changed
            for word in {*_WORDS.findall(before.get(path) or "")}
            - {*_WORDS.findall(now.get(path) or "")}
        }
        found: list[str] = []
        for word in sorted(gone & {*_WORDS.findall(self.request)} or gone):
            others = [p for p, text in now.items() if p not in changed and word in (text or "")]
            if others:
                found.append(f"`{word}` is still in {', '.join(others)}.")
        return " ".join(found[:3])

    def _told(self, round: _Round) -> str:
        if round.writes:
            return self._fault(round) or "That is not all."
        printed: list[str] = []
        for call, result in round.pairs:
            command = call.arguments.get("command", call.tool)
            output = f"`{command}` printed:\n{result[-_OUTPUT:]}"
            printed.append(f"{output}\n\nThe request was: {self.request}")
        return "\n".join(printed)


def _files_in(survey: str) -> dict[str, str | None]:
    return {
        path: None if any(line.startswith("[… ") for line in text.splitlines()) else text
        for path, text in _blocks(survey.splitlines())
        if path
    }


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


def _has_passed(result: str | None) -> bool:
    """Whether a command has run and succeeded; one that was refused, or ended at its limit, has not."""
    code = _EXIT.search(result or "")
    return code is not None and code[1] == "0"


def _has_failed(result: str | None) -> bool:
    """Whether a command has run and failed; one that did not end by itself has shown nothing."""
    code = _EXIT.search(result or "")
    return code is not None and code[1] != "0" and not code[1].startswith("-")


def _tail(result: str) -> str:
    return _EXIT.sub("", result).rstrip()[-_TAIL:]


def spoken(messages: Iterable[ChatMessage], most: int = 0) -> Iterable[ChatMessage]:
    """Yield what was said, without calls and results; of each the first `most` characters."""
    last = ""
    for message in messages:
        text = message.text
        if most and len(text) > most:
            text = f"{text[:most]} […]"
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
_ENDINGS = {"python": ".py", "markdown": ".md", "javascript": ".js"} | {
    name: f".{name}" for name in ("py", "json", "toml", "yaml", "yml", "csv", "html", "css")
}
Block = tuple[str, str]
"""The path of a fenced block, or the ending that its language has, or nothing; and its content."""


def _blocks(lines: Sequence[str], known: Collection[str] = ()) -> list[Block]:
    """Read the whole fenced blocks of a text; those of a shell have no path."""
    found: list[Block] = []
    for at, info, body in _fenced(lines, known):
        path = _path_in(info) or _path_above(lines[:at])
        if body and path and body[0].strip() == path:
            body = body[1:]
        if not path and body and (inside := _path_in(body[0].lstrip("#/*-;<! "))):
            if inside in known and body[0].lstrip()[:1] in "#/*-;<":
                path, body = inside, body[1:]
        if info.partition(" ")[0].lower() not in _SHELLS or path.endswith((".sh", ".bash")):
            path = path or _ENDINGS.get(info.lower(), "")
            found.append((path, "\n".join(body) + "\n" if body else ""))
    return found


def commands_in(text: str) -> list[str]:
    """Return the commands of the shell blocks of a text."""
    shells = [of for _, info, of in _fenced(text.splitlines()) if info.lower() in _SHELLS]
    lines = [[line.removeprefix("$ ") for line in of if line.strip()] for of in shells]
    return ["\n".join(command) for command in lines if command]


def _fenced(
    lines: Sequence[str], known: Collection[str] = ()
) -> Iterator[tuple[int, str, Sequence[str]]]:
    """Yield each whole block: the line of its fence, what stands behind the fence, and its lines."""
    at = 0
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        at += 1
        end = _end_of(lines, at, fence[1], known) if fence else None
        if fence is None or end is None:  # it was cut off, or opened twice
            continue
        yield at - 1, fence[2].strip(), lines[at:end]
        at = end + 1 if _FENCE.match(lines[end]) else end


def _end_of(lines: Sequence[str], start: int, fence: str, known: Collection[str]) -> int | None:
    """Return the line that closes a fence; a fence inside, with a language, is closed before it.

    A known path with a fence below it begins the next file: the fence before was left open.
    """
    depth = 0
    for at in range(start, len(lines)):
        if known and lines[at].strip("*`#: ") in known:
            below = next((line for line in lines[at + 1 : at + 3] if line.strip()), "")
            if _FENCE.match(below):
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
