"""What a turn with one tool of one's own costs, through the library and through other SDKs.

Run it as `python benchmarks/library.py [--python PATH]`, with the package installed; PATH is the
interpreter of an environment with `pydantic-ai-slim[openai]` and `openai-agents`, which are measured,
too, if they are there. All ask the same model server on loopback, which answers at once: first with a
call of the tool `weather`, then with a text. The baseline are the two bare HTTP requests of a turn.
Each contender runs in a process of its own.
"""

import argparse
import asyncio
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

TURNS = 200
SESSIONS = 1_000
CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"city": "Rome"}'},
}
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


class Model(BaseHTTPRequestHandler):
    """Asks for the tool after a person's message, and answers after the tool's result."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Answer, streamed or not."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_answer = asked["messages"][-1]["role"] == "tool"
        said: dict[str, Any] = {"role": "assistant", "content": "Sunny." if is_answer else None}
        if not is_answer:
            said["tool_calls"] = [CALL]
        reason = "stop" if is_answer else "tool_calls"
        head = {"id": "x", "created": 1, "model": "bench"}
        if asked.get("stream"):
            delta = said | ({} if is_answer else {"tool_calls": [{"index": 0, **CALL}]})
            chunk = {"index": 0, "delta": delta, "finish_reason": reason}
            data = {**head, "object": "chat.completion.chunk", "choices": [chunk], "usage": USAGE}
            body, kind = f"data: {json.dumps(data)}\n\ndata: [DONE]\n\n", "text/event-stream"
        else:
            choice = {"index": 0, "message": said, "finish_reason": reason}
            data = {**head, "object": "chat.completion", "choices": [choice], "usage": USAGE}
            body, kind = json.dumps(data), "application/json"
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


# Contenders: each prints what it measured as a line of JSON ---------------------------------------


def memory() -> float:
    """Return the memory of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


async def timed(turn: Callable[[], Awaitable[object]]) -> float:
    """Return the seconds of a turn: the mean of many, after some that warm up."""
    for _ in range(10):
        await turn()
    began = time.perf_counter()
    for _ in range(TURNS):
        await turn()
    return (time.perf_counter() - began) / TURNS


def requests(port: int) -> dict[str, float]:
    """The two requests of a turn, and nothing else."""
    connection = http.client.HTTPConnection("127.0.0.1", port)

    async def turn() -> None:
        for role in ("user", "tool"):
            message = json.dumps({"messages": [{"role": role, "content": "x"}], "stream": True})
            connection.request("POST", "/v1/chat/completions", message)
            connection.getresponse().read()

    return {"turn": asyncio.run(timed(turn))}


def library(port: int, home: str) -> dict[str, float]:
    """Return the cost of a turn through the library, and of a session among many."""
    import steersman

    @steersman.tool
    def weather(city: str) -> str:
        """Tell the weather of a city."""
        return f"{city}: sunny"

    agent = steersman.Agent(model="main", instructions="Be brief.", tools=[weather])

    async def main() -> dict[str, float]:
        async with steersman.open(home) as runtime:
            session = await runtime.start(agent)
            found = {"turn": await timed(lambda: session.ask("Rome?"))}
            before, began = memory(), time.perf_counter()
            for _ in range(SESSIONS):
                await runtime.start(agent)
            found["start"] = (time.perf_counter() - began) / SESSIONS
            found["memory"] = (memory() - before) / SESSIONS
            return found

    return asyncio.run(main())


def pydantic_ai(port: int) -> dict[str, float]:
    """The same turn with pydantic-ai, which keeps the conversation in a list of the program."""
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    at = OpenAIProvider(base_url=f"http://127.0.0.1:{port}/v1", api_key="x")
    agent: Any = Agent(OpenAIChatModel("bench", provider=at), instructions="Be brief.")

    def weather(city: str) -> str:
        """Tell the weather of a city."""
        return f"{city}: sunny"

    agent.tool_plain(weather)
    told: list[Any] = []

    async def turn() -> None:
        result = await agent.run("Rome?", message_history=told)
        told[:] = result.all_messages()

    return {"turn": asyncio.run(timed(turn))}


def openai_agents(port: int) -> dict[str, float]:
    """The same turn with openai-agents, which keeps the conversation in a session of SQLite."""
    import agents
    from openai import AsyncOpenAI

    agents.set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="x")

    def weather(city: str) -> str:
        """Tell the weather of a city."""
        return f"{city}: sunny"

    model: Any = agents.OpenAIChatCompletionsModel(model="bench", openai_client=client)
    agent: Any = agents.Agent(
        name="assistant",
        instructions="Be brief.",
        model=model,
        tools=[agents.function_tool(weather)],
    )

    async def main() -> float:
        with tempfile.TemporaryDirectory() as folder:
            session = agents.SQLiteSession("bench", f"{folder}/sessions.db")
            return await timed(lambda: agents.Runner.run(agent, "Rome?", session=session))

    return {"turn": asyncio.run(main())}


# Measuring ----------------------------------------------------------------------------------------


def measured(python: str, name: str, port: int, home: str = "") -> dict[str, float] | None:
    """Run a contender; none if it is not installed."""
    done = subprocess.run(
        [python, __file__, "--play", name, "--port", str(port), "--home", home],
        capture_output=True,
        text=True,
        env={**os.environ, "STEERSMAN_HOME": home},
        check=False,
    )
    if "ModuleNotFoundError" in done.stderr:
        return None
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(python: str) -> None:
    """Measure all, and print ratios to the baseline."""
    from table import head, row

    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    port = server.server_address[1]
    with tempfile.TemporaryDirectory() as home:
        Path(home, "config.toml").write_text(
            f'[models.main]\nprovider = "openai"\nbase_url = "http://127.0.0.1:{port}/v1"\n'
            'model = "bench"\n'
        )
        bare = measured(sys.executable, "requests", port)
        assert bare is not None
        ours = measured(sys.executable, "library", port, home)
        forgets = measured(sys.executable, "memory", port, home)
        others = {
            "pydantic-ai (list in memory)": measured(python, "pydantic_ai", port),
            "openai-agents (SQLite)": measured(python, "openai_agents", port),
        }
    server.shutdown()
    head(f"a turn with one tool of one's own, mean of {TURNS}")
    row("two bare requests", bare["turn"] * 1e3, unit="ms")
    for name, found in {
        "steersman (durable)": ours,
        "steersman (memory:)": forgets,
        **others,
    }.items():
        if found is None:
            print(f"  {name}: not installed")
            continue
        row(name, found["turn"] * 1e3, unit="ms")
        row("  beside the requests, in their time", found["turn"] / bare["turn"] - 1, unit="x")
    assert ours is not None
    head(f"{SESSIONS} sessions in one process")
    row("starting one", ours["start"] * 1e3, unit="ms")
    row("memory of one", ours["memory"] * 1024, unit="KiB")


def main() -> None:
    """Measure, or be measured."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--play", default="")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--home", default="")
    given = parser.parse_args()
    match given.play:
        case "":
            compare(given.python)
        case "library":
            print(json.dumps(library(given.port, given.home)))
        case "memory":
            print(json.dumps(library(given.port, "memory:")))
        case name:
            print(json.dumps(globals()[name](given.port)))


if __name__ == "__main__":
    main()
