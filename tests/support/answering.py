"""A model server on loopback that says `ok` in each of the protocols that agents speak."""

import json
from typing import Any

from support.loopback import LoopbackRequest, LoopbackServer

__all__ = ["AnsweringServer"]

USAGE = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
MESSAGE = {"id": "m", "type": "message", "role": "assistant", "model": "fake", "content": []}
ANTHROPIC: list[dict[str, Any]] = [
    {"type": "message_start", "message": {**MESSAGE, "stop_reason": None, "usage": USAGE}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ok"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": USAGE},
    {"type": "message_stop"},
]
TEXT = {"type": "output_text", "text": "ok", "annotations": []}
ITEM = {**MESSAGE, "status": "completed", "content": [TEXT]}
RESPONSE = {
    "id": "r",
    "object": "response",
    "status": "completed",
    "output": [ITEM],
    "usage": USAGE,
}
RESPONSES: list[dict[str, Any]] = [
    {"type": "response.created", "response": {"id": "r"}},
    {"type": "response.output_item.done", "output_index": 0, "item": ITEM},
    {"type": "response.completed", "response": RESPONSE},
]
CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "fake"}
CHAT_USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
CHAT: list[dict[str, Any]] = [
    {**CHUNK, "choices": [{"index": 0, "delta": {"role": "assistant", "content": "ok"}}]},
    {**CHUNK, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": CHAT_USAGE},
]
CONTENT = {"role": "model", "parts": [{"text": "ok"}]}
GEMINI: list[dict[str, Any]] = [{"candidates": [{"content": CONTENT, "finishReason": "STOP"}]}]


class _Answers(LoopbackRequest):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """List one model, whatever is asked."""
        self._send("application/json", json.dumps({"data": [{"id": "fake"}]}))

    def do_POST(self) -> None:
        """Say ok."""
        asked = json.loads(self.content() or b"{}")
        is_stream = asked.get("stream") or "stream" in self.path
        if "chat/completions" in self.path:
            message = {"role": "assistant", "content": "ok"}
            choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
            self._answer(CHAT, {**CHUNK, "choices": choices, "usage": CHAT_USAGE}, is_stream)
        elif "messages" in self.path:
            content = [{"type": "text", "text": "ok"}]
            whole = {**MESSAGE, "content": content, "stop_reason": "end_turn", "usage": USAGE}
            self._answer(ANTHROPIC, whole, is_stream)
        elif "responses" in self.path:
            self._answer(RESPONSES, RESPONSE, is_stream)
        else:
            self._answer(GEMINI, GEMINI[0], is_stream)

    def _answer(self, events: list[dict[str, Any]], whole: dict[str, Any], is_stream: Any) -> None:
        if not is_stream:
            self._send("application/json", json.dumps(whole))
            return
        lines = [f"event: {event['type']}\n" if "type" in event else "" for event in events]
        texts = [
            f"{line}data: {json.dumps(one)}\n\n" for line, one in zip(lines, events, strict=True)
        ]
        end = "data: [DONE]\n\n" * (events is CHAT)
        self._send("text/event-stream", "".join(texts) + end)

    def _send(self, kind: str, text: str) -> None:
        self.reply(200, text.encode(), ("content-type", kind))


class AnsweringServer(LoopbackServer):
    """Says so on a free port of loopback."""

    def __init__(self) -> None:
        super().__init__(_Answers)
