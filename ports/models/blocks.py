"""Work with a small model: the files come with the request, whole files come back in fenced blocks.

A model of one or two billion parameters calls tools badly, and writes a short file well. So the request
is sent with the files that it is about (the tool `survey`), the model prints each file that it changes,
and its blocks become calls of `write`, which are journalled, permitted and can be taken back like any
other. Where tests are spoken of, or a file that was there is changed, the folder's tests are run, and a
failure is told, each time in another way: the same words give the same answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ...machines.conversation import ChatMessage, ToolRequest
from ..tools.survey import DATA, SURVEY, is_example
from .asking import Asking, spoken
from .failing_tests import FailingTests
from .failure_text import has_failed, has_passed
from .fragments import is_hollow, merged, parsed, repaired, with_function
from .imports import with_imports
from .left_over import LeftOver
from .model import AnswerListener, ModelAnswer, ModelRequest, WrappedModel
from .moved_code import with_moved_code, without_moved_text, without_unused_code
from .renames import in_other_files, only_renamed
from .said_calls import calls_in
from .said_files import ENDINGS, SAMPLE, blocks, is_code, is_test, known_path, placed
from .script_work import ScriptWork
from .turn_view import Round, TurnView, is_named

TOOLS = (SURVEY, "read", "search", "write", "shell")
"""The tools of the profile; the model itself is told of none."""

LOOKS = 3
"""Answers with other calls than `write` in a turn."""
_TEST_SECONDS = 60
_DOCUMENTS = (".md", ".txt", ".rst")

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
            look = _requests(((SURVEY, {"request": state.view.request.text}),), request)
            return ModelAnswer(text="", tool_calls=look, stop_reason="tools")
        if isinstance(step, str):
            listener.on_text(step)
            more = _requests(state.follow_up(), request)
            return ModelAnswer(text=step, tool_calls=more, stop_reason="tools" if more else "stop")
        asked = replace(request, messages=step, tools=())
        answer = await self.inner.answer(asked, listener)
        calls = state.calls_of(answer.text, names)
        if second_ask := state.second_ask(step, answer.text, calls):
            again = replace(asked, messages=second_ask)
            second = await self.inner.answer(again, listener)
            text, usage = f"{answer.text}\n\n{second.text}", answer.usage + second.usage
            answer = replace(second, text=text, usage=usage)
            calls = _both(calls, state.calls_of(second.text, names))
        if not calls:
            return answer
        return replace(answer, tool_calls=_requests(calls, request), stop_reason="tools")


def _requests(calls: Calls, request: ModelRequest) -> tuple[ToolRequest, ...]:
    return tuple(
        ToolRequest(call=f"{request.call_prefix}{number}", tool=tool, arguments=dict(arguments))
        for number, (tool, arguments) in enumerate(calls, 1)
    )


def _both(first: Calls, second: Calls) -> Calls:
    """Return the calls of a second answer, and before them the files of the first one that it has not."""
    again = {arguments.get("path") for _, arguments in second}
    kept = [of for of in first if of[0] == "write" and of[1]["path"] not in again]
    return (*kept, *second) if second else first


# What comes next ----------------------------------------------------------------------------------


class SmallTurn:
    """What comes next in a turn of a small model: a question to it, calls, or the end."""

    def __init__(self, messages: Sequence[ChatMessage]) -> None:
        self.view = TurnView(messages)
        self.failing, self.left = FailingTests(self.view), LeftOver(self.view)
        self.scripts = ScriptWork(self.view)
        self.asking = Asking(self.view, self.failing, self.left, self.scripts)

    def next_step(self) -> tuple[ChatMessage, ...] | str | None:
        """Return what to ask the model, what to say without it, or none to look at the files."""
        view = self.view
        if not view.is_surveyed:
            return None
        if not view.rounds:
            return self.asking.conversation()
        last = view.rounds[-1]
        fault = view.fault_of(last)
        is_check = view.is_test_run(last)
        if not (last.writes or is_check):
            return self._after_command(last)
        if is_check and has_passed(view.tested) and not (view.since or view.remarks):
            return f"Nothing was changed; `{view.tests}` passes."
        may_try = self.failing.may_try
        if view.remarks and not may_try:
            return self.asking.conversation()
        if view.since and (may_try or self.left.is_wide):
            return None
        if may_try or self.left.next() or not (last.writes or fault):
            return self.asking.conversation()
        runs = [result for call, result in last.pairs if view.runs_tests(call)]
        if fault or not runs:
            return fault or "Done."
        how = "passes" if has_passed(runs[-1]) else "was not run to its end"
        return f"Done; `{view.tests}` {how}."

    def _after_command(self, last: Round) -> tuple[ChatMessage, ...] | str | None:
        view = self.view
        has_run = any(call.tool == "shell" and has_passed(result) for call, result in last.pairs)
        if view.request.is_question or view.remarks or not has_run:
            return self.asking.conversation()
        if view.since:
            return None  # what has it changed?
        if view.move and view.move[1] in view.files:
            named = ", ".join(self.left.renamed())
            moved = f"`{view.move[0]}` is `{view.move[1]}` now"
            return f"{moved}, also in {named}." if named else f"{moved}."
        if self.left.next() or self.scripts.owed() or view.request.moves:
            return self.asking.conversation()
        new = [path for path, text in view.files.items() if view.before.get(path, "") != text]
        # Nothing else says what a command did.
        return f"Done: {', '.join(new)}." if new else "Done."

    def follow_up(self) -> Calls:
        """Return the calls that what is said without the model comes with: after a move, its new name."""
        view = self.view
        is_done = view.move is not None and view.move[1] in view.files and not view.since
        if not is_done or not view.rounds or not view.is_command(view.rounds[-1]):
            return ()
        return self._writing([*self.left.renamed().items()])

    def second_ask(
        self, step: tuple[ChatMessage, ...], text: str, calls: Calls
    ) -> tuple[ChatMessage, ...]:
        """Return what to ask at once where an answer is none; nothing if it is one."""
        if (function := self.failing.suspect()) and is_hollow(_code_in(text), function[1]):
            return (ChatMessage(role="user", text=self.asking.in_plain_words(*function)),)
        if not (self._lacks_code(calls) if calls else self._owes_file(text)):
            return ()
        said = ChatMessage(role="assistant", text=text)
        nudge = self.asking.for_a_file(is_same=self._has_known_file(text))
        return (*step, said, ChatMessage(role="user", text=nudge))

    def _lacks_code(self, calls: Calls) -> bool:
        """Whether calls write files, and not the program that the request wants."""
        paths = [arguments.get("path") for tool, arguments in calls if tool == "write"]
        missing = [name for name in self.scripts.missing() if is_code(name) and name not in paths]
        return bool(missing) and len(paths) == len(calls) and not self.view.written

    def _owes_file(self, text: str) -> bool:
        """Whether an answer without a file should have had one: code without a path, or nothing fixed."""
        view, request = self.view, self.view.request
        wants_new = bool(self.scripts.missing())
        has_code = any(path in ("", *ENDINGS.values()) for path, _ in blocks(text.splitlines()))
        has_code |= self._has_known_file(text)
        makes = request.makes and any(is_named(path, request.text) for path in view.files)
        wants_any = has_code or wants_new or makes or request.mends
        return wants_any and not request.is_question and not any(map(view.is_command, view.rounds))

    def _has_known_file(self, text: str) -> bool:
        files = self.view.files
        found = placed(blocks(text.splitlines(), files), files, request="")
        return any(known_path(path, files) in files for path, _ in found)

    # What an answer does --------------------------------------------------------------------------

    def calls_of(self, text: str, offered: Iterable[str]) -> Calls:
        """Return the calls that an answer of the model comes to."""
        view = self.view
        looks = sum(not (each.writes or view.is_test_run(each)) for each in view.rounds)
        may_look = looks < LOOKS
        target = self.left.next()
        may_run = self.scripts.hint and may_look and not target
        if may_run and (command := self.scripts.command(text)):
            call = ("shell", {"command": command})
            pairs = [pair for each in view.rounds for pair in each.pairs]
            is_done = any(of.arguments == call[1] and has_passed(result) for of, result in pairs)
            return () if is_done else (call,)
        if function := self.failing.suspect():
            path, name = function
            whole = with_function(view.before[path] or "", _code_in(text), name)
            files = [(path, with_imports(whole))]
        elif new := self.failing.new_suspect():
            path, name = new
            whole = with_function(view.files[path] or "", _code_in(text), name)
            files = [(path, with_imports(whole))]
        else:
            files = [] if view.request.is_only_question else self._written_in(text)
        if not view.written:
            said, before = view.request.text, view.before
            moved = without_moved_text(said, dict(files), before)
            moved |= with_moved_code(said, before) | without_unused_code(said, before)
            files = [*moved.items()]
        if view.names:
            files = [*(self.left.renamed() | dict(files)).items()]
            if not view.rounds and (None in view.files.values() or view.has_others):
                shown = [path for path, text in view.files.items() if text is not None]
                rest = ("shell", {"command": in_other_files(view.names, shown)})
                return (rest, *self._writing(files))
        if target and not files:  # the answer is that this file stays as it is
            files = [(target[0], view.files[target[0]] or "")]
        if files:
            return self._writing(files)
        is_failing = self.failing.may_try and has_failed(view.tested)
        if view.tests and (is_failing or (view.tested is None and view.request.mends)):
            return (self._test_run(),)  # what fails says more than the request
        found = calls_in(text, offered) if may_look else ()
        return tuple((call.tool, call.arguments) for call in found)

    def _writing(self, files: Sequence[tuple[str, str]]) -> Calls:
        """Return the calls that write files, and then run the tests, if there is nothing else to do."""
        view = self.view
        writes = [("write", {"path": path, "content": body}) for path, body in files]
        is_change = any(path in view.files for path, _ in files)
        is_asked = is_example(view.tests) or view.request.speaks_of_tests
        is_tested = files and view.tests and (is_change or is_asked)
        is_last = not self.left.next(dict(files))
        return (*writes, *([self._test_run()] if is_tested and is_last else []))

    def _test_run(self) -> tuple[str, Mapping[str, Any]]:
        return "shell", {"command": self.view.tests, "timeout": _TEST_SECONDS}

    def _written_in(self, text: str) -> list[tuple[str, str]]:
        """Return the files that an answer changes, without those that stay as they are.

        Where one file was asked for, only that one is taken.
        """
        view, known = self.view, self.failing.known
        is_failing = has_failed(view.tested)
        target = self.left.next()
        likely = [target[0]] if target else self.failing.files() if is_failing else []
        fits: dict[str, str] = {}
        said = blocks(text.splitlines(), known)
        for path, body in placed(said, known, view.request.text, likely):
            path = known_path(path, known)
            before = known.get(path)
            is_other = target is not None and path != target[0]
            if body.strip() == SAMPLE or (path in known and (before is None or is_other)):
                continue
            if path in known and self._stays(path, body, is_target=target is not None):
                continue
            whole = merged(path, before or "", repaired(path, body))
            if view.names and before:
                whole = only_renamed(path, before, body, view.names)
            whole = with_imports(whole) if path.endswith(".py") else whole
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

    def _stays(self, path: str, body: str, *, is_target: bool) -> bool:
        """Whether a file that is there may not be replaced by what an answer has for it.

        A test stays that fails or is not named, what a new program reads, what is only pointed at, and
        what the request says to leave.
        """
        view, request = self.view, self.view.request
        is_failing = has_failed(view.tested)
        is_asked = path.rpartition("/")[2] in request.text and not is_failing
        is_asked &= request.writes_tests or not request.names_code
        is_program = any(is_code(name) for name in self.scripts.missing())
        return (
            (is_test(path) and not (is_asked or is_target))
            or (is_failing and path.endswith(_DOCUMENTS))  # no words make tests pass
            or path in self._sources()
            or any(is_named(name, path) for name in request.kept)
            or (is_program and not is_target and path.endswith((*DATA, ".json", ".txt")))
            or (bool(self.failing.known.get(path)) and not (body.strip() or request.empties))
        )

    def _sources(self) -> list[str]:
        """Return the files that the request only points at, because it is about another one, too."""
        files, pointed = self.view.files, self.view.request.pointed_at
        found = [path for path in files if path.rpartition("/")[2] in pointed]
        words = {word.lower() for word in re.findall(r"\w+", self.view.request.text)}
        stems = {
            path.rpartition("/")[2].partition(".")[0].lower()
            for path in files
            if path not in found and not is_test(path)
        }
        return found if stems & words else []


def _code_in(text: str) -> str:
    return "\n".join(body for _, body in blocks(text.splitlines()))
