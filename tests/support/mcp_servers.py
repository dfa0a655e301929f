"""An MCP server of our own that misbehaves as a test tells it to; standard library only.

    python mcp_servers.py [MODE ...]            on standard input and output
    python mcp_servers.py http [MODE ...]       on loopback, by Streamable HTTP; it prints its port

It speaks the protocol of 2025-06-18, and MODE says how it is odd from its start on; each tool of its own
is odd in its own way when it is called. Both are the functions named below.
"""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

__all__ = ["SERVER"]

SERVER = Path(__file__).resolve()
Json = dict[str, Any]

OBJECT = {"type": "object", "properties": {}}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
MODES: dict[str, Callable[["Server"], None]] = {}
TOOLS: dict[str, Callable[["Server", Json, Any], Any]] = {}


def mode(function: Callable[["Server"], None]) -> Callable[["Server"], None]:
    """Make a function a way to be odd from the start."""
    MODES[function.__name__] = function
    return function


def tool(function: Callable[["Server", Json, Any], Any]) -> Callable[["Server", Json, Any], Any]:
    """Make a function a tool; what it returns is the result, and None is no answer."""
    TOOLS[function.__name__] = function
    return function


def text(said: str) -> Json:
    """Write a result that is one text."""
    return {"content": [{"type": "text", "text": said}]}


class Server:
    """The protocol, as far as a client needs it; `post` sends a message to the client."""

    def __init__(self, post: Callable[[Json | str], None]) -> None:
        self.post = post
        self.version = "2025-06-18"
        self.tools: list[Any] = [
            {"name": name, "description": function.__doc__, "inputSchema": OBJECT}
            for name, function in TOOLS.items()
        ]
        self.described("echo")["inputSchema"] = TEXT
        self.described("look")["annotations"] = {"readOnlyHint": True, "idempotentHint": True}
        self.capabilities: Json = {"tools": {"listChanged": True}}
        self.on: dict[str, Callable[[Json], Any]] = {}
        self.listings = 0
        self.waits: dict[Any, threading.Event] = {}
        self.answers: dict[Any, Json] = {}
        self.is_deaf = False

    def described(self, name: str) -> Json:
        """Return a tool as it is listed."""
        return next(each for each in self.tools if each["name"] == name)

    def take(self, message: Json) -> Json | None:
        """Answer a message; None if it gets no answer."""
        method, params = message.get("method"), message.get("params") or {}
        if method is None:
            self.answers[message["id"]] = message
            self.waits.setdefault(message["id"], threading.Event()).set()
            return None
        if method in self.on:
            result = self.on[method](message)
        elif method == "initialize":
            information = {"name": "odd", "version": "1"}
            result = {
                "protocolVersion": self.version,
                "capabilities": self.capabilities,
                "serverInfo": information,
                "instructions": "Be careful.",
            }
        elif method == "tools/list":
            self.listings += 1
            result = {"tools": self.tools}
        elif method == "tools/call":
            return self.call(message, params)
        elif method == "notifications/cancelled" and not self.is_deaf:
            self.waits.setdefault(params["requestId"], threading.Event()).set()
            return None
        elif "id" in message:
            return {"id": message["id"], "error": {"code": -32601, "message": f"no {method}"}}
        else:
            return None
        return None if result is None else {"id": message["id"], "result": result}

    def begin(self, message: Json) -> None:
        """Report that a call has begun."""
        token = message["params"]["_meta"]["progressToken"]
        params = {"progressToken": token, "progress": 1}
        self.post({"method": "notifications/progress", "params": params})

    def call(self, message: Json, params: Json) -> Json | None:
        """Call a tool."""
        name = params["name"]
        if name not in TOOLS:
            return {"id": message["id"], "error": {"code": -32602, "message": f"no tool {name}"}}
        result = TOOLS[name](self, params.get("arguments") or {}, message)
        return None if result is None else {"id": message["id"], "result": result}


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A picture of one pixel, as PNG in base64."""

# Tools --------------------------------------------------------------------------------------------


@tool
def echo(server: Server, arguments: Json, message: Any) -> Any:
    """Say the text again."""
    return text(str(arguments.get("text", arguments)))


@tool
def look(server: Server, arguments: Json, message: Any) -> Any:
    """Say which process this is."""
    return text(f"{os.getpid()}")


@tool
def wrong(server: Server, arguments: Json, message: Any) -> Any:
    """Fail as a tool does."""
    return {**text("that is wrong"), "isError": True}


@tool
def rich(server: Server, arguments: Json, message: Any) -> Any:
    """Answer with one of each kind."""
    resource = {"uri": "demo://1", "mimeType": "text/plain"}
    return {
        "content": [
            {"type": "text", "text": "one"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "image", "data": PIXEL, "mimeType": "text/html"},
            {"type": "audio", "data": "AAAAAAAA", "mimeType": "audio/wav"},
            {
                "type": "resource_link",
                "uri": "demo://2",
                "name": "two",
                "description": "a\x1b[31mb",
            },
            {"type": "resource", "resource": {**resource, "text": "inside"}},
            {"type": "resource", "resource": {**resource, "blob": "AAAA"}},
        ],
        "structuredContent": {"one": 1},
    }


@tool
def structured(server: Server, arguments: Json, message: Any) -> Any:
    """Answer with data alone."""
    return {"content": [], "structuredContent": {"one": [1, 2]}}


@tool
def environment(server: Server, arguments: Json, message: Any) -> Any:
    """Say what is in the environment, and where this is."""
    return text(json.dumps({"folder": os.getcwd(), "environment": dict(os.environ)}))


@tool
def steps(server: Server, arguments: Json, message: Any) -> Any:
    """Report progress three times, and then answer."""
    token = message["params"]["_meta"]["progressToken"]
    for done in (1, 2, 3):
        about = {
            "progressToken": token,
            "progress": done,
            "total": 3,
            "message": f"step\x1b {done}",
        }
        server.post({"method": "notifications/progress", "params": about})
    return text("done")


@tool
def waits(server: Server, arguments: Json, message: Any) -> Any:
    """Wait until the call is cancelled, and say so as an error."""
    server.begin(message)
    server.waits.setdefault(message["id"], threading.Event()).wait()
    server.post({"id": message["id"], "error": {"code": 0, "message": "cancelled"}})


@tool
def finishes(server: Server, arguments: Json, message: Any) -> Any:
    """Wait until the call is cancelled, and answer with a result all the same."""
    server.begin(message)
    server.waits.setdefault(message["id"], threading.Event()).wait()
    return text("finished first")


@tool
def deaf(server: Server, arguments: Json, message: Any) -> Any:
    """Take no notice of a cancel, and work on, with a process that leaves the group."""
    ready, is_ready = os.pipe()
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        Path("grandchild").write_text(str(os.getpid()))
        os.write(is_ready, b"x")
        threading.Event().wait()  # for ever
    os.read(ready, 1)
    server.begin(message)


@tool
def dies(server: Server, arguments: Json, message: Any) -> Any:
    """End in the middle of the call."""
    print("first line\nno more \x1b[31mmemory", file=sys.stderr, flush=True)
    os._exit(3)


@tool
def killed(server: Server, arguments: Json, message: Any) -> Any:
    """End by a signal in the middle of the call."""
    os.kill(os.getpid(), signal.SIGKILL)


@tool
def long_line(server: Server, arguments: Json, message: Any) -> Any:
    """Send a line without an end."""
    while True:
        os.write(1, b"x" * 65_536)


@tool
def flood(server: Server, arguments: Json, message: Any) -> Any:
    """Send notifications without an end."""
    while True:
        server.post({"method": "notifications/message", "params": {"level": "info", "data": "x"}})


@tool
def pings(server: Server, arguments: Json, message: Any) -> Any:
    """Send requests without an end, and read no answer."""
    for number in range(1_000_000):
        server.post({"id": f"p{number}", "method": "ping"})


@tool
def big(server: Server, arguments: Json, message: Any) -> Any:
    """Answer with a text of so many characters."""
    return text("x" * int(arguments["size"]))


@tool
def chatter(server: Server, arguments: Json, message: Any) -> Any:
    """Print what is no message before the answer."""
    server.post("hello \x1b[31m\n\n[1, 2]\n{not json\n" + "[" * 5000 + "\n" + '{"a": 1}')
    return text("after all")


@tool
def no_answer(server: Server, arguments: Json, message: Any) -> Any:
    """Answer with what is no answer of the protocol."""
    server.post({"id": message["id"], "result": "just a text"})


@tool
def wrong_result(server: Server, arguments: Json, message: Any) -> Any:
    """Answer with a result of another kind."""
    return {"content": [{"type": "hologram", "data": "x"}]}


@tool
def asks(server: Server, arguments: Json, message: Any) -> Any:
    """Ask the client for all that a server may ask, and say what came back."""
    question = {"messages": [], "maxTokens": 1}
    form = {"message": "Your password?", "requestedSchema": OBJECT}
    for number, (method, params) in enumerate(
        [("sampling/createMessage", question), ("elicitation/create", form), ("roots/list", {})]
    ):
        server.post({"id": f"q{number}", "method": method, "params": params})
        server.waits.setdefault(f"q{number}", threading.Event()).wait()
    errors = [server.answers[f"q{number}"]["error"]["message"] for number in range(3)]
    return text("; ".join(errors))


@tool
def changes(server: Server, arguments: Json, message: Any) -> Any:
    """Remove one tool, add one, and change the arguments of another."""
    server.tools = [each for each in server.tools if each["name"] != "look"]
    server.tools.append({"name": "fresh", "inputSchema": OBJECT})
    number = {"type": "object", "properties": {"text": {"type": "integer"}}, "required": ["text"]}
    server.tools[0] = {**server.tools[0], "inputSchema": number}
    server.post({"method": "notifications/tools/list_changed"})
    return text("changed")


@tool
def restless(server: Server, arguments: Json, message: Any) -> Any:
    """Say a hundred times that the tools have changed."""
    for _ in range(100):
        server.post({"method": "notifications/tools/list_changed"})
    return text("changed")


@tool
def listings(server: Server, arguments: Json, message: Any) -> Any:
    """Say how often the tools were listed."""
    return text(str(server.listings))


# Modes --------------------------------------------------------------------------------------------


@mode
def gone(server: Server) -> None:
    """End at once."""
    print("no configuration", file=sys.stderr, flush=True)
    os._exit(7)


@mode
def strict(server: Server) -> None:
    """End at a first question that is not `initialize`, as some servers before 2026 do."""

    def end(message: Json) -> Any:
        os._exit(1)

    server.on["server/discover"] = end


@mode
def oldest(server: Server) -> None:
    """Speak the first version of the protocol."""
    server.version = "2024-11-05"


@mode
def future(server: Server) -> None:
    """Insist on a version that nobody knows."""
    server.version = "2099-01-01"


@mode
def no_result(server: Server) -> None:
    """Answer `initialize` with what is no result."""
    server.on["initialize"] = lambda message: {"hello": "world"}


@mode
def lying(server: Server) -> None:
    """List tools that cannot be used, and two that can."""
    deep: Json = {}
    for _ in range(200):
        deep = {"type": "object", "properties": {"a": deep}}
    loop = {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}
    loop["$defs"] = {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}
    slow = {"type": "string", "pattern": "^(a+)+$"}
    server.tools = [
        server.described("echo"),
        "nothing",
        {"name": "no_schema"},
        {"name": "list_schema", "inputSchema": [1]},
        {"name": "text_schema", "inputSchema": {"type": "string"}},
        {"name": "large_schema", "inputSchema": {"type": "object", "x": "y" * 70_000}},
        {"name": "deep_schema", "inputSchema": deep},
        {"name": "", "inputSchema": OBJECT},
        {"name": "n" * 300, "inputSchema": OBJECT},
        {"inputSchema": OBJECT},
        {**server.described("echo"), "description": "the second one"},
        {"name": "loop", "inputSchema": loop, "outputSchema": {"$ref": "#"}, "icons": 1},
        {
            "name": "slow",
            "description": ["no text"],
            "inputSchema": {"properties": {"a": slow}, "required": "all", "anyOf": [{}]},
            "annotations": {"readOnlyHint": "yes"},
        },
    ]


@mode
def names(server: Server) -> None:
    """List tools whose names and descriptions are made to mislead."""
    titles = ["a b", "a.b", "a_b", "\x1b[2Jx", "\u202egnp.exe", "y" * 100, "__z", "ümlaut"]
    about = "Good.\x1b]0;title\x07 \u202eevil\u202c\nNext \U000e0041line. " + "z" * 20_000
    server.tools = [{"name": name, "description": about, "inputSchema": OBJECT} for name in titles]


@mode
def many(server: Server) -> None:
    """List 1,500 tools on pages of 300."""
    server.tools = [{"name": f"t{number}", "inputSchema": OBJECT} for number in range(1500)]

    def page(message: Json) -> Any:
        first = int(message.get("params", {}).get("cursor", 0))
        found: Json = {"tools": server.tools[first : first + 300]}
        return {**found, "nextCursor": str(first + 300)} if first < 1200 else found

    server.on["tools/list"] = page


@mode
def endless(server: Server) -> None:
    """List pages without an end."""

    def page(message: Json) -> Any:
        first = int(message.get("params", {}).get("cursor", 0))
        return {
            "tools": [{"name": f"t{first}", "inputSchema": OBJECT}],
            "nextCursor": str(first + 1),
        }

    server.on["tools/list"] = page


@mode
def everything(server: Server) -> None:
    """Offer resources and prompts, too."""
    server.capabilities.update(resources={}, prompts={})
    named = {"name": "on\u202ee", "description": "first"}
    asked = {"name": "which", "required": True}
    server.on["resources/list"] = lambda message: {"resources": [{"uri": "demo://1", **named}]}
    server.on["resources/templates/list"] = lambda message: {
        "resourceTemplates": [{"uriTemplate": "demo://{n}", "name": "n"}]
    }
    server.on["prompts/list"] = lambda message: {"prompts": [{**named, "arguments": [asked]}]}


@mode
def lying_resources(server: Server) -> None:
    """Offer resources that are none."""
    server.capabilities["resources"] = {}
    server.on["resources/list"] = lambda message: {"resources": [1, 2]}


@mode
def stubborn(server: Server) -> None:
    """Neither a signal nor the end of the input ends it."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=threading.Event().wait).start()


@mode
def once(server: Server) -> None:
    """Run the first time only."""
    if Path("was-here").exists():
        gone(server)
    Path("was-here").touch()


@mode
def slow(server: Server) -> None:
    """Answer nothing before the test opens a named pipe."""
    Path("go").read_bytes()


# Transports ---------------------------------------------------------------------------------------


def lines() -> Iterator[Json]:
    """Read messages from standard input."""
    for line in sys.stdin.buffer:
        yield json.loads(line)


def serve_lines(modes: list[str]) -> None:
    """Serve on standard input and output; each call has a thread, so that it can be cancelled."""
    lock = threading.Lock()

    def post(message: Json | str) -> None:
        line = message if isinstance(message, str) else json.dumps({"jsonrpc": "2.0", **message})
        with lock:
            data = line.encode() + b"\n"
            while data:
                data = data[os.write(1, data) :]

    server = Server(post)
    for name in modes:
        MODES[name](server)

    def answer(message: Json) -> None:
        if (said := server.take(message)) is not None:
            post(said)

    for message in lines():
        if message.get("method") == "tools/call":
            threading.Thread(target=answer, args=[message], daemon=True).start()
        else:
            answer(message)


class Endpoint(BaseHTTPRequestHandler):
    """One request by Streamable HTTP: an answer is one JSON body."""

    protocol_version = "HTTP/1.1"
    server_of: Server
    modes: list[str]

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """Answer a message."""
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        name = (message.get("params") or {}).get("name")
        if "locked" in self.modes and self.headers.get("authorization") != "Bearer k":
            self.send(401, b"no")
        elif name == "vanish":
            os._exit(5)
        elif name == "hangs":
            print(name, flush=True)  # the test waits for this
            self.rfile.read(1)  # until the client closes
        elif name == "squeezed":
            self.send(200, b"x", ("content-encoding", "gzip"))
        elif name == "broken":
            self.send(200, b"{not json")
        elif name == "busy":
            self.send(503, b"try later")
        else:
            said = self.server_of.take(message)
            body = json.dumps({"jsonrpc": "2.0", **said}).encode() if said else b""
            self.send(200 if said else 202, body)

    def send(self, status: int, body: bytes, *more: tuple[str, str]) -> None:
        """Send an answer."""
        self.send_response(status)
        for key, value in (("content-type", "application/json"), *more):
            self.send_header(key, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        """Offer no stream."""
        self.send(405, b"")


def serve_http(modes: list[str]) -> None:
    """Serve on loopback until it is ended."""
    for name in ("vanish", "hangs", "squeezed", "broken", "busy"):
        TOOLS[name] = echo
    Endpoint.server_of, Endpoint.modes = Server(lambda message: None), modes
    with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as http:
        http.daemon_threads = True
        print(http.server_port, flush=True)
        http.serve_forever(0.05)


if __name__ == "__main__":
    if sys.argv[1:2] == ["http"]:
        serve_http(sys.argv[2:])
    else:
        serve_lines(sys.argv[1:])
