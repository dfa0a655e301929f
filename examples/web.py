"""A web application, with nothing but the standard library: a page that asks, and shows the answer.

Run it as `python web.py [PORT] [HOME]` and open the page that it prints. It serves
`POST /messages` (`{"text": …, "how": …}` answers the receipt), `POST /stop`, and `GET /events?after=N`,
which are server-sent events: `N` is the number of the last one that the browser has.

It listens on loopback and asks for no password: whoever reaches it may speak to the agent.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urlsplit

import steersman

PAGE = """<!doctype html><title>Ask</title>
<form><input name=text autofocus><button>Ask</button></form><pre></pre>
<script>
  const shown = document.querySelector("pre"), form = document.querySelector("form");
  new EventSource("/events?after=0").onmessage = message => {
    const event = JSON.parse(message.data);
    if (event.type == "accepted") shown.append("\\n> " + event.text + "\\n");
    if (event.type == "text") shown.append(event.delta);
  };
  form.onsubmit = submit => {
    submit.preventDefault();
    fetch("/messages", {method: "POST", body: JSON.stringify({text: form.text.value})});
    form.reset();
  };
</script>"""


@steersman.tool
def opening_hours(day: str) -> str:
    """Tell when the shop is open on a day of the week."""
    return "closed" if day.lower() == "sunday" else "9 to 18"


AGENT = steersman.Agent(
    "shop", instructions="Answer questions about the shop.", tools=[opening_hours]
)


class Application:
    """Serves one session over HTTP/1.1, a request a connection."""

    def __init__(self, session: steersman.SessionHandle) -> None:
        self.session = session

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        try:
            method, target, _ = (await reader.readline()).decode("latin-1").split()
            length = 0
            while (line := (await reader.readline()).decode("latin-1").strip().lower()) != "":
                if line.startswith("content-length:"):
                    length = int(line.partition(":")[2])
            body = await reader.readexactly(length)
            async for piece in self.answer(method, target, body):
                writer.write(piece)
                await writer.drain()
        except (ValueError, ConnectionError, asyncio.IncompleteReadError):
            pass  # no request, or nobody there any more
        finally:
            writer.close()

    async def answer(self, method: str, target: str, body: bytes) -> AsyncIterator[bytes]:
        """Yield the response to a request, in pieces."""
        url = urlsplit(target)
        try:
            match method, url.path:
                case "GET", "/":
                    yield response("200 OK", PAGE.encode(), "text/html; charset=utf-8")
                case "POST", "/messages":
                    asked = json.loads(body)
                    receipt = await self.session.say(asked["text"], asked.get("how"))
                    told = {"id": receipt.id, "as": receipt.taken_as, "number": receipt.number}
                    yield response("200 OK", json.dumps(told).encode())
                case "POST", "/stop":
                    yield response("200 OK", json.dumps(await self.session.stop()).encode())
                case "GET", "/events":
                    yield b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
                    after = int(parse_qs(url.query).get("after", ["0"])[0])
                    async for event in self.session.events(after):
                        number = f"id: {event.seq}\n" if event.seq else ""
                        yield f"{number}data: {json.dumps(event.data)}\n\n".encode()
                case _:
                    yield response("404 Not Found", b"{}")
        except (KeyError, ValueError):
            yield response("400 Bad Request", b'{"error": "no JSON with a text"}')
        except steersman.SteersmanError as error:
            told = {"error": error.message, "hint": error.hint}
            yield response("409 Conflict", json.dumps(told).encode())


def response(status: str, body: bytes, kind: str = "application/json") -> bytes:
    """Return a whole response."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def main(port: str = "8000", home: str | None = None) -> None:
    """Serve until the program is ended."""
    async with steersman.open(home, unattended=True) as runtime:
        application = Application(await runtime.start(AGENT))
        server = await asyncio.start_server(application.serve, "127.0.0.1", int(port))
        print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
        try:
            await asyncio.Event().wait()  # `serve_forever` would wait for the readers of events
        finally:
            server.close()


if __name__ == "__main__":
    try:
        asyncio.run(main(*sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
