"""A model server on loopback that says `ok` in each of the protocols that agents speak."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.patience import seconds

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


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """List one model, whatever is asked."""
        self._send("application/json", json.dumps({"data": [{"id": "fake"}]}))

    def do_POST(self) -> None:
        """Say ok."""
        asked = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
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
        body = text.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class AnsweringServer:
    """Listens on a free port of loopback until it is closed."""

    def __init__(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(seconds(10))
