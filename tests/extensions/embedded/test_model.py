"""The embedded model: a real one, in a real child process."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from support.coroutines import run
from support.patience import seconds
from support.readable import readable
from support.until import looked_until

from steersman.extensions.embedded.model import PROVIDER, EmbeddedModel, fit
from steersman.extensions.embedded.server import load, threads
from steersman.machines import protocol as m
from steersman.machines.conversation import ChatMessage, ToolSchema
from steersman.machines.errors import ModelError
from steersman.machines.verdict import Verdict, read_verdict
from steersman.ports.judging import JudgeSeat, ask_judge
from steersman.ports.models.dialect import JsonDialect
from steersman.ports.models.model import AnswerListener, ModelRequest
from steersman.ports.models.provider import ModelConfig
from steersman.ports.models.weights import entry_named, weights_in

PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = (
    ToolSchema(name="read", description="Read a file.", parameters=PATH),
    ToolSchema(name="list", description="List a folder.", parameters=PATH),
)
SMALL = "qwen2.5-coder-0.5b"
INSTRUCTIONS = "You are an agent. " + "Be brief, and say what you have done. " * 40
LONG = " ".join(f"line {number} of a long log file" for number in range(600))
STORY = "Count from one to five hundred in words."


@pytest.fixture
def embedded(tmp_path) -> Callable[[Path | None], EmbeddedModel]:
    """Makes a model from weights; its prompts are kept for this test only."""

    def make(weights: Path | None) -> EmbeddedModel:
        return EmbeddedModel(lambda: weights, model=SMALL, prompts=tmp_path / "prompts")

    return make


def asked(text: str, system: str = "Be brief.", most: int | None = None) -> ModelRequest:
    """A request with one message."""
    messages = (ChatMessage(role="user", text=text),)
    return ModelRequest(system=system, messages=messages, max_tokens=most)


@pytest.mark.parametrize(
    ("cores", "load", "number"),
    [(2, 0.1, 2), (2, 0.8, 1), (2, 9.0, 1), (1, 0.0, 1), (8, 2.4, 6), (64, 1.0, 8), (0.5, 0, 1)],
)
def test_threads_are_those_that_have_a_core(cores, load, number):
    """Cores that others keep busy are left out; one thread is the least, eight are the most."""
    assert threads(cores, load) == number


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="needs Linux")
def test_what_has_ended_keeps_no_core(monkeypatch):
    """The average of the last minute counts only as far as the cores are still busy."""
    monkeypatch.setattr("os.getloadavg", lambda: (1000.0, 1000.0, 1000.0))
    assert load() <= (os.cpu_count() or 1) + 1
    monkeypatch.setattr("os.getloadavg", lambda: (0.2, 0.2, 0.2))
    assert load() == 0.2


def test_missing_weights_say_how_to_get_them(asker, embedded, tmp_path):
    """Without weights the error names the command that fetches them."""
    pytest.importorskip("xllamacpp")
    absent = tmp_path / "none.gguf"
    for path in (None, absent):
        with pytest.raises(ModelError, match="are not here") as caught:
            asker(embedded(path), "Hi")
        assert caught.value.hint.startswith("run `steersman models fetch qwen2.5-coder-0.5b`; ")


def test_weights_that_come_later_are_found(asker, tmp_path):
    """A model that was made before its weights were fetched uses them from the next call on.

    A file that is no model gives the child's last words.
    """
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
    with pytest.raises(ModelError, match="could not be loaded") as caught:
        asker(model, "Hi")
    assert "remove that file" in caught.value.hint


@pytest.mark.nightly
def test_hello_gets_an_answer(asker, embedded, weights):
    """A greeting is answered, though tools are offered, and the same each time."""
    request = ModelRequest(
        system="You are an agent.", messages=(ChatMessage(role="user", text="Hello"),), tools=TOOLS
    )
    first, second = asker(JsonDialect(embedded(weights)), request, request)
    assert first.text or first.tool_calls
    assert (first.text, first.tool_calls) == (second.text, second.tool_calls)
    assert first.usage.input > 10


@pytest.mark.nightly
async def test_cancel_while_loading_and_after(asker, embedded, weights):
    """A cancelled first answer does not stop the loading, and the next answer is given."""
    model = embedded(weights)
    task = asyncio.create_task(asker.ask(model, "Hello"))
    await asyncio.wait([task], timeout=0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    answer = await asker.ask(model, "Hello")
    await model.aclose()
    assert answer.text


@asynccontextmanager
async def closing(*models: EmbeddedModel) -> AsyncGenerator[None, None]:
    """Close models in the end."""
    try:
        yield
    finally:
        for model in models:
            await model.aclose()


def computed(pid: int) -> float:
    """The seconds that a process has computed."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def computed_after_a_stop(
    model: EmbeddedModel, request: ModelRequest, is_read: bool
) -> float:
    """Stop an answer while the prompt or, if that `is_read`, the answer is worked on.

    Return the seconds that the child computed from then on.
    """
    wrote = asyncio.Event()
    listener = AnswerListener(on_text=lambda text: wrote.set())
    begun = computed(model.pid)
    task = asyncio.create_task(model.answer(request, listener))
    if is_read:
        await wrote.wait()
    else:
        await looked_until(lambda: computed(model.pid) >= begun + 0.5)  # amid the prompt
        assert not wrote.is_set()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    first = last = computed(model.pid)
    quiet = time.monotonic()

    def is_quiet() -> bool:
        nonlocal last, quiet
        if computed(model.pid) > last:
            last, quiet = computed(model.pid), time.monotonic()
        return time.monotonic() >= quiet + 1.0

    await looked_until(is_quiet)
    return last - first


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the time is read from /proc")
@pytest.mark.parametrize("is_read", [False, True], ids=["reading", "writing"])
def test_a_stop_ends_the_computing(asker, embedded, weights, is_read):
    """The child computes at most a batch more, and the next answer comes."""

    async def stop() -> float:
        model = embedded(weights)
        async with closing(model):
            await asker.ask(model, "Hello")
            request = asked(STORY if is_read else LONG)
            found = await computed_after_a_stop(model, request, is_read)
            assert (await asker.ask(model, "Hello")).text
            return found

    assert run(stop()) < 2.0  # to read the whole takes half a minute


@pytest.mark.nightly
async def test_sessions_share_one_process(asker, embedded, weights):
    """Both get answers, a stop of one is none of the other, and the last one ends the process."""
    one, other = embedded(weights), embedded(weights)
    async with closing(one, other):
        answers = await asyncio.gather(asker.ask(one, "Hello"), asker.ask(other, "Hello"))
        assert answers[0].text == answers[1].text
        assert one.pid == other.pid != 0
        stopped = asyncio.create_task(asker.ask(one, STORY))
        waiting = asyncio.create_task(asker.ask(other, "Hello"))
        await asyncio.wait([waiting], timeout=0.5)
        stopped.cancel()
        assert (await waiting).text == answers[0].text
        await one.aclose()
        assert one.pid == 0
        assert (await asker.ask(other, "Hello")).text == answers[0].text
        pid = other.pid
        await other.aclose()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.nightly
async def test_a_session_that_waits_for_another_is_told(asker, embedded, weights):
    """The wait is reported; a stop of the one that waits leaves the other alone."""
    one, other = embedded(weights), embedded(weights)
    async with closing(one, other):
        await asker.ask(other, "Hello")
        first = asyncio.create_task(one.answer(asked(STORY, most=400), AnswerListener()))
        await asyncio.wait([first], timeout=0.1)
        told = asyncio.Event()
        listener = AnswerListener(
            on_notice=lambda text: told.set() if "another session" in text else None
        )
        second = asyncio.create_task(other.answer(asked("Hello"), listener))
        await told.wait()
        second.cancel()
        assert (await first).usage.output > 100


@pytest.mark.nightly
def test_instructions_are_read_once(asker, embedded, weights, tmp_path):
    """A second process takes their state from a file; a file that is damaged is made again."""
    request = asked("Hello", INSTRUCTIONS)
    [first] = asker(embedded(weights), request)
    [kept] = (tmp_path / "prompts").iterdir()
    written = kept.stat().st_ino
    [second] = asker(embedded(weights), request)
    assert second.text == first.text
    assert second.usage.cache_read > 300
    assert kept.stat().st_ino == written
    kept.write_bytes(b"damaged")
    [third] = asker(embedded(weights), request)
    assert third.text == first.text
    assert kept.stat().st_size > 100_000


@pytest.mark.nightly
def test_a_conversation_outlives_a_call_with_other_instructions(asker, embedded, weights):
    """A judge in between, also one whose state comes from a file, costs nothing of what was read."""
    judge = asked("Hello", INSTRUCTIONS.replace("agent", "judge"))
    asker(embedded(weights), judge)
    talk = asked("Hello. " * 200, INSTRUCTIONS)
    *_, last = asker(embedded(weights), talk, judge, talk)
    assert last.usage.cache_read > 500


@pytest.mark.nightly
def test_only_few_states_are_kept(asker, embedded, weights, tmp_path):
    """The oldest state goes when there are too many."""
    folder = tmp_path / "prompts"
    folder.mkdir()
    for number in range(9):
        (folder / f"{number}.state").touch()
        os.utime(folder / f"{number}.state", (number, number))
    asker(embedded(weights), asked("Hello", INSTRUCTIONS))
    kept = {path.name for path in folder.iterdir()}
    assert len(kept) == 8
    assert "0.state" not in kept
    assert "1.state" not in kept


@pytest.mark.nightly
async def test_what_takes_long_to_read_is_announced(asker, embedded, weights):
    """One line says how many tokens are read, and not one for each batch."""
    model = embedded(weights)
    async with closing(model):
        told = asyncio.Event()
        notices: list[str] = []

        def note(text: str) -> None:
            notices.append(text)
            if text.startswith("reading"):
                told.set()

        task = asyncio.create_task(model.answer(asked(LONG), AnswerListener(on_notice=note)))
        await told.wait()
        await asyncio.wait([task], timeout=1.0)
        task.cancel()
        assert sum(text.startswith("reading") for text in notices) == 1


PARENT = """
    import asyncio, sys
    from pathlib import Path
    from steersman.machines.conversation import ChatMessage
    from steersman.extensions.embedded.model import EmbeddedModel
    from steersman.ports.models.model import AnswerListener, ModelRequest

    async def main():
        prompts = Path({prompts!r})
        model = EmbeddedModel(lambda: Path({weights!r}), model="small", prompts=prompts)
        request = ModelRequest(
            system="", messages=(ChatMessage(role="user", text="Hello"),), max_tokens=2
        )
        await model.answer(request, AnswerListener())
        print(model.pid, flush=True)
        await asyncio.sleep(600)

    asyncio.run(main())
"""


def test_child_dies_with_a_killed_parent(weights, tmp_path):
    """After kill -9 of the parent the serving process is gone, too."""
    code = textwrap.dedent(PARENT.format(weights=str(weights), prompts=str(tmp_path)))
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
        ended = readable(pidfd, timeout=seconds(20))
    finally:
        os.close(pidfd)
    assert ended


@pytest.mark.nightly
def test_each_verdict_of_the_embedded_model_can_be_read(embedded, weights):
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
                    m.AskJudge(
                        goal="g1",
                        turn="t1",
                        text="greeting.txt says hello",
                        said=(ChatMessage(role="assistant", text=answer),),
                        timeout=seconds(100.0),
                    ),
                )
                for answer in answers
            ]
        finally:
            await model.aclose()

    for answered in asyncio.run(ask_all()):
        assert not answered.fault
        assert isinstance(read_verdict(answered.text), Verdict), answered.text


def test_newest_messages_fit_the_window():
    """Old messages go, the newest stays, and the first that is kept is a user message."""
    talk = tuple(
        ChatMessage(role="user" if number % 2 == 0 else "assistant", text=f"{number} " + "x" * 300)
        for number in range(41)
    )
    kept = fit(ModelRequest(system="system", messages=talk, max_tokens=300), 1000).messages
    assert kept == talk[-len(kept) :]
    assert kept[0].role == "user"
    assert sum(len(message.text) for message in kept) < (1000 - 300) * 3


def test_long_message_keeps_head_and_tail():
    """A message that is too long alone is cut in the middle, and says so."""
    message = ChatMessage(role="user", text="begin " + "x" * 100_000 + " end")
    [kept] = fit(ModelRequest(system="", messages=(message,), max_tokens=300), 1000).messages
    assert kept.text.startswith("begin ")
    assert kept.text.endswith(" end")
    assert "characters left out" in kept.text
    assert len(kept.text) <= 2100
