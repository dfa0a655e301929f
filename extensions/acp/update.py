"""Translates between an editor and a session: prompts to texts, events to updates.

`EditorUpdates` translates the events of one session and of its descendants. Events for which the
protocol has no update (acknowledgements, notices) become quoted lines in a separate message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import acp
from acp import helpers
from acp.exceptions import RequestError
from acp.helpers import ToolCallContentVariant
from acp.schema import (
    AgentMessageChunk,
    AudioContentBlock,
    AvailableCommand,
    AvailableCommandInput,
    ConfigOptionUpdate,
    CurrentModeUpdate,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    SessionConfigOptionSelect,
    SessionInfoUpdate,
    TextContentBlock,
    TextResourceContents,
    ToolCallLocation,
    ToolCallStatus,
    ToolCallUpdate,
    UnstructuredCommandInput,
    UsageUpdate,
)

from ...gateway.commands.registry import COMMANDS
from ...gateway.events.contract import (
    Event,
    GoalEvent,
    GoalStatusEvent,
    OutputEvent,
    ProgressEvent,
    QuestionEvent,
    ToolEndedEvent,
    ToolStartedEvent,
)
from ...gateway.wording.terminal import exposed
from ...journal.record import SessionRecord
from ...machines.conversation import ChatMessage, Picture
from ...machines.errors import ToolError
from ...machines.value import Value
from ...ports.picture import PICTURES, decoded
from ...ports.tools.mcp_offer import McpOffer
from ...ports.tools.mcp_text import usage_of
from ...workflows.foreign_file import read_text
from ...workflows.tools import kind_of
from .link import WRONG
from .messages import SentMessages

Block = (
    TextContentBlock
    | ImageContentBlock
    | AudioContentBlock
    | ResourceContentBlock
    | EmbeddedResourceContentBlock
)
Update = helpers.SessionUpdate | ConfigOptionUpdate | UsageUpdate | dict[str, Any]
NOT_HERE = ("new", "exit", "answer")
"""Commands for which editors have means of their own."""
KEY = "acp-"
"""How the keys of an editor's messages begin."""
LONGEST = 20_000
"""Characters of a tool's output that an editor receives."""


class PromptParts(Value):
    """What a person sends in an editor."""

    text: str
    pictures: tuple[Picture, ...]


def said_of(blocks: Iterable[Block]) -> PromptParts:
    """Write the blocks of a prompt as one text, in order, followed by the embedded files.

    Raises `RequestError` if there is nothing in it, or a picture that cannot be taken.
    """
    parts: list[str] = []
    embedded: list[str] = []
    pictures: list[Picture] = []
    for block in blocks:
        match block:
            case TextContentBlock():
                parts.append(block.text)
            case ResourceContentBlock():
                parts.append(f"`{_place(block.uri)}`")
            case EmbeddedResourceContentBlock():
                place = _place(block.resource.uri)
                parts.append(f"`{place}`")
                embedded.append(_embedded(place, block))
            case AudioContentBlock():
                parts.append("[audio left out: this agent reads text and looks at pictures]")
            case ImageContentBlock():
                pictures.append(_picture(block, len(pictures)))
    text = "\n\n".join(["".join(parts), *embedded]).strip()
    if not text and not pictures:
        raise RequestError(WRONG, "there is nothing in the prompt")
    return PromptParts(text=text or "[picture 1]", pictures=tuple(pictures))


def _picture(block: ImageContentBlock, known: int) -> Picture:
    """Return a picture of a prompt, of which there are `known` already. Raises `RequestError`."""
    try:
        if known >= PICTURES:
            raise ToolError(f"a message brings {PICTURES} pictures along at most")
        return decoded(block.data)
    except ToolError as error:
        raise RequestError(WRONG, error.message) from error


def _embedded(place: str, block: EmbeddedResourceContentBlock) -> str:
    resource = block.resource
    if isinstance(resource, TextResourceContents):
        return f"`{place}` holds:\n```\n{resource.text}\n```"
    return f"[`{place}` is no text, and is left out]"


def _place(uri: str) -> str:
    """Return the path of a file's URI; any other URI as it is."""
    try:
        parts = urlsplit(uri)
    except ValueError:  # such as half an address in brackets
        return uri
    return unquote(parts.path) if parts.scheme == "file" else uri


class EditorUpdates:
    """Translates the events of one session. `words` writes an event's text for people, often empty."""

    def __init__(self, session: str, folder: Path, words: Callable[[Event], str]) -> None:
        self._session, self._folder, self._words = session, folder, words
        self.messages = SentMessages()
        self._known = set[str]()
        self._parts = count(1)
        self._part = ""

    def updates(self, event: Event) -> list[Update]:
        """Return the updates of an event, in order."""
        is_own = event["session"] == self._session
        match event["type"]:
            case "text" if is_own:
                if event.get("so_far"):
                    self._part = ""
                self._part = self._part or f"m{next(self._parts)}"
                return [_chunk(event["delta"], self._part)]
            case "thinking" if is_own:
                thought = acp.update_agent_thought_text(event["delta"])
                return [thought.model_copy(update={"message_id": f"{event['turn']}-thought"})]
            case "window" if is_own:
                used, size = event["tokens"], event["size"]
                return [UsageUpdate(session_update="usage_update", used=used, size=size)]
            case "output":
                content = acp.tool_content(acp.text_block(event["text"]))
                return [acp.update_tool_call(self._name(event), content=[content])]
            case "question" | "tool_started" | "tool_ended":
                self._part = ""
                return [self._tool(event)]
            case "progress" if is_own:
                return [_plan(event)]
            case "turn_ended" | "turn_started" if is_own:
                self._part = ""
                return []
            case _:
                return self.note(self._words(event)) if is_own else []

    def note(self, text: str) -> list[Update]:
        """Return a message with a text that is not the agent's, as quoted lines."""
        if not text:
            return []
        self._part = ""
        quoted = "\n".join(f"> {line}" for line in text.splitlines())
        return [_chunk(f"\n\n{quoted}\n\n", f"m{next(self._parts)}")]

    def settings(self, options: list[SessionConfigOptionSelect]) -> list[Update]:
        """Return the updates that tell the settings of the session, with its mode."""
        told = ConfigOptionUpdate(
            session_update="config_option_update",
            config_options=cast("Any", options),  # a list for which each answer has another type
        )
        now = next(option.current_value for option in options if option.id == "mode")
        mode = CurrentModeUpdate(session_update="current_mode_update", current_mode_id=now)
        return [told, mode]

    def told(self, update: Update) -> list[Update]:
        """Return an update as this version has it."""
        return [update]

    def state_of(self, record: SessionRecord) -> list[Update]:
        """Return the update of what a session does now; this version has none."""
        return []

    def question(self, event: QuestionEvent) -> ToolCallUpdate:
        """Return the tool call of a question."""
        about = self._about(event)
        if why := event.get("why"):
            said = acp.tool_content(acp.text_block(exposed(str(why))))
            about["content"] = [*(about.get("content") or ()), said]
        return ToolCallUpdate(**about, status="pending")

    def _tool(self, event: QuestionEvent | ToolStartedEvent | ToolEndedEvent) -> Update:
        name = self._name(event)
        if event["type"] == "tool_ended":
            self._known.discard(name)
            ended: ToolCallStatus = "completed" if event["status"] == "ok" else "failed"
            text = event.get("reason") or event["output"]
            content = [acp.tool_content(acp.text_block(_cut(text)))] if text else None
            return acp.update_tool_call(name, status=ended, content=content)
        if name in self._known:
            return acp.update_tool_call(name, status="in_progress")
        self._known.add(name)
        status: ToolCallStatus = "in_progress" if event["type"] == "tool_started" else "pending"
        return acp.start_tool_call(**self._about(event), status=status)

    def _about(self, event: QuestionEvent | ToolStartedEvent) -> dict[str, Any]:
        is_own = event["session"] == self._session
        may_look = event["type"] == "question"  # the call has not changed the file yet
        about = tool_call(
            self._name(event), event["tool"], event["arguments"], self._folder, may_look
        )
        return about if is_own else {**about, "title": f"subagent: {about['title']}"}

    def _name(self, event: QuestionEvent | ToolStartedEvent | OutputEvent | ToolEndedEvent) -> str:
        """Return the id of a call, which is unique also among the calls of subagents."""
        if event["type"] == "question":
            call = event["id"].rpartition("-")[2]
        else:
            call = event["call"]
        return call if event["session"] == self._session else f"{event['session']}.{call}"


def tool_call(
    name: str, tool: str, arguments: Mapping[str, Any], folder: Path, may_look: bool = False
) -> dict[str, Any]:
    """Describe a tool call: its title, kind, locations and changes.

    `may_look`: the file that the call overwrites may be read, to show the difference.
    """
    path = arguments.get("path")
    where = folder / path if isinstance(path, str) else None
    subject = arguments.get("command") or path or arguments.get("pattern") or arguments.get("task")
    title = exposed(" ".join(f"{tool} {subject or ''}".split()))
    return {
        "tool_call_id": name,
        "title": title if len(title) <= 200 else f"{title[:197]}...",
        "kind": kind_of(tool),
        "locations": [ToolCallLocation(path=str(where))] if where else None,
        "content": _change(tool, arguments, where, may_look) if where else None,
        "raw_input": dict(arguments),
    }


def _change(
    tool: str, arguments: Mapping[str, Any], where: Path, may_look: bool
) -> list[ToolCallContentVariant] | None:
    match tool, arguments:
        case "edit", {"old": str(old), "new": str(new)}:
            return [acp.tool_diff_content(str(where), new, old)]
        case "write", {"content": str(new)}:
            old_text = text_of(where) if may_look else None
            return [acp.tool_diff_content(str(where), new, old_text)]
        case _:
            return None


def text_of(path: Path) -> str | None:
    """Return what a file holds; none if it cannot be read, or is too long to be compared."""
    try:
        return read_text(path, 256 * 1024)
    except (OSError, ValueError):
        return None


def _chunk(text: str, part: str) -> AgentMessageChunk:
    chunk = acp.update_agent_message_text(text)
    return chunk.model_copy(update={"message_id": part})


def _cut(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]}\n[… {len(text) - LONGEST} characters …]\n{text[-half:]}"


def _plan(event: ProgressEvent) -> Update:
    done, total = event["done"], event["total"]
    text = f"{event['unit'] or 'step'} {done}/{total}"
    entry = acp.plan_entry(text, status="completed" if done >= total else "in_progress")
    return acp.update_plan([entry])


def goal_update(event: GoalEvent | GoalStatusEvent) -> SessionInfoUpdate:
    """Return a goal as `_meta.goal` of the session; none if the goal was cleared."""
    statuses = {"achieved": "complete", "waiting": "active", "impossible": "blocked"}
    state = event["state"]
    about = {
        "objective": event["text"],
        "status": statuses.get(state, state),
        "iterations": event["turns_used"],
        "maxIterations": event["max_turns"],
        "lastReason": event["reason"],
        "controlMethod": "_session/goal",
    }
    goal = None if state == "cleared" else about
    return SessionInfoUpdate(session_update="session_info_update", field_meta={"goal": goal})


def history(conversation: Iterable[ChatMessage], folder: Path) -> list[Update]:
    """Return the updates that show a conversation from its start."""
    updates: list[Update] = []
    for number, message in enumerate(conversation, 1):
        match message.role:
            case "user":
                said = acp.update_user_message_text(message.text)
                updates.append(said.model_copy(update={"message_id": f"h{number}"}))
            case "assistant":
                if message.text:
                    updates.append(_chunk(message.text, f"h{number}"))
                updates += [
                    acp.start_tool_call(
                        **tool_call(call.call, call.tool, call.arguments, folder), status="pending"
                    )
                    for call in message.tool_calls
                ]
            case "tool":
                content = [acp.tool_content(acp.text_block(_cut(message.text)))]
                updates.append(
                    acp.update_tool_call(message.call, status="completed", content=content)
                )
    return updates


def commands(offers: Mapping[str, McpOffer]) -> Update:
    """List the slash commands that make sense in an editor, and the prompts of MCP servers."""
    known = [
        AvailableCommand(name=command.name, description=command.doc, input=_input(command.usage))
        for command in COMMANDS.values()
        if command.name not in NOT_HERE
    ]
    prompts = [
        AvailableCommand(
            name=f"{server}:{prompt.name}",
            description=prompt.description or prompt.name,
            input=_input(usage_of(prompt)),
        )
        for server, offer in offers.items()
        for prompt in offer.prompts
    ]
    return helpers.update_available_commands([*known, *prompts])


def _input(usage: str) -> AvailableCommandInput | None:
    return AvailableCommandInput(UnstructuredCommandInput(hint=usage)) if usage else None
