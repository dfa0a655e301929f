"""One turn of a small model as its messages show it: what was asked, looked at, done and tested.

Everything is read from the conversation alone, so that a turn goes on after a crash like any other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...machines.conversation import ChatMessage, ToolRequest
from ...machines.value import Value
from ..tools.survey import SURVEY, TESTS
from .failure_text import TAIL, has_failed, tail_of
from .renames import moving, renaming
from .said_files import blocks
from .spoken_request import SpokenRequest

REMARKS = ("[No progress]", "[Facts]")
"""Begin what the program itself says to the model."""
_GOES_ON = "[You were interrupted"  # begins a line of a message that is said again
_CUT = ("[Unknown outcome", "[The program died", "[Not run:")  # begin results that a crash left
_WROTE = ("Created", "Replaced", "Unchanged")


class Round(Value):
    """An answer of the model in this turn, and each of its calls with the result."""

    text: str
    pairs: tuple[tuple[ToolRequest, str], ...]

    @property
    def writes(self) -> bool:
        """Whether a call of it writes a file."""
        return any(call.tool == "write" for call, _ in self.pairs)

    @property
    def refusal(self) -> str:
        """What came of a write that was not done; empty if each was."""
        wrote = (result for call, result in self.pairs if call.tool == "write")
        return next((text for text in wrote if not text.startswith(_WROTE)), "")


class TurnView:
    """One turn as its messages show it: the request, what was looked at, and what the model did.

    `files` are those that the newest survey shows, by path, none for one that is not shown whole, and
    `before` those of the first; `tests` is the command that runs the folder's tests, empty if it has
    none, `runs` what it printed each time; `rounds` are the answers to the newest message, `since` those
    after the newest survey; `written` are the files of all; `names` are the old and the new one, where
    something is to be renamed and nothing else, `move` those of a file.
    """

    def __init__(self, messages: Sequence[ChatMessage]) -> None:
        start = _start_of_turn(messages)
        self.earlier, turn = messages[:start], messages[start:]
        results = {said.call: said.text for said in turn if said.role == "tool"}
        asked = [said.text for said in turn if said.role == "user" and _is_request(said)]
        self.request = SpokenRequest("\n".join(dict.fromkeys(map(_without_opening, asked))))
        self.remarks = remarks_of(turn)
        last = max((n for n, said in enumerate(turn) if _is_request(said)), default=0)
        newest = max((n for n, said in enumerate(turn) if _is_new(said)), default=last)
        rounds, at = list[tuple[int, Round]](), -1
        surveys = [""]
        for n, said in enumerate(turn):
            pairs = tuple((call, results.get(call.call, "")) for call in said.tool_calls)
            is_whole = not any(result.startswith(_CUT) for _, result in pairs)
            if said.role == "assistant" and pairs and said.text and is_whole:
                rounds.append((n, Round(text=said.text, pairs=pairs)))
            looks = [result for call, result in pairs if call.tool == SURVEY]
            surveys += [] if said.text else looks
            at = n if looks else at
        self.first_shown, self.shown = (_shown_in(surveys[1:][:1]), _shown_in(surveys[-1:]))
        end = surveys[-1].rpartition("\n")[2]
        self.tests = end.removeprefix(TESTS) if end.startswith(TESTS) else ""
        self.files, self.before = _files_in(surveys[-1]), _files_in(self.first_shown)
        self.rounds = [each for n, each in rounds if n > newest]
        self.since = [
            each for n, each in rounds if n > max(at, newest) and not self.is_test_run(each)
        ]
        calls = [pair for _, each in rounds for pair in each.pairs]
        self.runs = [text for call, text in calls if self.runs_tests(call)]
        self.written = {
            str(call.arguments.get("path")) for call, _ in calls if call.tool == "write"
        }
        self.is_surveyed = at >= last
        self.names = renaming(self.request.text, self.before)
        self.move = moving(self.request.text, self.before)

    @property
    def tested(self) -> str | None:
        """What the tests printed last."""
        return self.runs[-1] if self.runs else None

    @property
    def has_others(self) -> bool:
        """Whether the folder has files that are not shown."""
        return self.shown.startswith("Other files:")

    def runs_tests(self, call: ToolRequest) -> bool:
        """Whether a call runs the folder's tests."""
        return call.tool == "shell" and call.arguments.get("command") == self.tests

    def is_test_run(self, round: Round) -> bool:
        """Whether nothing but the tests was run."""
        return all(self.runs_tests(call) for call, _ in round.pairs)

    def is_command(self, round: Round) -> bool:
        """Whether a command of the model was run."""
        return any(call.tool == "shell" and not self.runs_tests(call) for call, _ in round.pairs)

    def fault_of(self, round: Round) -> str:
        """Say what went wrong with the files of an answer; empty if nothing did."""
        if round.refusal:
            return f"This was not done: {round.refusal[:TAIL]}"
        for call, result in round.pairs:
            if self.runs_tests(call) and has_failed(result):
                return f"The tests (`{self.tests}`) still fail:\n{tail_of(result)}"
        return ""


def is_named(path: str, text: str) -> bool:
    """Whether a text has the name of a file, or a word, as a whole."""
    word = re.escape(path.rpartition("/")[2])
    return re.search(rf"(?<![\w.-]){word}(?![\w-])", text) is not None


def _shown_in(surveys: Sequence[str]) -> str:
    """Return what a survey shows of files, without the line about tests."""
    survey = surveys[0] if surveys else ""
    shown, _, last = survey.rpartition("\n")
    return shown.rstrip() if last.startswith(TESTS) else survey


def _files_in(survey: str) -> dict[str, str | None]:
    return {
        path: None if any(line.startswith("[… ") for line in text.splitlines()) else text
        for path, text in blocks(survey.splitlines())
        if path
    }


def _start_of_turn(messages: Sequence[ChatMessage]) -> int:
    """Return where the turn begins: behind the last answer that made no call and was left at that."""
    for at in range(len(messages) - 2, -1, -1):
        said = messages[at]
        if said.role == "assistant" and not said.tool_calls and _is_new(messages[at + 1]):
            return at + 1
    return 0


def _is_request(said: ChatMessage) -> bool:
    return said.role == "user" and not said.text.startswith(REMARKS)


def _is_new(said: ChatMessage) -> bool:
    """Whether a message is a request that was not made before a crash already."""
    return _is_request(said) and not any(
        line.startswith(_GOES_ON) for line in said.text.splitlines()
    )


def _without_opening(text: str) -> str:
    """Return what a person said, without the lines in brackets that the program put before it."""
    lines = text.splitlines()
    while len(lines) > 1 and lines[0].startswith("[") and lines[0].endswith("]"):
        del lines[0]
    return "\n".join(lines)


def remarks_of(turn: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """Return the newest remark of the program, if nothing came after it, and the words it is about."""
    if not turn or turn[-1].role != "user" or _is_request(turn[-1]):
        return ()
    before = turn[-2] if len(turn) > 1 else turn[-1]
    is_answer = before.role == "assistant" and not before.tool_calls
    return (before, turn[-1]) if is_answer else (turn[-1],)
