"""In which words a small model is asked: it reads little, and does what the last sentence says."""

from __future__ import annotations

from collections.abc import Iterable

from ...machines.conversation import ChatMessage
from ..tools.survey import EXAMPLE
from .failing_tests import FailingTests
from .failure_text import cases_in, errors_in, has_failed, tail_of
from .fragments import head_of, without_body
from .left_over import LeftOver
from .said_files import is_code, is_test
from .script_work import ScriptWork
from .turn_view import Round, TurnView, is_named

_OUTPUT = 2000  # characters of a command's output
_EARLIER = 500  # characters of a message of an earlier turn
_DOCUMENTS = (".md", ".txt", ".rst")
_NUDGE = (
    "Nothing was changed yet. Print the path of the file alone on a line, then its whole new content in "
    "a fenced block."
)
_NAMED = "Nothing was changed yet. Print the whole changed {name} in a fenced block."
_MISSING = "There is no {name} yet. Print {name} in a fenced block."
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


class Asking:
    """Writes what the model is asked next in a turn."""

    def __init__(
        self, view: TurnView, failing: FailingTests, left: LeftOver, scripts: ScriptWork
    ) -> None:
        self.view, self.failing, self.left, self.scripts = view, failing, left, scripts

    def conversation(self) -> tuple[ChatMessage, ...]:
        """Return the conversation as the model is to read it."""
        view = self.view
        said = [*spoken(view.earlier, _EARLIER)]
        if said and said[-1].role == "user":  # it was interrupted, and is asked again
            said.pop()
        failed = self._failed_command()
        said.append(ChatMessage(role="user", text=failed or self._next()))
        for each in () if failed else view.since:
            told = ChatMessage(role="user", text=self._told(each))
            said += [ChatMessage(role="assistant", text=each.text), told]
        return (*said, *(() if self.failing.may_try else view.remarks))

    def in_plain_words(self, path: str, name: str) -> str:
        """Ask for a function by its head alone."""
        head = head_of(self.view.before[path] or "", name)
        return _PLAIN.format(head=head, cases=self.failing.checks_of(name))

    def for_a_file(self, *, is_same: bool) -> str:
        """Ask for a file where an answer has none, or none that changes anything."""
        if missing := self.scripts.missing():
            return _MISSING.format(name=missing[0])
        if is_same:
            return _SAME.format(request=self.view.request.text)
        kept = self.view.request.kept
        files = [path for path in self.view.files if not any(is_named(n, path) for n in kept)]
        named = [path for path in files if is_named(path, self.view.request.text)]
        named = [path for path in named if self.view.request.writes_tests or not is_test(path)]
        first = next(filter(is_code, named), named[0] if named else "")
        return _NAMED.format(name=first) if first else _NUDGE

    def _next(self) -> str:
        """Return the message that the model is to answer, before what it has looked at since."""
        view, failing, request = self.view, self.failing, self.view.request.text
        last = view.rounds[-1] if view.rounds else None
        if target := self.left.next():
            return self._one_file(*target)
        shown, fault = view.shown, ""
        if failing.may_try and failing.suspects():
            shown = view.first_shown
        if has_failed(view.tested):
            fault = f"The tests (`{view.tests}`) fail:\n{tail_of(failing.newest)}"
        elif last is not None:
            fault = view.fault_of(last)
        if last is None or view.since or not (fault or view.is_command(last)):
            hint = self.scripts.hint
            quote = _QUOTE if last is None and not hint and self._is_quoted() else ""
            return "\n\n".join(filter(None, (shown, fault, f"{hint}{request}", quote)))
        if function := failing.suspect():
            return self._one_function(*function)
        if not fault:
            commands = (str(call.arguments.get("command", "")) for call, _ in last.pairs)
            rest = f"`{'; '.join(commands)}` was run. {self.scripts.owed()}".rstrip()
            return f"{view.shown}\n\n{self.scripts.hint}{rest} Do the rest: {request}"
        if has_failed(view.tested) and (other := self._another_way()):
            return other
        return f"{shown}\n\nThe request was: {request}\n\n{fault}\n{_AGAIN}"

    def _is_quoted(self) -> bool:
        """Whether lines of a text are asked about: those are to be quoted first."""
        request = self.view.request
        if not request.is_question or request.may_change or not request.has_subject:
            return False
        files = self.view.files
        named = [path for path in files if is_named(path, request.text)] or files
        return all(path.endswith(_DOCUMENTS) for path in named)

    def _failed_command(self) -> str:
        """Ask again for a command that has failed, as long as nothing was done; empty if none has."""
        view = self.view
        rounds = [each for each in view.rounds if view.is_command(each)]
        results = [result for each in rounds for _, result in each.pairs]
        are_errors = all(has_failed(result) and tail_of(result) for result in results)
        if not rounds or view.rounds != rounds or not are_errors:
            return ""
        how = _PLAN if len(rounds) == 1 else _SIMPLY
        asked = f"{view.shown}\n\n{self.scripts.hint}{view.request.text}"
        if view.request.is_question and not self.scripts.hint:
            return asked
        return f"{asked}\n\n{_FAILED}{errors_in(results[-1])}\n\n{how}"

    def _another_way(self) -> str:
        """Ask for what has failed in other words, since the same words give the same answer."""
        view, failing, request = self.view, self.failing, self.view.request.text
        paths, tries = failing.files(), failing.tries_of_files
        names, cases = " and ".join(paths), cases_in(failing.failures)
        how = "" if failing.variant is None else _HOW[failing.variant % len(_HOW)]
        if new := failing.new_suspect():
            head = head_of(view.files[new[0]] or "", new[1])
            is_example = how and view.tests.startswith(EXAMPLE)
            wanted = request if is_example else failing.checks_of(new[1])
            return f"{_PLAIN.format(head=head, cases=wanted)}\n\n{how}".rstrip()
        if how:
            path, names_of = failing.new_module() or ("", [])
            said = "\n".join(dict.fromkeys(map(failing.checks_of, names_of)))
            return _MODULE.format(path=path, names=" and ".join(names_of), cases=said, how=how)
        if paths and not any(path in view.before for path in paths) and not failing.is_class:
            tell = {1: f"{_FAILED}{cases}\n\n{_SIMPLY}", 2: _MIND.format(cases=cases, names=names)}
            return f"{view.first_shown}\n\n{request}\n\n{tell[tries]}" if tries in tell else ""
        if not paths or (tries < 2 and not failing.is_class):
            return ""
        known = failing.known
        shown = "\n\n".join(_shown_file(path, known[path] or "") for path in paths)
        failed = f"`{view.tests}` fails:\n{tail_of(failing.newest)}"
        is_thought = tries % 2 if failing.is_class else tries > 2
        how = (_STEPS if is_thought else _REWRITE).format(names=names)
        return f"{shown}\n\nThe request was: {request}\n\n{failed}\n\n{how}"

    def _one_function(self, path: str, name: str) -> str:
        if self.failing.variant is not None:
            return f"{self.in_plain_words(path, name)}\n\n{_HOW[self.failing.variant % len(_HOW)]}"
        shown = _shown_file(path, without_body(self.view.before[path] or "", name))
        cases = self.failing.checks_of(name)
        asked = f"The request: {self.view.request.text}\n\nThis must hold:\n{cases}"
        return f"{shown}\n\n{asked}\n\n{_FUNCTION.format(name=name)}"

    def _one_file(self, path: str, old: str, new: str) -> str:
        shown = _shown_file(path, self.view.files[path] or "")
        is_moved = any(is_named(path, old) for path in self.view.before)
        now = f"`{old}` was renamed to `{new}`." if is_moved else f"`{old}` is `{new}` now."
        told = now if new else f"`{old}` is still in {path}."
        that = "Change that"
        if not old:
            told, that = f"{path} is as it was.", "Do this part of the request"
        how = f"{that} in {path}, and nothing else: print the whole new {path} in a fenced block."
        return f"{shown}\n\nThe request: {self.view.request.text}\n\n{told} {how}"

    def _told(self, round: Round) -> str:
        if round.writes:
            return self.view.fault_of(round) or "That is not all."
        printed: list[str] = []
        for call, result in round.pairs:
            command = call.arguments.get("command", call.tool)
            output = f"`{command}` printed:\n{result[-_OUTPUT:]}"
            printed.append(f"{output}\n\nThe request was: {self.view.request.text}")
        return "\n".join(printed)


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
