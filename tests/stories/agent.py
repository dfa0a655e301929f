"""The model of a story, written down as what it answers to which wish.

It reads the conversation, as a model does, and remembers nothing: which file is next is what the
results of its calls say. So it goes on after a crash only if the conversation survived.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from support.model_server import Behaviour, Door, Recorded, Status, Text, Tools

__all__ = ["Agent", "Answer", "Rewriting", "call", "says", "user_texts", "uses"]

Message = dict[str, Any]
Answer = Behaviour | Callable[[Sequence[Message]], Behaviour]


def says(text: str) -> Text:
    """An answer in words."""
    return Text(text)


def uses(*calls: Message, saying: str = "", door: Door | None = None) -> Tools:
    """An answer that wants tools, with some words before it, and perhaps a door behind those."""
    return Tools(calls, text=saying, door=door)


def call(tool: str, /, **arguments: Any) -> Message:
    """One wish for a tool."""
    return {"tool": tool, "arguments": arguments}


class Agent:
    """What a model server does with a request: the answers to the newest wish, one after another.

    A wish is known by some of its words. Its answers come in order, one a request, and the last one
    stays; a function among them is given the conversation. `pace` is in seconds a word, for a
    recording that people can follow.
    """

    def __init__(self, pace: float = 0.0) -> None:
        self._pace = pace
        self._wishes: list[tuple[str, tuple[Answer, ...]]] = []
        self._doors: dict[str, Door] = {}

    def when(self, wish: str, *answers: Answer) -> None:
        """Say what is answered to a wish with these words."""
        self._wishes.append((wish, answers))

    def door(self, name: str) -> Door:
        """Return a door by its name, for an answer to wait at and a story to open."""
        return self._doors.setdefault(name, Door())

    def close(self) -> None:
        """Give the doors back."""
        for door in self._doors.values():
            door.close()

    def __call__(self, request: Recorded) -> Behaviour:
        """Choose an answer."""
        said: list[Message] = request.body["messages"]
        start = max(at for at, one in enumerate(said) if one["role"] == "user")
        wish = text_of(said[start])
        for words, answers in self._wishes:
            if words in wish:
                step = sum(message["role"] == "assistant" for message in said[start:])
                answer = answers[min(step, len(answers) - 1)]
                what = answer(said) if callable(answer) else answer
                return replace(what, pause=self._pace) if self._pace else what
        return Status(400, {"error": {"message": f"the story knows no answer to: {wish}"}})


class Rewriting:
    """Rewrites one file after another; each answer is an edit and how far it is.

    By how many files are done: `halts` are doors behind which the model thinks, `looks` are commands
    that it runs before it goes on.
    """

    def __init__(
        self,
        files: Sequence[Path],
        halts: dict[int, Door] | None = None,
        looks: dict[int, str] | None = None,
    ) -> None:
        self._files = files
        self._halts, self._looks = halts or {}, looks or {}

    def __call__(self, said: Sequence[Message]) -> Behaviour:
        """Take the next file, or say that all are done."""
        done = results(said).count("edit")
        look = call("shell", command=self._looks.get(done, ""))
        if done in self._looks and look not in calls(said).values():
            return uses(look)
        if done == len(self._files):
            return says(f"All {done} files use zod now.")
        answer = self._edit(self._files[done].name, done + 1)
        return replace(answer, door=self._halts[done]) if done in self._halts else answer

    def _edit(self, name: str, number: int) -> Tools:
        change = {"old": "export const", "new": f"{MARK} {name}\nexport const"}
        how_far = call("progress", done=number, total=len(self._files), unit="file")
        return uses(call("edit", path=name, **change), how_far)


MARK = "// now zod:"
"""What an edit leaves behind; done twice it would be there twice."""


def calls(said: Sequence[Message]) -> dict[str, Message]:
    """Return the calls of a conversation by their ids, as `call` makes them."""
    asked = [each for message in said for each in message.get("tool_calls", ())]
    return {
        each["id"]: call(each["function"]["name"], **json.loads(each["function"]["arguments"]))
        for each in asked
    }


def results(said: Sequence[Message]) -> list[str]:
    """Return the tools of the calls that ended well, by what the conversation says."""
    known = calls(said)
    return [
        str(known[message["tool_call_id"]]["tool"])
        for message in said
        if message["role"] == "tool" and not text_of(message).startswith("[")
    ]


def text_of(message: Message) -> str:
    """Return the text of a message, whatever form it has."""
    content = message["content"]
    return content if isinstance(content, str) else json.dumps(content)


def user_texts(said: Sequence[Message]) -> list[str]:
    """Return what people said."""
    return [text_of(message) for message in said if message["role"] == "user"]
