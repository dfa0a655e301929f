"""Work with a small model: the files come with the request, whole files come back in fenced blocks.

A model of one or two billion parameters calls tools badly, and writes a short file well. So the request
is sent with the files that it is about (the tool `survey`), the model prints each file that it changes,
and its blocks become calls of `write`, which are journalled, permitted and can be taken back like any
other. Where tests are spoken of, or a file that was there is changed, the folder's tests are run, and a
failure is told, each time in another way: the same words give the same answer.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from posixpath import dirname
from typing import Any

from msgspec.structs import replace

from ...machines.conversation import ChatMessage, ToolRequest
from ...machines.pattern import lazy_pattern
from ..tools.survey import DATA, EXAMPLE, SURVEY, TABLES, subjects
from .failure_text import cases_in, errors_in, has_failed, has_passed, tail_of
from .fragments import (
    head_of,
    is_hollow,
    merged,
    parsed,
    repaired,
    with_function,
    without_body,
)
from .model import AnswerListener, ModelAnswer, ModelRequest, WrappedModel
from .moved_code import with_moved_code, without_moved_text
from .renames import in_other_files, only_renamed
from .said_calls import calls_in
from .said_files import (
    ENDINGS,
    PATH,
    blocks,
    commands_in,
    is_code,
    is_test,
    known_path,
    placed,
    scripts_in,
)
from .tables import beginning, with_beginning
from .turn_view import MAKES, MOVES, VERSION, Round, TurnView, is_named

_EXAMPLE = 'print("new content")'
PROMPT = f"""\
You answer questions about files and change files. You are given files of the folder.
If a file must be changed or created, print its path alone on a line, then its whole new content in a \
fenced block:

hello.py
```python
{_EXAMPLE}
```

Use the paths as they are given. Print no file that stays as it is. If nothing must be changed, only \
answer in words."""
TOOLS = (SURVEY, "read", "search", "write", "shell")
"""The tools of the profile; the model itself is told of none."""

LOOKS = 3
"""Answers with other calls than `write` in a turn."""
_OUTPUT = 2000  # characters of a command's output
_EARLIER = 500  # characters of a message of an earlier turn
_TEST_SECONDS = 60

_TEXTS = (".json", ".txt", ".md", ".toml", ".yaml", ".yml", ".xml", ".html", ".ini", ".sql")
_DOCUMENTS = (".md", ".txt", ".rst")
_SPEAKS_OF_TESTS = lazy_pattern(r"(?i)\b(tests?|test_\w+|check\w*|verif\w+|fix|bugs?|fails?)\b")

_EMPTIES = lazy_pattern(r"(?i)\b(empty|clear|wipe)\b")
_WRITES_TESTS = lazy_pattern(
    r"(?i)\b(add|write|extend|update|change|adapt)\b(?:[^.,;:\n]|\.\w){0,40}\b(tests?\b|(in)?to test_)"
)
_COMPUTED = lazy_pattern(
    r"(?i)\bhow (many|much|often)\b|\b(total|sum|average|mean|median|count|number of|most|least|"
    r"(long|short|high|low|large|small|bigg|old|young|lat|earli|cheap|fast|slow|heavi|light|near|far)\w{0,3}est)\b"
)
"""A question whose answer is computed from all lines of a file."""
_CHORE = lazy_pattern(
    r"(?i)\b(sort(ed|s)?|uniq\w*|duplicates?|dedup\w*|count|sum|total|average|merged?|combined?|join|"
    r"together|alphabetical\w*|only once|(each|every) (line|row))\b"
)
"""Something to be made of all lines of a file."""

_SOURCE = lazy_pattern(
    r"(?i)\b(?:look (?:at|in|into)|reads?|see|according to|as in|described in) [`'\"]?([\w-]+\.\w{1,5})\b"
)
"""A file that a request only points at."""

_SCRIPT = (
    "To look into {names}, or to make something of all its lines, print one short Python script"
    "{imports} in a ```python block, which is run in the folder, and nothing else.\n\n"
)
_MOVE = (
    "To move or remove a file, print first the one command for it (such as `mv old.txt new.txt`) in a "
    "```sh block, and nothing else.\n\n"
)
_NUDGE = (
    "Nothing was changed yet. Print the path of the file alone on a line, then its whole new content in "
    "a fenced block."
)
_MISSING = (
    "There is no {name} yet. Print its path alone on a line, then its whole content in a fenced "
    "block."
)
_MODULE = (
    "Write the Python module {path} with {names}, and print only it in a fenced block.\n\n"
    "This must hold:\n{cases}\n\n{how}"
)
_SAME = (
    "That is what the files hold already. Change what the request asks for, and print the whole "
    "changed file: {request}"
)
_AGAIN = "Say in one sentence what is wrong, then print the path and the whole corrected file."
_REWRITE = (
    "This is not right yet. Rewrite {names} without the fault: change what is needed, then print the "
    "whole file."
)
_FUNCTION = "Write the function {name}. Print only it, in a fenced block."
_PLAIN = (
    "Write this Python function, and print only it in a fenced block:\n\n{head}\n\n"
    "This must hold:\n{cases}"
)
_STEPS = (
    "Compute step by step, in at most five lines, what the code does in this case, and what it should "
    "do. Then print {names} with the whole corrected code."
)
_QUOTE = "First quote the lines that are about it, then answer in one sentence."
_HOW = (
    "Use as few lines as possible.",
    "Use split, join, a key, a sum, or rounding where they fit.",
    "Write the steps as comments first, then the code of each.",
    "Handle the edge cases first, then the usual case.",
    "Use a simple loop.",
    "Use only comparisons and simple arithmetic.",
)
_FAILED = "A first try failed:\n"
_SIMPLY = "Do it in a simple and general way."
_MIND = "Mind that this must hold, too:\n{cases}\n\nPrint only {names}, in a fenced block."
_PLAN = "First say in at most five lines, step by step, how this is done. Then print the script."


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
        state = SmallTurn(request.messages)
        step = state.next_step()
        if step is None:
            look = _requests(((SURVEY, {"request": state.request}),), request)
            return ModelAnswer(text="", tool_calls=look, stop_reason="tools")
        if isinstance(step, str):
            listener.on_text(step)
            more = _requests(state.follow_up(), request)
            return ModelAnswer(text=step, tool_calls=more, stop_reason="tools" if more else "stop")
        asked = replace(request, messages=step, tools=())
        answer = await self.inner.answer(asked, listener)
        calls = state.calls_of(answer.text, names)
        if second_ask := state.second_ask(step, answer.text, has_calls=bool(calls)):
            again = replace(asked, messages=second_ask)
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


class SmallTurn(TurnView):
    """What comes next in a turn, and in which words the model is asked for it."""

    def next_step(self) -> tuple[ChatMessage, ...] | str | None:
        """Return what to ask the model, what to say without it, or none to look at the files."""
        if not self.is_surveyed:
            return None
        if not self.rounds:
            return self._conversation()
        last = self.rounds[-1]
        fault = self.fault_of(last)
        is_check = self.is_test_run(last)
        if not (last.writes or is_check):
            return self._after_command(last)
        if is_check and has_passed(self.tested) and not (self.since or self.remarks):
            return f"Nothing was changed; `{self.tests}` passes."
        may_try = self.may_try
        if self.remarks and not may_try:
            return self._conversation()
        if self.since and (may_try or self.is_wide):
            return None
        if may_try or self.left_over() or not (last.writes or fault):
            return self._conversation()
        runs = [result for call, result in last.pairs if self.runs_tests(call)]
        if fault or not runs:
            return fault or "Done."
        how = "passes" if has_passed(runs[-1]) else "was not run to its end"
        return f"Done; `{self.tests}` {how}."

    def _after_command(self, last: Round) -> tuple[ChatMessage, ...] | str | None:
        has_run = any(call.tool == "shell" and has_passed(result) for call, result in last.pairs)
        if self.is_question or self.remarks or not has_run:
            return self._conversation()
        if self.since:
            return None  # what has it changed?
        if self.move and self.move[1] in self.files:
            named = ", ".join(self.renamed())
            moved = f"`{self.move[0]}` is `{self.move[1]}` now"
            return f"{moved}, also in {named}." if named else f"{moved}."
        if self.left_over() or self._owed() or MOVES.search(self.request):
            return self._conversation()
        new = [path for path, text in self.files.items() if self.before.get(path, "") != text]
        # Nothing else says what a command did.
        return f"Done: {', '.join(new)}." if new else "Done."

    def _owed(self) -> str:
        """Say what the last command has left undone; empty if nothing."""
        if missing := self._missing():
            return f"There is no {' or '.join(f'`{name}`' for name in missing)} yet."
        has_printed = any(tail_of(result) for _, result in self.rounds[-1].pairs)
        is_same = self.shown == self.first_shown
        return "Nothing was changed yet." if has_printed and is_same else ""

    def follow_up(self) -> Calls:
        """Return the calls that what is said without the model comes with: after a move, its new name."""
        is_done = self.move is not None and self.move[1] in self.files and not self.since
        if not is_done or not self.rounds or not self.is_command(self.rounds[-1]):
            return ()
        return self._writing([*self.renamed().items()])

    def _writing(self, files: Sequence[tuple[str, str]]) -> Calls:
        """Return the calls that write files, and then run the tests, if there is nothing else to do."""
        writes = [("write", {"path": path, "content": body}) for path, body in files]
        is_change = any(path in self.files for path, _ in files)
        is_asked = self.tests.startswith(EXAMPLE) or _SPEAKS_OF_TESTS.search(self.request)
        is_tested = files and self.tests and (is_change or is_asked)
        is_last = not self.left_over(dict(files))
        return (*writes, *([self._test_run()] if is_tested and is_last else []))

    def _test_run(self) -> tuple[str, Mapping[str, Any]]:
        return "shell", {"command": self.tests, "timeout": _TEST_SECONDS}

    def calls_of(self, text: str, offered: Iterable[str]) -> Calls:
        """Return the calls that an answer of the model comes to."""
        looks = sum(not (each.writes or self.is_test_run(each)) for each in self.rounds)
        may_look = looks < LOOKS
        target = self.left_over()
        if self._hint and may_look and not target and (command := self._command(text)):
            call = ("shell", {"command": command})
            pairs = [pair for each in self.rounds for pair in each.pairs]
            is_done = any(of.arguments == call[1] and has_passed(result) for of, result in pairs)
            return () if is_done else (call,)
        if function := self.suspect():
            path, name = function
            files = [(path, with_function(self.before[path] or "", _code_in(text), name))]
        elif new := self._new_function():
            path, name = new
            files = [(path, with_function(self.files[path] or "", _code_in(text), name))]
        else:
            files = [] if self.wants_no_change else self._written_in(text)
        if files and not self.written:
            moved = without_moved_text(self.request, dict(files), self.before)
            files = [*(moved | with_moved_code(self.request, self.before)).items()]
        if self.names:
            files = [*(self.renamed() | dict(files)).items()]
            if not self.rounds and (None in self.files.values() or self.has_others):
                shown = [path for path, text in self.files.items() if text is not None]
                rest = ("shell", {"command": in_other_files(self.names, shown)})
                return (rest, *self._writing(files))
        if target and not files:  # the answer is that this file stays as it is
            files = [(target[0], self.files[target[0]] or "")]
        if files:
            return self._writing(files)
        is_failing = self.may_try and has_failed(self.tested)
        if self.tests and (is_failing or (self.tested is None and self.mends)):
            return (self._test_run(),)  # what fails says more than the request
        found = calls_in(text, offered) if may_look else ()
        return tuple((call.tool, call.arguments) for call in found)

    def second_ask(
        self, step: tuple[ChatMessage, ...], text: str, *, has_calls: bool
    ) -> tuple[ChatMessage, ...]:
        """Return what to ask at once where an answer is none; nothing if it is one."""
        if (function := self.suspect()) and is_hollow(_code_in(text), function[1]):
            head = head_of(self.before[function[0]] or "", function[1])
            plain = _PLAIN.format(head=head, cases=self.checks_of(function[1]))
            return (ChatMessage(role="user", text=plain),)
        if has_calls or not self.owes_file(text):
            return ()
        said = ChatMessage(role="assistant", text=text)
        missing = self._missing()
        nudge = _MISSING.format(name=missing[0]) if missing else _NUDGE
        if not missing and self._has_known_file(text):
            nudge = _SAME.format(request=self.request)
        return (*step, said, ChatMessage(role="user", text=nudge))

    def owes_file(self, text: str) -> bool:
        """Whether an answer without a file should have had one: code without a path, or nothing fixed."""
        wants_new = bool(self._missing())
        has_code = any(path in ("", *ENDINGS.values()) for path, _ in blocks(text.splitlines()))
        has_code |= self._has_known_file(text)
        makes = MAKES.search(self.request) and any(is_named(p, self.request) for p in self.files)
        wants_any = has_code or wants_new or bool(makes or self.mends)
        return wants_any and not self.is_question and not any(map(self.is_command, self.rounds))

    def _sources(self) -> list[str]:
        """Return the files that the request only points at, because it is about another one, too."""
        pointed = _SOURCE.findall(self.request)
        found = [path for path in self.files if path.rpartition("/")[2] in pointed]
        words = {word.lower() for word in re.findall(r"\w+", self.request)}
        stems = {
            path.rpartition("/")[2].partition(".")[0].lower()
            for path in self.files
            if path not in found and not is_test(path)
        }
        return found if stems & words else []

    def _names_code(self) -> bool:
        """Whether the request names a file with code that is no test."""
        return any(is_code(name) and not is_test(name) for name in PATH.findall(self.request))

    def _missing(self) -> list[str]:
        """Return the files that the request names and the folder has not, if it wants something new."""
        names = [n for n in dict.fromkeys(PATH.findall(self.request)) if not VERSION.fullmatch(n)]
        there = [f"/{path}" for path in (*self.files, *self.before)]
        missing = [name for name in names if not any(path.endswith(f"/{name}") for path in there)]
        wants_new = MAKES.search(self.request) or "new file" in self.request.lower()
        wants_new = wants_new or any(is_code(name) for name in missing)
        return missing if wants_new and not self.has_others else []

    def _has_known_file(self, text: str) -> bool:
        found = placed(blocks(text.splitlines(), self.files), self.files, request="")
        return any(known_path(path, self.files) in self.files for path, _ in found)

    @property
    def _hint(self) -> str:
        """Say what a script or a command is for: data, files that are shown in part, or to move one."""
        if self.names:
            return ""
        if not self.rounds and MOVES.search(self.request):
            return _MOVE
        data = self._data()
        if not data:
            return ""
        names = " and ".join(f"`{path}`" for path in data[:3])
        part = f"Only a part of {names} is shown. " if self.files[data[0]] is None else ""
        is_table = self.is_question and all(path.endswith(TABLES) for path in data)
        imports = ", which begins with `import csv`," if is_table else ""
        begins = f"It begins with\n\n{code}\n" if (code := self._beginning(data)) else ""
        new = " and ".join(f"`{name}`" for name in self._new_texts())
        makes = f"It makes {new}.\n\n" if new and not self.is_question else ""
        return f"{part}{_SCRIPT.format(names=names, imports=imports)}{makes}{begins}"

    def _data(self) -> list[str]:
        """Return the files that a script is to look into: those shown in part, else those with data."""
        named = [path for path in self.files if path.rpartition("/")[2] in self.request]
        if parts := [path for path in named if self.files[path] is None]:
            return parts
        asked = PATH.findall(self.request)
        if any(is_code(name) and not name.endswith(_TEXTS) for name in asked):
            return []
        kinds: tuple[str, ...] = DATA
        if self.is_question:
            kinds = (*DATA, ".json") if _COMPUTED.search(self.request) else TABLES
        elif _CHORE.search(self.request) or self._new_texts():
            kinds = (*DATA, ".json", ".txt")
        return [path for path in named if path.endswith(kinds)]

    def _new_texts(self) -> list[str]:
        """Return the texts that the request names and the folder has not."""
        named = dict.fromkeys(PATH.findall(self.request))
        return [
            name for name in named if name not in self.files and name.endswith((*DATA, *_TEXTS))
        ]

    def _beginning(self, paths: Sequence[str]) -> str:
        """Return the first lines of a script that makes something of tables: each is read as a whole."""
        if self.is_question or not paths or not all(path.endswith(TABLES) for path in paths):
            return ""
        return beginning({path: self.files[path] or "" for path in paths})

    def _command(self, text: str) -> str:
        """Return the command of an answer, or one that runs its script; empty if it has none."""
        command = next(iter(commands_in(text)), "")
        hint = self._hint
        if self.move and hint == _MOVE:
            folder, new = dirname(self.move[1]), shlex.join(self.move)
            makes = f"mkdir -p {shlex.quote(folder)} && " if folder else ""
            return f"{makes}mv {new}"
        if hint == _MOVE:
            return command
        scripts = [body for path, body in scripts_in(text) if path not in self.files]
        scripts = [body for body in scripts if body.strip() != _EXAMPLE]
        if any(n.endswith(".py") and n not in self.files for n in PATH.findall(self.request)):
            return "" if scripts else command  # the script is what was asked for
        if not scripts:
            return command
        script = with_beginning(scripts[-1].rstrip(), self._beginning(self._data()))
        return f"python3 - <<'END'\n{script}\nEND"

    def _written_in(self, text: str) -> list[tuple[str, str]]:
        """Return the files that an answer changes, without those that stay as they are.

        A file may not be replaced that is shown in part, or is a test that fails or is not named. Where
        one file was asked for, only that one is taken.
        """
        known, is_failing = self.known, has_failed(self.tested)
        target = self.left_over()
        likely = [target[0]] if target else self.at_fault() if is_failing else []
        is_program = any(is_code(name) for name in self._missing())  # which reads what is there
        fits: dict[str, str] = {}
        said = blocks(text.splitlines(), known)
        for path, body in placed(said, known, self.request, likely):
            path = known_path(path, known)
            before = known.get(path)
            if body.strip() == _EXAMPLE:
                continue
            is_asked = path.rpartition("/")[2] in self.request and not is_failing
            is_asked &= bool(_WRITES_TESTS.search(self.request)) or not self._names_code()
            is_kept = is_test(path) and not (is_asked or target)
            is_kept |= is_failing and path.endswith(_DOCUMENTS)  # no words make tests pass
            is_kept |= path in self._sources()
            is_kept |= is_program and not target and path.endswith((*DATA, ".json", ".txt"))
            is_kept |= bool(before) and not (body.strip() or _EMPTIES.search(self.request))
            if path in known and (before is None or is_kept or (target and path != target[0])):
                continue
            whole = merged(path, before or "", repaired(path, body))
            if self.names and before:
                whole = only_renamed(path, before, body, self.names)
            if path.endswith(".py") and parsed(before or "!") and not parsed(whole):
                continue  # it would no longer run
            fits[path] = max(fits.get(path, ""), whole, key=len)  # the other one is a fragment
        if target:
            return [(path, body) for path, body in fits.items() if path == target[0]]
        changed = [
            (path, body)
            for path, body in fits.items()
            if path not in known or (known[path] or "").rstrip() != body.rstrip()
        ]
        # The model learns that nothing changed.
        return changed or (list(fits.items()) if is_failing else [])

    def _conversation(self) -> tuple[ChatMessage, ...]:
        """Return the conversation as the model is to read it."""
        said = [*spoken(self.earlier, _EARLIER)]
        if said and said[-1].role == "user":  # it was interrupted, and is asked again
            said.pop()
        failed = self._failed_command()
        said.append(ChatMessage(role="user", text=failed or self._asked()))
        for each in () if failed else self.since:
            told = ChatMessage(role="user", text=self._told(each))
            said += [ChatMessage(role="assistant", text=each.text), told]
        return (*said, *(() if self.may_try else self.remarks))

    def _asked(self) -> str:
        """Return the message that the model is to answer, before what it has looked at since."""
        last = self.rounds[-1] if self.rounds else None
        if target := self.left_over():
            return self._one_file(*target)
        shown, fault = self.shown, ""
        if self.may_try and self.suspects():
            shown = self.first_shown
        if has_failed(self.tested):
            fault = f"The tests (`{self.tests}`) fail:\n{tail_of(self.newest_failure)}"
        elif last is not None:
            fault = self.fault_of(last)
        if last is None or self.since or not (fault or self.is_command(last)):
            named = [path for path in self.files if is_named(path, self.request)] or self.files
            is_prose = self.is_lookup and all(path.endswith(_DOCUMENTS) for path in named)
            is_quoted = last is None and is_prose and not self._hint and self._has_subject()
            parts = (shown, fault, f"{self._hint}{self.request}", _QUOTE if is_quoted else "")
            return "\n\n".join(filter(None, parts))
        if function := self.suspect():
            return self._one_function(*function)
        if not fault:
            commands = (str(call.arguments.get("command", "")) for call, _ in last.pairs)
            rest = f"`{'; '.join(commands)}` was run. {self._owed()}".rstrip()
            return f"{self.shown}\n\n{self._hint}{rest} Do the rest: {self.request}"
        if has_failed(self.tested) and (other := self._another_way()):
            return other
        return f"{shown}\n\nThe request was: {self.request}\n\n{fault}\n{_AGAIN}"

    def _has_subject(self) -> bool:
        """Whether the request is about something in the files, not only about the files."""
        return bool(subjects(PATH.sub("", self.request)))

    def _failed_command(self) -> str:
        """Ask again for a command that has failed, as long as nothing was done; empty if none has."""
        rounds = [each for each in self.rounds if self.is_command(each)]
        results = [result for each in rounds for _, result in each.pairs]
        are_errors = all(has_failed(result) and tail_of(result) for result in results)
        if not rounds or self.rounds != rounds or not are_errors:
            return ""
        how = _PLAN if len(rounds) == 1 else _SIMPLY
        return f"{self.shown}\n\n{self._hint}{self.request}\n\n{_FAILED}{errors_in(results[-1])}\n\n{how}"

    def _another_way(self) -> str:
        """Ask for what has failed in other words, since the same words give the same answer."""
        paths, tries = self.at_fault(), self.tries_of_files
        names, cases = " and ".join(paths), cases_in(self.failures)
        how = "" if self.variant is None else _HOW[self.variant % len(_HOW)]
        if new := self._new_function():
            head = head_of(self.files[new[0]] or "", new[1])
            is_example = how and self.tests.startswith(EXAMPLE)
            wanted = self.request if is_example else self.checks_of(new[1])
            return f"{_PLAIN.format(head=head, cases=wanted)}\n\n{how}".rstrip()
        if how:
            path, names_of = self.wanted() or ("", [])
            said = "\n".join(dict.fromkeys(map(self.checks_of, names_of)))
            return _MODULE.format(path=path, names=" and ".join(names_of), cases=said, how=how)
        if paths and not any(path in self.before for path in paths):
            tell = {1: f"{_FAILED}{cases}\n\n{_SIMPLY}", 2: _MIND.format(cases=cases, names=names)}
            return f"{self.first_shown}\n\n{self.request}\n\n{tell[tries]}" if tries in tell else ""
        if not paths or tries < 2:
            return ""
        shown = "\n\n".join(_shown_file(path, self.known[path] or "") for path in paths)
        failed = f"`{self.tests}` fails:\n{tail_of(self.newest_failure)}"
        how = (_STEPS if tries > 2 else _REWRITE).format(names=names)
        return f"{shown}\n\nThe request was: {self.request}\n\n{failed}\n\n{how}"

    def _new_function(self) -> tuple[str, str] | None:
        """Return the file and the name of the function that is new, and is to be written again now."""
        is_next = self.tries == 1 or self.variant is not None
        return self.new_function if is_next and self.may_try and not self.since else None

    def _one_function(self, path: str, name: str) -> str:
        shown = _shown_file(path, without_body(self.before[path] or "", name))
        cases = self.checks_of(name)
        if self.variant is not None:
            head = head_of(self.before[path] or "", name)
            return f"{_PLAIN.format(head=head, cases=cases)}\n\n{_HOW[self.variant % len(_HOW)]}"
        asked = f"The request: {self.request}\n\nThis must hold:\n{cases}"
        return f"{shown}\n\n{asked}\n\n{_FUNCTION.format(name=name)}"

    def _one_file(self, path: str, old: str, new: str) -> str:
        shown = _shown_file(path, self.files[path] or "")
        is_moved = any(is_named(path, old) for path in self.before)
        now = f"`{old}` was renamed to `{new}`." if is_moved else f"`{old}` is `{new}` now."
        told = now if new else f"`{old}` is still in {path}."
        that = "Change that"
        if not old:
            told, that = f"{path} is as it was.", f"This is left to do: {self.due[path]}. Do that"
        how = f"{that} in {path}, and nothing else: print the whole new {path} in a fenced block."
        return f"{shown}\n\nThe request: {self.request}\n\n{told} {how}"

    def _told(self, round: Round) -> str:
        if round.writes:
            return self.fault_of(round) or "That is not all."
        printed: list[str] = []
        for call, result in round.pairs:
            command = call.arguments.get("command", call.tool)
            output = f"`{command}` printed:\n{result[-_OUTPUT:]}"
            printed.append(f"{output}\n\nThe request was: {self.request}")
        return "\n".join(printed)


def _code_in(text: str) -> str:
    return "\n".join(body for _, body in blocks(text.splitlines()))


def _shown_file(path: str, text: str) -> str:
    fence = "````" if "```" in text else "```"
    return f"{path}\n{fence}\n{text.rstrip()}\n{fence}"


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
