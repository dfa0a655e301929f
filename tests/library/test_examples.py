"""The programs of examples/, each as a process of its own with a scripted model."""

import ast
import http.client
import json
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from support.driver import Place, finish
from support.patience import seconds

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PIPE = subprocess.PIPE


@pytest.fixture
def place(tmp_path: Path) -> Generator[Place]:
    """A home and a folder; nothing that was started in it is left."""
    here = Place(tmp_path)
    yield here
    here.close()


def script(place: Place, text: str) -> None:
    """Let a scripted model be the only one of the home."""
    (place.home / "answers.toml").write_text(text, "utf-8")
    (place.home / "config.toml").write_text(
        f'[models.main]\nprovider = "scripted"\nscript = "{place.home / "answers.toml"}"\n'
        '[agents.assistant]\nmodel = "main"\n[agents.bot]\nmodel = "main"\n'
        '[agents.clerk]\nmodel = "main"\n[agents.shop]\nmodel = "main"\n',
        "utf-8",
    )


@contextmanager
def start(place: Place, name: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """Start an example; a test that fails does not wait for its end."""
    command = (sys.executable, str(EXAMPLES / name), *arguments)
    environ = {**place.environ, "PYTHONFAULTHANDLER": "1"}
    with subprocess.Popen(
        command,
        cwd=place.folder,
        env=environ,
        text=True,
        stdin=PIPE,
        stdout=PIPE,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # ignored in the background
    ) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


def test_examples_import_the_library_and_nothing_else() -> None:
    """Only `steersman`, `steersman.testing` and the standard library."""
    found = sorted(EXAMPLES.glob("*.py"))
    assert [path.name for path in found] == ["batch.py", "bot.py", "web.py"]
    for path in found:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = ["." * node.level + (node.module or "")]
            for name in names:
                is_ours = name in ("steersman", "steersman.testing")
                assert is_ours or name.partition(".")[0] in sys.stdlib_module_names, name


BOT = """
[[answer]]
match = "roll"
[[answer.tool_calls]]
tool = "roll"
arguments = { sides = 1 }
[[answer]]
match = "roll"
text = "You rolled a 1."
[[answer]]
match = "out of order"
error = "the model is out of order"
[[answer]]
text = "Hello."
"""


@pytest.mark.nightly
def test_the_bot_answers_a_room_and_goes_on_after_a_restart(place: Place) -> None:
    """Each person gets an answer, a failure is told, and the session is the same again."""
    script(place, BOT)
    with start(place, "bot.py") as bot:
        said = finish(bot, "ann: roll, please\n").stdout.splitlines()
    assert sorted(said) == ["bot: (roll {'sides': 1})", "bot: ann: You rolled a 1."]
    with start(place, "bot.py") as bot:
        assert finish(bot, "bo: are you there?\n").stdout == "bot: bo: Hello.\n"
    with start(place, "bot.py") as bot:
        said = finish(bot, "ann: out of order\n").stdout.splitlines()
    assert said == ["bot: ann: that went wrong: the model is out of order"]
    sessions = json.loads(place.run("sessions", "list", "--json").stdout)["sessions"]
    assert [session["agent"] for session in sessions] == ["bot"]
    told = place.run("sessions", "show", "last").stdout
    assert "ann" in told
    assert "bo" in told


BATCH = """
[[answer]]
match = "invoice"
[[answer.tool_calls]]
tool = "file_form"
arguments = { title = "one two three four five six seven eight nine", topics = [] }
[[answer]]
match = "invoice"
[[answer.tool_calls]]
tool = "file_form"
arguments = { title = "An invoice", topics = ["money"], is_urgent = true }
[[answer]]
match = "invoice"
text = "Filed."
[[answer]]
text = "I would rather not."
"""


def test_the_batch_job_files_forms_and_goes_on_where_it_stopped(place: Place) -> None:
    """A form that is refused is filed again; what failed is tried again at the next start."""
    script(place, BATCH)
    texts = place.folder / "texts"
    texts.mkdir()
    for number in range(6):
        (texts / f"{number}.txt").write_text(f"An invoice, number {number}")
    (texts / "poem.txt").write_text("A poem")
    with start(place, "batch.py", str(texts)) as batch:
        ran = finish(batch)
    assert ran.returncode == 1
    assert "poem.txt no form was filed" in ran.stdout.splitlines()
    forms = [json.loads(line) for line in (texts / "forms.jsonl").read_text().splitlines()]
    urgent = sorted(form["file"] for form in forms if form.get("is_urgent"))
    assert urgent == [f"{number}.txt" for number in range(6)]
    assert all(form["title"] == "An invoice" for form in forms if "error" not in form)
    with start(place, "batch.py", str(texts)) as batch:
        assert finish(batch).stdout == "poem.txt no form was filed\n"


WEB = """
[[answer]]
match = "Sunday"
[[answer.tool_calls]]
tool = "opening_hours"
arguments = { day = "Sunday" }
[[answer]]
match = "Sunday"
text = "We are closed on Sundays."
[[answer]]
text = "Hello."
"""


def request(port: int, method: str, path: str, body: str = "") -> tuple[int, bytes]:
    """Make a request and return status and body."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=seconds(30))) as connection:
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, answer.read()


def test_the_web_application_serves_a_page_messages_and_events(place: Place) -> None:
    """Events come as they happen; what makes no sense is answered with its reason."""
    script(place, WEB)
    with start(place, "web.py", "0") as web:
        assert web.stdout is not None
        port = int(web.stdout.readline().rpartition(":")[2])
        status, page = request(port, "GET", "/")
        assert (status, b"EventSource" in page) == (200, True)
        events = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds(30))
        events.request("GET", "/events?after=0")
        stream = events.getresponse()
        assert stream.getheader("content-type") == "text/event-stream"
        assert stream.readline() == b"id: 1\n"  # it reads, so that nothing escapes it from now on
        status, told = request(port, "POST", "/messages", '{"text": "Open on Sunday?"}')
        assert (status, json.loads(told)["as"]) == (200, "turn")
        text, kind = "", ""
        while kind != "turn_ended":
            line = stream.readline().decode()
            if line.startswith("data: "):
                event = json.loads(line.removeprefix("data: "))
                kind = event["type"]
                text += event["delta"] if kind == "text" else ""
        assert text == "We are closed on Sundays."
        assert request(port, "POST", "/stop")[0] == 200
        assert request(port, "POST", "/messages", "no JSON")[0] == 400
        status, told = request(port, "POST", "/messages", '{"text": " "}')
        assert (status, json.loads(told)["hint"]) == (409, "there is nothing in the message")
        assert request(port, "GET", "/nowhere")[0] == 404
        stream.close()
        events.close()
        web.send_signal(2)
        try:
            assert web.wait(seconds(30)) == 130
        except subprocess.TimeoutExpired:
            web.send_signal(signal.SIGABRT)  # it says where it stands
            raise
