"""The embedded model: a real one, in a real child process."""

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from support.patience import seconds

from steersman.machines.conversation import ChatMessage, ToolSchema
from steersman.machines.errors import ModelError
from steersman.machines.goal_messages import AskJudge
from steersman.machines.verdict import Verdict, read_verdict
from steersman.ports.judging import JudgeSeat, ask_judge
from steersman.ports.models.embedded.model import PROVIDER, EmbeddedModel
from steersman.ports.models.embedded.weights import entry_named, weights_in
from steersman.ports.models.model import ModelRequest
from steersman.ports.models.provider import ModelConfig

PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = (
    ToolSchema(name="read", description="Read a file.", parameters=PATH),
    ToolSchema(name="list", description="List a folder.", parameters=PATH),
)


SMALL = "qwen2.5-coder-0.5b"


def embedded(weights: Path | None) -> EmbeddedModel:
    """A model from these weights."""
    return EmbeddedModel(lambda: weights, model=SMALL)


def test_missing_weights_say_how_to_get_them(asker, tmp_path):
    """Without weights the error names the command that fetches them."""
    pytest.importorskip("xllamacpp")
    absent = tmp_path / "none.gguf"
    for path in (None, absent):
        with pytest.raises(ModelError, match="are not here") as caught:
            asker(embedded(path), "Hi")
        assert caught.value.hint == "run `steersman models fetch qwen2.5-coder-0.5b`"


def test_weights_that_come_later_are_found(asker, tmp_path):
    """A model that was made before its weights were fetched uses them from the next call on."""
    pytest.importorskip("xllamacpp")
    entry = entry_named(SMALL)
    config = ModelConfig(name="local", provider="local", model=entry.name)
    model = PROVIDER.build(config, tmp_path, {})
    with pytest.raises(ModelError, match="are not here"):
        asker(model, "Hi")
    path = weights_in(entry, tmp_path)
    path.parent.mkdir()
    path.touch()
    os.truncate(path, entry.size)  # as long as the real ones, but no model
    with pytest.raises(ModelError, match="could not be loaded"):
        asker(model, "Hi")


def test_damaged_weights_are_said(asker, tmp_path):
    """A file that is no model gives the child's last words."""
    pytest.importorskip("xllamacpp")
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"no model")
    with pytest.raises(ModelError, match="could not be loaded") as caught:
        asker(embedded(path), "Hi")
    assert "remove that file" in caught.value.hint


@pytest.mark.nightly
def test_hello_gets_an_answer(asker, weights):
    """A greeting is answered in words, though tools are offered, and loading is announced once."""
    request = ModelRequest(
        system="You are an agent.", messages=(ChatMessage(role="user", text="Hello"),), tools=TOOLS
    )
    first, second = asker(embedded(weights), request, request)
    assert "hello" in first.text.lower()
    assert first.tool_calls == ()
    assert first.text == second.text
    assert first.usage.input > 10
    assert len(asker.pieces) > 5
    assert asker.notices == ["loading the embedded model…"]


@pytest.mark.nightly
def test_file_is_really_read_and_told(asker, weights):
    """It asks for the file that the message names, and then says something from it."""
    asked = ChatMessage(role="user", text="read notes.txt and tell me what it says")

    async def turn() -> str:
        model = embedded(weights)
        try:
            first = await asker.ask(
                model,
                ModelRequest(system="Agent.", messages=(asked,), tools=TOOLS, call_prefix="t1.c"),
            )
            [call] = first.tool_calls
            assert (call.tool, call.arguments) == ("read", {"path": "notes.txt"})
            talk = (
                asked,
                ChatMessage(role="assistant", text=first.text, tool_calls=first.tool_calls),
                ChatMessage(
                    role="tool",
                    text="Buy milk and eggs.\nCall Anna about the boat.",
                    call=call.call,
                ),
            )
            last = await asker.ask(
                model, ModelRequest(system="Agent.", messages=talk, tools=TOOLS, call_prefix="t1.c")
            )
            assert last.tool_calls == ()
            return last.text
        finally:
            await model.aclose()

    said = asker.run(turn())
    assert "milk" in said
    assert "Anna" in said


@pytest.mark.nightly
def test_cancel_while_loading_and_after(asker, weights):
    """A cancelled first answer does not stop the loading, and the next answer is given."""

    async def cancel_then_ask() -> str:
        model = embedded(weights)
        task = asyncio.create_task(asker.ask(model, "Hello"))
        await asyncio.wait([task], timeout=0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        answer = await asker.ask(model, "Hello")
        await model.aclose()
        return answer.text

    assert asker.run(cancel_then_ask())


PARENT = """
    import asyncio, sys
    from pathlib import Path
    from steersman.machines.conversation import ChatMessage
    from steersman.ports.models.embedded.model import EmbeddedModel
    from steersman.ports.models.model import AnswerListener, ModelRequest

    async def main():
        model = EmbeddedModel(lambda: Path({weights!r}), model="small")
        request = ModelRequest(system="", messages=(ChatMessage(role="user", text="Hello"),))
        await model.answer(request, AnswerListener())
        print(model._child._process.pid, flush=True)
        await asyncio.sleep(600)

    asyncio.run(main())
"""


def test_child_dies_with_a_killed_parent(weights):
    """After kill -9 of the parent the serving process is gone, too."""
    code = textwrap.dedent(PARENT.format(weights=str(weights)))
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        child = int(parent.stdout.readline())
        pidfd = os.pidfd_open(child) if hasattr(os, "pidfd_open") else None
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
    if pidfd is None:
        pytest.skip("this platform cannot wait for a process that is not our child")
    try:
        ended, _, _ = select.select([pidfd], [], [], seconds(20))
    finally:
        os.close(pidfd)
    assert ended


@pytest.mark.nightly
def test_each_verdict_of_the_embedded_model_can_be_read(weights):
    """Held to the schema, so small a model gives a verdict each time, if not a wise one."""
    answers = (
        "It is all there.",
        "I have not begun.",
        "I wait for the build.",
        "It can't be done.",
    )

    async def ask_all():
        model = embedded(weights)
        seat = JudgeSeat(model=model)
        try:
            return [
                await ask_judge(
                    seat,
                    AskJudge(
                        goal="g1",
                        turn="t1",
                        text="greeting.txt says hello",
                        said=(ChatMessage(role="assistant", text=one),),
                        timeout=seconds(120.0),
                    ),
                )
                for one in answers
            ]
        finally:
            await model.aclose()

    for answered in asyncio.run(ask_all()):
        assert not answered.fault
        assert isinstance(read_verdict(answered.text), Verdict), answered.text


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_a_goal_with_a_gate_is_achieved_on_the_embedded_model(weights, tmp_path):
    """From `/goal` to achieved with nothing but the embedded model; the gate decides."""
    folder, home = tmp_path / "project", tmp_path / "home"
    folder.mkdir()
    cache = home / "cache" / "models"
    cache.mkdir(parents=True)
    (cache / f"{SMALL}.gguf").symlink_to(weights)
    goal = "/goal --gate 'grep -qi hello greeting.txt' --turns 8 write hello to greeting.txt"
    ran = subprocess.run(
        [sys.executable, "-m", "steersman", "chat", "--json", "--yes", "--model", SMALL],
        input=f"{goal}\n",
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "STEERSMAN_HOME": str(home)},
        timeout=seconds(280),
    )
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    goals = [one for one in events if one["type"] == "goal"]
    assert goals[-1]["state"] == "achieved", ran.stdout[-3000:] + ran.stderr[-1000:]
    assert "hello" in (folder / "greeting.txt").read_text().lower()
