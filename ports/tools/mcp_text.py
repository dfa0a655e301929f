"""What a person takes from an MCP server into a message: a resource `@NAME:uri`, a prompt `/NAME:prompt`.

Both become an attachment, as a file does: read when the message is sent, cut to the same sizes, fenced
for the model. The words of a server decide nothing: only what the person typed is classified.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Coroutine

from ...machines.conversation import Attachment
from ...machines.errors import ToolError
from ..attachment import AFTER, Ask, cut_text, refused
from .mcp_offer import McpPrompt, McpServers, tool_names
from .text import shown, visible

_PROMPT = re.compile(r"/([A-Za-z0-9_-]+):([^\s/]\S*)(?:\s+|\Z)")
_NAME = 200  # characters of a name in a message

Reading = Coroutine[None, None, str]


class ServerTexts:
    """Reads what messages name of the servers of a session. Blocks: not for the actors' loop.

    `run` runs a coroutine on the servers' loop, for a bounded time. `ask` is the decision of the
    permission rules on `mcp__NAME__resources` with a `uri`, or `mcp__NAME__prompts` with a `name`: a rule
    that denies holds, and no question is asked, since it is a person who names it.
    """

    def __init__(self, servers: McpServers, run: Callable[[Reading], str], ask: Ask) -> None:
        self._servers, self._run, self._ask = servers, run, ask

    def resource(self, name: str, room: int) -> Attachment | None:
        """Attach what `NAME:uri` names, with at most `room` bytes; none if it is no server's."""
        server, colon, uri = name.partition(":")
        if not colon or server not in self._servers.names or not uri.rstrip(AFTER):
            return None
        known = {resource.uri for resource in self._servers.status(server).offer.resources}
        uri = uri if uri in known else uri.rstrip(AFTER)
        return self._attached(
            f"{server}:{uri}",
            (tool_names(server, ["resources"])["resources"], {"uri": uri}),
            lambda: self._servers.read(server, uri),
            room,
        )

    def prompt(self, text: str, room: int) -> Attachment | None:
        """Attach the prompt that a message begins with, at most `room` bytes; else none.

        An attachment that is refused says what is wrong, with the prompt's usage.
        """
        found = _PROMPT.match(text)
        if found is None or found[1] not in self._servers.names:
            return None
        server, name = found[1], found[2]
        path = f"/{server}:{name}"
        prompts = {prompt.name: prompt for prompt in self._servers.status(server).offer.prompts}
        if name not in prompts:
            known = ", ".join(f"/{server}:{known}" for known in sorted(prompts))
            there = f"there is no such prompt; there are {known}" if known else "it has no prompts"
            return refused(path, there)
        try:
            arguments = arguments_of(prompts[name], text[found.end() :])
        except ToolError as error:
            usage = f"{path} {usage_of(prompts[name])}".rstrip()
            return refused(path, f"{error.message}: {usage}")
        return self._attached(
            path,
            (tool_names(server, ["prompts"])["prompts"], {"name": name}),
            lambda: self._servers.prompt(server, name, arguments),
            room,
            "the prompt that this message names",
        )

    def _attached(
        self,
        path: str,
        asked: tuple[str, dict[str, str]],
        read: Callable[[], Reading],
        room: int,
        about: str = "",
    ) -> Attachment:
        path = shown(visible(path, _NAME))
        decision = self._ask(*asked)
        if decision.do == "deny":
            return refused(path, f"a rule forbids it: {decision.rule}")
        if room <= 0:
            return refused(path, "the message brings as much along as it may")
        try:
            text = self._run(read())
        except TimeoutError:
            return refused(path, "the server did not answer in time")
        except ToolError as error:
            return refused(path, error.message)
        return cut_text(path, text, room, about)


def usage_of(prompt: McpPrompt) -> str:
    """Write the arguments of a prompt: `NAME [FOCUS]`."""
    return " ".join(
        name.upper() if is_needed else f"[{name.upper()}]" for name, is_needed in prompt.arguments
    )


def arguments_of(prompt: McpPrompt, text: str) -> dict[str, str]:
    """Read a prompt's arguments: words in their order, quoted as in a shell, or `name=value`.

    The last argument is the rest of the text. Raises `ToolError`.
    """
    names = [name for name, _ in prompt.arguments]
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()  # an apostrophe, not a quotation
    values: dict[str, str] = {}
    free: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        if equals and name in names and name not in values:
            values[name] = value
        else:
            free.append(word)
    for name in [name for name in names if name not in values]:
        if not free:
            break
        is_last = name == [other for other in names if other not in values][-1]
        values[name] = " ".join(free) if is_last else free[0]
        free = [] if is_last else free[1:]
    if free:
        raise ToolError(f"`{visible(' '.join(free), _NAME)}` is too much")
    missing = [name for name, is_needed in prompt.arguments if is_needed and name not in values]
    if missing:
        raise ToolError(f"`{missing[0]}` is missing")
    return values
