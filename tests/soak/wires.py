"""Inputs that come over a wire, for `fuzz.py`: HTTP, editors, and MCP in both directions.

Each is given to the installed program as it runs, but for the answers of an MCP server, which the client
of sessions gets. After each input something of ours has to be answered by the same program.
"""

import asyncio
import http.client
import json
import os
import queue
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from support.driver import Place
from support.model_server import ModelServer, Text
from support.patience import seconds
from support.served import Served

from steersman.extensions.mcp.client import McpClient
from steersman.machines.errors import ToolError
from steersman.ports.process.host import ProcessHost
from steersman.ports.tools.mcp_offer import McpRestart, McpServer
from steersman.ports.tools.tool import ToolContext

__all__ = ["WIRES"]

Take = Callable[[str], bool]

PROMPT = 0.1
"""Seconds for an answer to an input that may be half a request; then it is given up."""
SERVER = Path(__file__).with_name("wire_server.py")
MISTAKE = -32603
"""What JSON-RPC calls an error inside of the program."""


def _check_words(said: str, place: Place) -> None:
    """Neither standard error nor a log of the place has a traceback."""
    assert "Traceback" not in said, said[-2_000:]
    for log in place.home.rglob("*.log*"):
        text = log.read_text("utf-8", "replace")
        assert "Traceback" not in text, text[-2_000:]


# HTTP ---------------------------------------------------------------------------------------------

_HEAD = "HTTP/1.1\nHost: ADDRESS\nAuthorization: Bearer TOKEN\n"
_SESSION = "/api/v1/sessions/SESSION"


def _request(method: str, path: str, body: Any = None, more: str = "") -> str:
    data = "" if body is None else json.dumps(body)
    length = f"Content-Length: {len(data)}\n" if data else ""
    return f"{method} {path} {_HEAD}{more}{length}\n{data}"


def _requests() -> list[str]:
    item = f"{_SESSION}/queue/1"
    return [
        _request("GET", "/api/v1/sessions"),
        _request("GET", _SESSION),
        _request("GET", f"{_SESSION}/queue"),
        _request("GET", f"{_SESSION}/events", more="Last-Event-ID: 2\nAccept: text/event-stream\n"),
        _request("GET", f"{_SESSION}/events?after=1&upto=9"),
        _request("GET", f"{_SESSION}/inspect?at=3"),
        _request("GET", f"{_SESSION}/sequence?at=4"),
        _request("GET", f"{_SESSION}/why?message=1"),
        _request("GET", "/api/v1/machines"),
        _request("GET", "/api/v1/schedules"),
        _request("GET", "/api/v1/me"),
        _request("POST", "/api/v1/pair", {"code": "ABCD-EFGH"}),
        _request(
            "POST", f"{_SESSION}/messages", {"text": "hello", "as": "queue"}, "Idempotency-Key: a\n"
        ),
        _request("POST", f"{_SESSION}/commands", {"name": "queue list", "arguments": {}}),
        _request(
            "POST",
            f"{_SESSION}/commands",
            {"name": "queue edit", "arguments": {"number": 1, "text": "x"}},
        ),
        _request("POST", f"{_SESSION}/stop"),
        _request("PATCH", item, {"position": 1}),
        _request("PATCH", item, {"text": "other"}),
        _request("DELETE", item),
        _request("PUT", f"{item}/edit", {"editor": "me"}),
        _request("POST", f"{_SESSION}/questions/q1", {"choice": "allow"}),
        _request("POST", "/api/v1/sessions", {"resume": "SESSION"}),
    ]


@contextmanager
def _served(folder: Path) -> Generator[Take]:
    """Send requests to `serve`, each over a connection of its own."""
    place = Place(folder)
    with ModelServer([Text("Yes.")]) as server, closing(place):
        place.configure(server.base_url)
        served = Served(place)
        try:
            served.pair()
            session = served.begin()

            def take(text: str) -> bool:
                values = {"ADDRESS": served.address, "TOKEN": served.token, "SESSION": session}
                good = f" {_HEAD.strip()}"
                for name, value in values.items():
                    text, good = text.replace(name, value), good.replace(name, value)
                status, said = _exchanged(served.address, text, good)
                assert status != 500, said
                assert status < 400 or b'"detail"' in said or b"Invalid HTTP" in said, said
                assert served.ask("GET", f"sessions/{session}").status == 200
                return 200 <= status < 300

            yield take
        finally:
            said = served.close()
        _check_words(said, place)


def _repaired(head: str, good: str) -> str:
    """Give a broken head the names of host and device again, and a method and version."""
    first, *rest = head.split("\n")
    method, _, path = first.partition(" ")
    path = path.removesuffix(" HTTP/1.1") if method.isupper() else "/api/v1/sessions"
    others = [line for line in rest if not line.startswith(("Host:", "Authorization:"))]
    return "\n".join((f"{method if method.isupper() else 'GET'} {path}{good}", *others))


def _exchanged(address: str, text: str, good: str) -> tuple[int, bytes]:
    """Send a request as it stands; return the status and the beginning of the answer, 0 for none."""
    head, _, body = text.partition("\n\n")
    if len(text) % 4:  # else most would not come further than to the door
        head = _repaired(head, good)
    if body and len(body) % 4:  # else the length is wrong as often as the body is broken
        length = f"Content-Length: {len(body.encode('utf-8', 'replace'))}"
        head = re.sub("Content-Length: [0-9]+", length, head)
    data = f"{head}\n\n".replace("\n", "\r\n") + body
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=seconds(30)) as client:
        client.sendall(data.encode("utf-8", "replace"))
        client.settimeout(PROMPT)
        with suppress(OSError, http.client.HTTPException):
            answer = http.client.HTTPResponse(client)
            answer.begin()
            is_stream = "event-stream" in (answer.getheader("content-type") or "")
            return answer.status, b"" if is_stream else answer.read(100_000)
    return 0, b""


# Lines of JSON-RPC --------------------------------------------------------------------------------


class _Lines:
    """A command that takes and gives lines of JSON-RPC; begun again when an input has ended it well."""

    def __init__(self, place: Place, *command: str) -> None:
        self.place, self._command = place, command
        self._made = self._looked = 0
        self._begin()

    def _begin(self) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            (*self.place.command, *self._command),
            cwd=self.place.folder,
            env=self.place.environ,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
        )
        self._answers: queue.Queue[bytes | None] = queue.Queue()
        self._said: list[bytes] = []
        self._threads = [
            threading.Thread(target=self._read, args=(self._process.stdout, self._answers.put)),
            threading.Thread(target=self._read, args=(self._process.stderr, self._said.append)),
        ]
        for thread in self._threads:
            thread.start()

    def _read(self, pipe: Any, put: Callable[[Any], None]) -> None:
        for line in pipe:
            put(line)
        if pipe is self._process.stdout:
            put(None)

    def send(self, line: bytes) -> None:
        """Send a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + b"\n")
        self._process.stdin.flush()

    def asked(self, method: str, params: dict[str, Any]) -> tuple[Any, list[dict[str, Any]]]:
        """Ask something of ours; return the result, and what else came before it."""
        self._made += 1
        key = f"ours-{self._made}"
        self.send(
            json.dumps({"jsonrpc": "2.0", "id": key, "method": method, "params": params}).encode()
        )
        others: list[dict[str, Any]] = []
        while True:
            line = self._answers.get(timeout=seconds(60))
            assert line is not None, f"it has ended: {b''.join(self._said)[-2_000:]!r}"
            said = json.loads(line)
            if said.get("id") == key and "method" not in said:
                assert "result" in said, said
                return said["result"], others
            others.append(said)

    def check(self, others: list[dict[str, Any]]) -> bool:
        """Look at what an input led to; whether nothing of it was refused."""
        faults = [said["error"] for said in others if "error" in said]
        assert all(fault["code"] != MISTAKE for fault in faults), faults
        assert all(str(fault["message"]) for fault in faults), faults
        self._look()
        return not faults and any("result" in said for said in others)

    def _look(self) -> None:
        """Look at what was said since the last time."""
        said, self._looked = self._said[self._looked :], len(self._said)
        _check_words(b"".join(said).decode("utf-8", "replace"), self.place)

    def close(self) -> None:
        """End it."""
        process = self._process
        assert process.stdin is not None
        try:
            with suppress(BrokenPipeError):
                process.stdin.close()
            assert process.wait(seconds(60)) == 0, b"".join(self._said)[-2_000:]
        finally:
            process.kill()
            for thread in self._threads:
                thread.join()
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
            process.wait()
        self._look()


def _calls(*calls: tuple[str, dict[str, Any]]) -> list[str]:
    return [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        for number, (method, params) in enumerate(calls, 1)
    ]


def _editing() -> list[str]:
    prompt = [{"type": "text", "text": "hello"}]
    resource = {"type": "resource", "resource": {"uri": "file:///a", "text": "x"}}
    command = {
        "name": "x",
        "command": "/bin/false",
        "args": [],
        "env": [{"name": "A", "value": "b"}],
    }
    web = {"type": "http", "name": "w", "url": "http://127.0.0.1:1/", "headers": []}
    here = {"sessionId": "SESSION"}
    return _calls(
        (
            "initialize",
            {"protocolVersion": 1, "clientCapabilities": {"fs": {"readTextFile": True}}},
        ),
        ("session/prompt", {**here, "prompt": prompt}),
        ("session/prompt", {**here, "prompt": [*prompt, resource]}),
        ("session/list", {"cwd": "FOLDER"}),
        ("session/list", {"cursor": "1"}),
        ("session/load", {**here, "cwd": "FOLDER", "mcpServers": []}),
        ("session/resume", {**here, "cwd": "FOLDER", "mcpServers": [command, web]}),
        ("session/set_config_option", {**here, "configId": "busy", "value": "queue"}),
        (
            "_session/steering",
            {**here, "prompt": prompt, "_meta": {"steering": {"idleBehavior": "x"}}},
        ),
        ("_session/goal", {**here, "action": "pause"}),
        ("_session/goal", {**here, "action": "set", "objective": "x", "maxTurns": 2}),
        ("_steersman/command", {**here, "command": "/queue list"}),
        ("session/cancel", here),
        ("session/new", {"cwd": "FOLDER/none", "mcpServers": [command]}),
    )


@contextmanager
def _edited(folder: Path) -> Generator[Take]:
    """Send lines to `acp`."""
    place = Place(folder)
    with ModelServer([Text("Yes.")]) as server, closing(place):
        place.configure(server.base_url)
        with closing(_Lines(place, "acp")) as editor:
            editor.asked("initialize", {"protocolVersion": 1})
            here = {"cwd": str(place.folder), "mcpServers": []}
            session = editor.asked("session/new", here)[0]["sessionId"]

            def take(text: str) -> bool:
                text = text.replace("SESSION", session).replace("FOLDER", str(place.folder))
                editor.send(text.encode("utf-8", "replace"))
                others = editor.asked("session/list", {})[1]
                return editor.check(others)

            yield take


def _called() -> list[str]:
    tools: list[tuple[str, dict[str, Any]]] = [
        ("list_sessions", {}),
        ("list_queue", {"session": "SESSION"}),
        ("say", {"session": "SESSION", "text": "hello", "wait": 0}),
        ("queue", {"session": "SESSION", "text": "more"}),
        ("steer", {"session": "SESSION", "text": "x", "wait": 0.0}),
        ("stop", {"session": "SESSION"}),
        ("inspect", {"session": "last"}),
        ("why", {"session": "SESSION", "message": "1"}),
        ("answer", {"session": "SESSION", "question": "q1", "choice": "deny"}),
        ("run", {"workflow": "none", "variables": {"a": 1}}),
    ]
    calls = [("tools/call", {"name": name, "arguments": given}) for name, given in tools]
    return _calls(
        *calls,
        ("tools/list", {}),
        ("tools/list", {"cursor": "x"}),
        ("ping", {}),
        ("resources/list", {}),
        ("notifications/cancelled", {"requestId": 1, "reason": "x"}),
        ("notifications/progress", {"progressToken": 1, "progress": 0.5}),
        ("initialize", _HELLO),
    )


_HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "c", "version": "1"},
}


@contextmanager
def _called_by_client(folder: Path) -> Generator[Take]:
    """Send lines to `mcp`, which serves a home with one session that nobody has open."""
    place = Place(folder)
    with ModelServer([Text("Yes.")]) as server, closing(place):
        place.configure(server.base_url)
        chat = place.chat()
        session = str(chat.wait("session_started")["session"])
        assert chat.close() == 0
        with closing(_Lines(place, "mcp", "--answer")) as client:
            client.asked("initialize", _HELLO)
            client.send(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')

            def take(text: str) -> bool:
                client.send(text.replace("SESSION", session).encode("utf-8", "replace"))
                others = client.asked("ping", {})[1]
                return client.check(others)

            yield take


# Answers of an MCP server -------------------------------------------------------------------------


def _answers() -> list[str]:
    tool = {
        "name": "echo",
        "description": "Say it again.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
        "annotations": {"readOnlyHint": True},
    }
    blocks = [
        {"type": "text", "text": "hello"},
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        {"type": "resource_link", "uri": "demo://1", "name": "one"},
        {"type": "resource", "resource": {"uri": "demo://1", "text": "inside"}},
    ]
    capabilities = {"tools": {"listChanged": True}, "prompts": {}, "resources": {}}
    about = {"name": "s", "version": "1"}
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": capabilities,
        "serverInfo": about,
        "instructions": "Be careful.",
    }
    results: list[tuple[str, Any]] = [
        ("initialize", hello),
        ("tools/list", {"tools": [tool], "nextCursor": None}),
        ("tools/list", {"tools": [tool, {**tool, "name": "two"}]}),
        *(("tools/call", {"content": [block], "isError": False}) for block in blocks),
        ("tools/call", {"content": [], "structuredContent": {"a": [1, 2]}}),
    ]
    texts = [
        json.dumps({"to": method, "jsonrpc": "2.0", "id": "ID", "result": result})
        for method, result in results
    ]
    fault = {"code": -32602, "message": "no", "data": {"a": 1}}
    note = {"method": "notifications/tools/list_changed", "params": {}}
    asked = {"id": 9, "method": "sampling/createMessage", "params": {"messages": []}}
    for wrong in ({"id": "ID", "error": fault}, note, asked):
        texts.append(json.dumps({"to": "tools/call", "jsonrpc": "2.0", **wrong}))
    return texts


@contextmanager
def _answered(folder: Path) -> Generator[Take]:
    """Have a server answer with the input: to the handshake, to the listing of tools, or to a call."""
    path = folder / "answer"
    path.write_text("", "utf-8")
    config = McpServer(
        name="s",
        command=(sys.executable, "-I", "-S", str(SERVER), str(path)),
        timeout=seconds(5),
        start_timeout=seconds(5),
        restart=McpRestart(backoff=0.0),
    )
    loop = asyncio.new_event_loop()
    complaints: list[Any] = []
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    host = ProcessHost()
    servers = McpClient((config,), host, folder, dict(os.environ), grace=0.05)

    async def called(text: str) -> bool:
        is_of_call = _of_call(text)
        path.write_text("" if is_of_call else text, "utf-8", "replace")
        if not is_of_call or servers.status("s").state != "ready":
            await servers.restart("s")
        path.write_text(text, "utf-8", "replace")
        tools = servers.tools()
        for tool in tools:
            assert re.fullmatch(r"[\w-]{1,64}", tool.schema.name, re.ASCII), tool.schema
        context = ToolContext(
            folder=folder,
            call="t1.s1.c1",
            spill_folder=folder / "spill",
            environment={},
            on_output=lambda _: None,
            limit=4_000,
        )
        if not tools:
            return False
        found = await tools[0].start({}, context).wait()
        assert isinstance(found.text, str)
        assert "Traceback" not in found.text, found.text
        return found.status == "ok"

    def take(text: str) -> bool:
        why = "it was taken"
        try:
            is_sound = loop.run_until_complete(asyncio.wait_for(called(text), seconds(60)))
        except ToolError as refusal:
            is_sound, why = False, str(refusal)
        assert why
        assert not complaints, complaints.pop()
        return is_sound

    try:
        yield take
    finally:
        loop.run_until_complete(servers.aclose())
        loop.run_until_complete(host.aclose())
        loop.close()


def _of_call(text: str) -> bool:
    return "initialize" not in text and "tools/list" not in text.replace("notifications/tools", "")


WIRES: dict[str, tuple[Any, ...]] = {
    "HTTP request": (_requests, _served, False),
    "line of an editor": (_editing, _edited, True),
    "line of an MCP client": (_called, _called_by_client, True),
    "answer of an MCP server": (_answers, _answered, True),
}
"""Of each kind: its texts, what opens it, and whether it is one line."""
