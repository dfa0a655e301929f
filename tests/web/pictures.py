"""Takes the pictures of the page that docs/serving.md shows; run as `python -m web.pictures` in tests/.

Each view at the width of a phone and of a desk, from one session with everything in it.
"""

import tempfile
from contextlib import ExitStack
from pathlib import Path

from support.driver import Gate, Place
from support.model_server import ModelServer, Text, Tools
from support.served import Served

from .browser import Browser, Driver
from .conftest import code_for

TARGET = Path(__file__).resolve().parents[2] / "docs" / "pictures" / "page"
WIDTHS = {390: 844, 1440: 900}
ANSWER = """\
Three schemas are left:

| file | fields |
|---|--:|
| `user.ts` | 12 |
| `order.ts` | 31 |

```ts
export const User = z.object({ name: z.string().min(1) });
```

- [x] the parser
- [ ] the docs
"""
SCHEDULE = """
[[schedule]]
name = "news"
cron = "0 7 * * *"
say = "What is new?"
"""


def shell(command: str) -> dict[str, object]:
    """A wish to run a command."""
    return {"tool": "shell", "arguments": {"command": command}}


def take(stage: ExitStack, root: Path) -> None:
    """Play the session, and take every picture."""
    place = Place(root)
    stage.callback(place.close)
    gate = Gate(place.folder)
    stage.callback(gate.close)
    (place.folder / "notes.txt").write_text("parser\nserializer\n", "utf-8")
    child = {"task": "count the fields", "name": "counter", "background": True}
    server = ModelServer(
        [
            Text(ANSWER, match="What is left", times=1),
            Tools(
                [
                    {"tool": "read", "arguments": {"path": "notes.txt"}},
                    {"tool": "delegate", "arguments": child},
                    shell("git log --oneline \u202e# gnp.exe <script>alert(1)</script>"),
                ],
                text="I'll look at the schemas **first**, then change them one by one.",
                match="Move all schemas",
                times=1,
            ),
            Tools([shell(gate.command)], match="count the fields", times=1),
            Text("Done."),
        ]
    )
    stage.callback(server.close)
    place.configure(server.base_url)
    with (place.home / "config.toml").open("a", encoding="utf-8") as config:
        config.write(SCHEDULE)
    web = Served(place)
    stage.callback(web.close)
    web.pair("desk")
    driver = Driver()
    stage.callback(driver.close)
    session = web.begin()
    ask(web, session, "commands", {"name": "rename", "arguments": {"called": "Schemas to zod"}})
    ask(web, session, "messages", {"text": "What is left to do?"})
    web.until(session, "turn_ended")
    ask(web, session, "commands", {"name": "goal", "arguments": {"text": "all schemas are zod"}})
    ask(web, session, "messages", {"text": "Move all schemas to zod"})
    one = Browser(driver)
    stage.callback(one.close)
    one.go(f"http://{web.address}/#pair=no-such-code")
    shoot(one, "pairing")
    one.go(f"http://{web.address}/#pair={code_for(place, 'phone')}")
    one.wait("document.querySelector('.sessions')")
    one.go(f"http://{web.address}/#/s/{session}")
    one.wait("document.querySelectorAll('.question').length > 0")
    for text in ("then the docs, all of them", "run the tests", "prefer the streaming parser"):
        ask(web, session, "messages", {"text": text, "as": "queue"})
    one.wait_text("streaming parser", ".queue")
    shoot(one, "conversation")
    one.resize(390, WIDTHS[390])
    one.click(".strip")
    one.wait("document.querySelector('.panel').getBoundingClientRect().right <= innerWidth")
    shoot(one, "queue", 390)
    one.click(".panel-close button")
    one.resize(1440, WIDTHS[1440])
    one.run("document.querySelector('.said .icon-button').click()")
    one.wait("document.querySelector('dialog')")
    shoot(one, "why")
    one.go(f"http://{web.address}/#/s/{session}/inside")
    one.wait("document.querySelector('.sequence')")
    shoot(one, "inside")
    one.go(f"http://{web.address}/#/")
    one.wait_text("news", "body")
    shoot(one, "sessions")


def ask(web: Served, session: str, path: str, body: dict[str, object]) -> None:
    """Send a request about the session."""
    answer = web.ask("POST", f"sessions/{session}/{path}", body)
    assert answer.status in (200, 202), answer


def shoot(one: Browser, name: str, *widths: int) -> None:
    """Write what is seen, at each width."""
    for width in widths or WIDTHS:
        one.resize(width, WIDTHS[width])
        one.run("return new Promise((done) => requestAnimationFrame(() => setTimeout(done, 300)))")
        one.shoot(TARGET / f"{name}-{width}.png")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name, ExitStack() as everything:
        take(everything, Path(name) / "steersman")
