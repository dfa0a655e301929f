"""A batch job: an agent reads each text of a folder, and files a form about it.

Run it as `python batch.py FOLDER [HOME]`. Results are lines of JSON in `FOLDER/forms.jsonl`. Started
again it goes on with the texts that have none yet. Four sessions work at a time.
"""

import asyncio
import json
import sys
from pathlib import Path

import steersman

AT_A_TIME = 4


def make_agent(text: str, forms: list[dict[str, object]]) -> steersman.Agent:
    """Return an agent whose only tool files a form about `text` into `forms`."""

    @steersman.tool
    def file_form(title: str, topics: list[str], is_urgent: bool = False) -> str:
        """File the form about the text.

        Args:
            title: a title of at most eight words
            topics: what the text is about, a word each
            is_urgent: whether somebody has to act today
        """
        if len(title.split()) > 8:
            raise steersman.ToolError("the title has more than eight words")
        forms.append({"title": title, "topics": topics, "is_urgent": is_urgent})
        return "filed"

    return steersman.Agent(
        "clerk", instructions="Read the text, and file its form.", tools=[file_form], max_steps=5
    )


async def form_of(runtime: steersman.Home, path: Path) -> dict[str, object]:
    """Have a session of its own read a text, and return its form."""
    forms: list[dict[str, object]] = []
    text = path.read_text("utf-8")
    session = await runtime.start(make_agent(text, forms), folder=path.parent)
    outcome = await session.ask(text)
    await session.finalize()
    if outcome.status == "done" and forms:
        return {"file": path.name, **forms[-1], "tokens": outcome.usage.tokens}
    return {"file": path.name, "error": outcome.reason or "no form was filed"}


async def main(folder: str, home: str | None = None) -> int:
    """File a form for each text that has none; return how many failed."""
    results = Path(folder, "forms.jsonl")
    lines = results.read_text("utf-8").splitlines() if results.exists() else []
    done = {form["file"] for form in map(json.loads, lines) if "error" not in form}
    todo = [path for path in sorted(Path(folder).glob("*.txt")) if path.name not in done]
    room, failed = asyncio.Semaphore(AT_A_TIME), 0

    async with steersman.open(home, unattended=True) as runtime:

        async def work(path: Path) -> None:
            nonlocal failed
            async with room:
                form = await form_of(runtime, path)
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(form) + "\n")
            failed += "error" in form
            print(form["file"], form.get("title") or form.get("error"), flush=True)

        async with asyncio.TaskGroup() as tasks:
            for path in todo:
                tasks.create_task(work(path))
    return failed


if __name__ == "__main__":
    sys.exit(min(asyncio.run(main(*sys.argv[1:])), 1))
