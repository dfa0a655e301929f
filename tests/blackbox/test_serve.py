"""`steersman serve`: the sessions of a home over HTTP, in a program that outlives terminals."""

import json
import os
import re
import socket
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from support.driver import FROM_ELSEWHERE, WAIT, Gate, Place, wait_gone
from support.model_server import Door, Hang, Text, shell
from support.patience import seconds
from support.served import Follower, Served
from support.until import until

from steersman.workflows.home_place import URL

Start = Callable[..., Served]


def test_a_message_has_its_turn_and_its_receipt(place: Place, serve, served: Start) -> None:
    """The receipt is that of every interface; the same key again is the same message."""
    serve(Text("Hello."))
    web = served()
    session = web.begin()
    first = web.ask(
        "POST", f"sessions/{session}/messages", {"text": "hi"}, {"Idempotency-Key": "k1"}
    )
    assert (first.status, first.data["type"], first.data["as"]) == (202, "accepted", "turn")
    again = web.ask(
        "POST", f"sessions/{session}/messages", {"text": "hi"}, {"Idempotency-Key": "k1"}
    )
    assert again.data["id"] == first.data["id"]
    events = web.until(session, "turn_ended")
    assert events[0]["type"] == "session_started"
    assert [event["text"] for event in events if event["type"] == "accepted"] == ["hi"]
    (listed,) = web.ask("GET", "sessions").data["sessions"]
    assert (listed["id"], listed["folder"], listed["open"]) == (session, str(place.folder), "here")
    dump = web.ask("GET", f"sessions/{session}/inspect").data
    assert dump["conversation"][-1]["text"] == "Hello." if "conversation" in dump else dump["id"]
    then = web.ask("GET", f"sessions/{session}/inspect?at=1").data
    assert then["turns"] == {}


@pytest.mark.nightly
def test_the_queue_is_changed_by_number(place: Place, serve, served: Start, gate: Gate) -> None:
    """Texts and places change, messages leave, one joins the running turn."""
    serve(shell(gate.command), Text("Done."))
    web = served()
    session = web.begin()
    web.ask("POST", f"sessions/{session}/messages", {"text": "wait"})
    events = web.until(session, "question")
    question = events[-1]["id"]
    allowed = web.ask("POST", f"sessions/{session}/questions/{question}", {"choice": "allow"})
    assert allowed.status == 200, allowed
    gate.wait()
    for text in ("two", "three", "four"):
        web.ask("POST", f"sessions/{session}/messages", {"text": text, "as": "queue"})
    queue = f"sessions/{session}/queue"
    assert web.ask("PATCH", f"{queue}/3", {"text": "THREE"}).status == 200
    assert web.ask("PATCH", f"{queue}/4", {"position": 1}).status == 200
    assert web.ask("DELETE", f"{queue}/2").status == 200
    refused = web.ask("DELETE", f"{queue}/2")
    assert (refused.status, refused.headers["content-type"]) == (409, "application/problem+json")
    waiting = [
        (item["number"], item["text"])
        for item in web.ask("GET", queue).data["items"]
        if item["state"] == "pending"
    ]
    assert waiting == [(4, "four"), (3, "THREE")]
    assert web.ask("POST", f"{queue}/4/steer").status == 200
    assert web.ask("POST", f"sessions/{session}/stop").status == 200
    stopped = web.until(session, "turn_ended")
    assert stopped[-1]["status"] == "interrupted"


BAD: list[tuple[str, str, object, int]] = [
    ("POST", "sessions", {"folder": "/nowhere-at-all"}, 409),
    ("POST", "sessions", {}, 422),
    ("POST", "sessions", {"folder": ".", "colour": 1}, 422),
    ("GET", "sessions/zzz", None, 404),
    ("GET", "sessions/zzz/events", None, 404),
    ("POST", "sessions/SESSION/messages", {"text": ""}, 422),
    ("POST", "sessions/SESSION/messages", {"text": "hi", "as": "shout"}, 422),
    ("POST", "sessions/SESSION/messages", ["hi"], 422),
    ("POST", "sessions/SESSION/commands", {"name": "fly"}, 422),
    ("PATCH", "sessions/SESSION/queue/1", {}, 422),
    ("POST", "sessions/SESSION/questions/q9", {"choice": "allow"}, 409),
    ("POST", "sessions/SESSION/questions/q9", {"choice": ""}, 422),
    ("GET", "sessions/SESSION/inspect?at=nonsense", None, 409),
    ("GET", "sessions/SESSION/sequence?at=nonsense", None, 422),
    ("PUT", "sessions/SESSION/queue", None, 405),
    ("GET", "nothing", None, 404),
]


def test_a_bad_request_says_what_is_wrong(serve, served: Start) -> None:
    """It gets a problem document with a sentence, and the session goes on."""
    serve(Text("Hello."))
    web = served()
    session = web.begin()
    for method, path, body, status in BAD:
        answer = web.ask(method, path.replace("SESSION", session), body)
        kind = answer.headers["content-type"]
        assert (answer.status, kind) == (status, "application/problem+json"), (path, answer)
        assert answer.data["detail"], answer
    assert web.ask("GET", f"sessions/{session}").data["open"] == "here"


def test_the_interface_describes_itself(serve, served: Start) -> None:
    """`openapi.json` has what is answered: each path that it names is there, each reference too."""
    serve(Text("Hello."))
    web = served()
    described = web.ask("GET", "/openapi.json").data
    assert described["openapi"] == "3.1.0"
    text = json.dumps(described)
    assert '"items": false' not in text  # some generators of clients read schemas only
    for name in set(re.findall(r"#/components/schemas/(\w+)", text)):
        assert described["components"]["schemas"][name]
    web.token = ""
    for path, methods in described["paths"].items():
        for method, what in methods.items():
            assert what["summary"].endswith("."), path
            real = re.sub(r"{number}", "1", re.sub(r"{(session|question)}", "x", path))
            assert web.ask(method.upper(), real).status == 401, (method, path)


class Checked:
    """Sends requests, and holds each answer against what openapi.json says of it.

    `operations` are those that have not been asked yet.
    """

    def __init__(self, web: Served) -> None:
        self._web = web
        self._described = web.ask("GET", "/openapi.json").data
        self.operations = {
            (method.upper(), path)
            for path, methods in self._described["paths"].items()
            for method in methods
        }

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return the data of an answer that is as described."""
        answer = self._web.ask(method, path, body)
        place, _, words = path.partition("?")
        (known,) = [
            known
            for known, methods in self._described["paths"].items()
            if method.lower() in methods
            and re.fullmatch(re.sub(r"{\w+}", "[^/]+", known), f"/api/v1/{place}")
        ]
        operation = self._described["paths"][known][method.lower()]
        named = {
            parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "query"
        }
        assert {word.partition("=")[0] for word in words.split("&") if word} <= named
        responses = operation["responses"]
        said = responses.get(str(answer.status), responses["default"])
        kind = answer.headers["content-type"].partition(";")[0]
        schema = {**self._described, **said["content"][kind]["schema"]}
        Draft202012Validator(schema).validate(answer.data)
        if answer.status < 300:
            self.operations.discard((method, known))
        return answer.data


def test_every_operation_answers_as_described(serve, served: Start, gate: Gate) -> None:
    """What each one sends fits its schema in openapi.json; so does every event of the journal."""
    at = '[[schedule]]\nname = "news"\nat = "2999-01-01T07:00"\nsay = "What is new?"'
    serve(shell(gate.command), rest=at)
    web = served()
    api = Checked(web)
    folder = str(web.place.folder)
    session = str(api.ask("POST", "sessions", {"folder": folder})["id"])
    here = f"sessions/{session}"
    api.ask("POST", f"{here}/messages", {"text": "wait"})
    question = web.until(session, "question")[-1]["id"]
    api.ask("POST", f"{here}/questions/{question}", {"choice": "allow"})
    gate.wait()
    for text in ("two", "three", "four"):
        api.ask("POST", f"{here}/messages", {"text": text, "as": "queue"})
    api.ask("PUT", f"{here}/queue/2/edit", {"editor": "ann"})
    api.ask("DELETE", f"{here}/queue/2/edit", {"editor": "ann"})
    assert api.ask("PUT", f"{here}/queue/9/edit", {"editor": "ann"})["status"] == 409
    api.ask("PATCH", f"{here}/queue/2", {"text": "TWO"})
    api.ask("DELETE", f"{here}/queue/2")
    assert api.ask("DELETE", f"{here}/queue/2")["receipt"]["type"] == "result"
    api.ask("POST", f"{here}/queue/3/steer")
    for look in ("inspect", "inspect?at=3", "queue", "why?message=1", "sequence?at=0"):
        api.ask("GET", f"{here}/{look}")
    api.ask("POST", f"{here}/commands", {"name": "queue", "arguments": {}})
    api.ask("POST", f"{here}/messages", {"text": "/help"})
    api.ask("POST", f"{here}/stop")
    web.until(session, "turn_ended")
    api.ask("POST", f"{here}/queue/resume")
    newest = api.ask("GET", here)["seq"]
    assert len(api.ask("GET", f"{here}/events?after=0&upto={newest}")["events"]) > 20
    api.ask("GET", f"choices?folder={folder}")
    api.ask("GET", "push")
    browser = {"endpoint": "https://fcm.googleapis.com/send/one", "p256dh": "k", "auth": "a"}
    api.ask("PUT", "push", browser)
    api.ask("DELETE", "push", {"endpoint": browser["endpoint"]})
    for place in ("schedules", "machines", f"{here}/why"):
        api.ask("GET", place)
    others = [str(api.ask("POST", "sessions", {"folder": folder})["id"]) for _ in range(3)]
    api.ask("GET", f"{here}/diff?other={others[0]}")
    listed = list[str]()
    words = "limit=2"
    while words:
        page = api.ask("GET", f"sessions?{words}")
        listed += [row["id"] for row in page["sessions"]]
        words = page["next"] and f"limit=2&after={page['next']}"
    assert sorted(listed) == sorted([session, *others])
    assert len(api.ask("GET", "sessions?find=WAIT")["sessions"]) == 1
    assert api.ask("GET", "sessions?folder=/nowhere")["sessions"] == []
    assert api.ask("GET", "sessions?after=nonsense")["status"] == 422
    assert api.operations == set()


def test_a_stream_goes_on_after_a_power_cut(serve, served: Start) -> None:
    """Its numbers are those of the journal: nothing is missed and nothing told twice."""
    serve(Text("Hello."))
    web = served()
    session = web.begin()
    web.ask("POST", f"sessions/{session}/messages", {"text": "one"})
    seen = list[tuple[str, dict[str, object]]]()
    for name, event in web.events(session):
        seen.append((name, event))
        if name and any(past["type"] == "turn_ended" for _, past in seen):
            break
    last = int(seen[-1][0])
    web.kill()
    web = served()
    web.ask("POST", f"sessions/{session}/messages", {"text": "two"})
    after = web.until(session, "turn_ended", last)
    numbers = [event["seq"] for event in after if event["seq"] is not None]
    assert min(numbers) > last
    said = [event["text"] for event in after if event["type"] == "accepted"]
    assert said == ["two"]
    whole = web.until(session, "turn_ended")
    assert [event["text"] for event in whole if event["type"] == "accepted"] == ["one"]


@pytest.mark.nightly
def test_a_session_of_another_program_is_reached_too(place: Place, serve, served: Start) -> None:
    """Its events stream live, and what is said to it is said there, with the device's name."""
    serve(Text("Hello."))
    chat = place.chat()
    chat.completes("first")
    web = served()
    listed = web.ask("GET", f"sessions/{chat.session}").data
    assert listed["open"] == "elsewhere"
    said = web.ask("POST", f"sessions/{chat.session}/messages", {"text": "from afar"})
    assert said.status == 202, said
    accepted = chat.wait("accepted", text="from afar")
    assert accepted["user"].startswith("test")
    chat.wait("turn_ended")
    turns = web.until(chat.session, "turn_ended", after=accepted["seq"])
    assert "text" in {event["type"] for event in turns} or turns[-1]["seq"] > accepted["seq"]
    state = web.ask("GET", f"sessions/{chat.session}/inspect").data
    assert state["id"] == chat.session
    assert chat.close() == 0
    again = web.ask("POST", f"sessions/{chat.session}/messages", {"text": "taken up"})
    assert again.status == 202, again
    assert web.ask("GET", f"sessions/{chat.session}").data["open"] == "here"


@pytest.mark.parametrize("is_here", [True, False])
def test_who_joins_while_an_answer_streams_has_all_of_it(
    place: Place, serve, served: Start, is_here: bool
) -> None:
    """At whatever moment, wherever the session is open: what was streamed, then the rest, once."""
    door, words = Door(), " ".join(f"word{number}" for number in range(80))
    model = serve(Text(words, pause=0.01, door=door))
    web = served()
    chat = None if is_here else place.chat()
    session = web.begin() if chat is None else chat.session
    with closing(door), ThreadPoolExecutor(8) as pool:
        assert web.ask("POST", f"sessions/{session}/messages", {"text": "go"}).status == 202
        model.wait_requests(1)
        joining = [pool.submit(_streamed, web, session, Event()) for _ in range(3)]
        seen = Event()
        joining.append(pool.submit(_streamed, web, session, seen))
        assert seen.wait(seconds(WAIT))
        joining += [pool.submit(_streamed, web, session, Event()) for _ in range(3)]
        joined = Event()
        joining.append(pool.submit(_streamed, web, session, joined))
        assert joined.wait(seconds(WAIT))
        door.open()
        assert [reader.result() for reader in joining] == [words] * len(joining)
    if chat is not None:
        assert chat.close() == 0


def _streamed(web: Served, session: str, seen: Event) -> str:
    """Join a session; return the text that was streamed before the answer; `seen`: some of it came."""
    text = ""
    for _, event in web.events(session):
        if event["type"] == "answer":
            return text
        if event["type"] == "text":
            text = event["delta"] if event.get("so_far") else text + event["delta"]
            seen.set()
    raise AssertionError("the stream ended before the answer")


@pytest.mark.nightly
def test_a_session_of_another_machine_is_reached_too(
    place: Place, serve, served: Start, postgres_url: str
) -> None:
    """Its stream follows the journal, with whole answers; what is said goes through the mailbox."""
    place.environ[URL] = postgres_url
    serve(Text("Hello.", times=0))
    chat = place.chat()
    ended = chat.causes("first", "turn_ended")
    place.command = FROM_ELSEWHERE
    web = served()
    said = web.ask("POST", f"sessions/{chat.session}/messages", {"text": "from afar"})
    assert said.status == 202, said
    accepted = chat.wait("accepted", text="from afar")
    assert accepted["user"].startswith("test")
    turns = web.until(chat.session, "turn_ended", after=ended["seq"])
    assert [event["text"] for event in turns if event["type"] == "answer"] == ["Hello."]
    chat.send("second")
    later = web.until(chat.session, "turn_ended", after=turns[-1]["seq"])
    assert "second" in [event["text"] for event in later if event["type"] == "accepted"]


@pytest.mark.checks_data("serve status", "serve stop")
def test_a_home_is_served_once(place: Place, serve, served: Start) -> None:
    """A second program is refused by name; `status` shows the first, `stop` ends it."""
    serve(Text("Hello."))
    assert place.run("serve", "status").returncode == 1
    web = served()
    for options in ((), ("--foreground",)):
        ran = place.run("serve", *options)
        assert ran.returncode == 2, ran
        assert f"process {web.program.pid} serves this home already" in ran.stderr
    assert web.address in place.run("serve", "status").stdout
    session = web.begin()
    assert place.run("serve", "stop").returncode == 0
    assert wait_gone([web.program.pid]) == []
    assert place.stored(session)["state"] == "suspended"
    assert place.run("serve", "status").returncode == 1
    assert place.run("serve", "stop").returncode == 1


def test_it_runs_in_the_background(place: Place, serve) -> None:
    """The command returns with the address; the program outlives it, and ends on demand."""
    serve(Text("Hello."))
    ran = place.run("serve")
    assert (ran.returncode, ran.stderr) == (0, "")
    address = ran.stdout.strip().removeprefix("http://")
    host, port = address.split(":")
    socket.create_connection((host, int(port)), seconds(30)).close()
    assert place.run("serve", "stop").returncode == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), seconds(30))


@pytest.mark.nightly
def test_other_machines_are_served_with_encryption_only(place: Place, serve) -> None:
    """Without a certificate another address is refused, with what to do."""
    serve(Text("Hello."))
    ran = place.run("serve", "--foreground", "--host", "0.0.0.0")
    assert ran.returncode == 2
    assert "only with encryption" in ran.stderr
    assert "serve.certificate" in ran.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("port", ["99999", "-1"])
def test_a_port_that_cannot_be_is_a_usage_error(place: Place, port: str) -> None:
    """It is said before anything is opened, and names the option."""
    ran = place.run("serve", "--port", port)
    assert ran.returncode == 2
    assert "Invalid value for '--port'" in ran.stderr
    assert not (place.home / "state").exists()


def test_a_port_that_is_taken_is_named(place: Place, serve) -> None:
    """The program ends with a sentence, also in the background."""
    serve(Text("Hello."))
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        for options in ((), ("--foreground",)):
            ran = place.run("serve", "--port", port, *options)
            assert ran.returncode == 2, ran
            assert f"127.0.0.1:{port}" in ran.stderr, ran


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("[serve]\nport = 'x'", "serve.port"),
        ("[serve]\ncertificate = '/nowhere/a.pem'\nkey = '/nowhere/b.pem'", "/nowhere/a.pem"),
    ],
)
@pytest.mark.nightly
def test_a_wrong_configuration_is_said_alike(place: Place, serve, table: str, words: str) -> None:
    """In the background as in the foreground: the same exit code, and the same message once."""
    serve(Text("Hello."), rest=table)
    said = [place.run("serve", *options) for options in (("--foreground",), ())]
    assert [ran.returncode for ran in said] == [2, 2], said
    assert words in said[0].stderr
    assert said[0].stderr == said[1].stderr


@pytest.mark.checks_data("devices pair", "devices list", "devices revoke")
def test_devices_are_listed_and_shut_out(place: Place, serve, served: Start) -> None:
    """A revoked token is refused with the next request; the file holds no token."""
    serve(Text("Hello."))
    web = served()
    session = web.begin()
    assert web.ask("GET", "sessions").status == 200
    listed = place.data("devices", "list")["devices"]
    (name,) = (device["name"] for device in listed)
    assert web.token not in (place.home / "state" / "devices.json").read_text("utf-8")
    stream = web.events(session)
    next(stream)
    assert place.run("devices", "revoke", name).returncode == 0
    assert web.ask("GET", "sessions").status == 401
    for _ in stream:
        pass  # it ends by itself
    assert place.run("devices", "revoke", name).returncode == 2
    assert place.run("devices", "pair", "x", "--scope", "everything").returncode == 2


@pytest.mark.checks_data("serve install", "serve uninstall")
def test_a_unit_of_systemd_starts_it(place: Place) -> None:
    """The file names this interpreter and this home; systemd is told to start it, and to stop."""
    tools = place.home.parent / "bin"
    tools.mkdir()
    said = place.home / "said"
    systemctl = tools / "systemctl"
    systemctl.write_text(f'#!/bin/sh\necho "$*" >> "{said}"\n', "utf-8")
    systemctl.chmod(0o755)
    place.environ["PATH"] = f"{tools}:{place.environ['PATH']}"
    unit = place.home.parent / ".config" / "systemd" / "user" / "steersman.service"
    assert place.run("serve", "install").returncode == 0
    written = unit.read_text("utf-8")
    assert f'Environment=STEERSMAN_HOME="{place.home}"' in written
    assert f'ExecStart="{sys.executable}" -P -m steersman serve --foreground' in written
    assert said.read_text("utf-8") == "--user enable --now steersman.service\n"
    assert place.run("serve", "uninstall").returncode == 0
    assert not unit.exists()
    assert said.read_text("utf-8").endswith("--user disable --now steersman.service\n")
    assert place.run("serve", "uninstall").returncode == 1


@pytest.mark.checks_data("/detach")
def test_a_session_of_its_own_terminal_is_not_left_running(place: Place, serve) -> None:
    """`/detach` says what to do instead, and the chat goes on."""
    serve(Text("Hello."))
    chat = place.chat()
    refused = chat.ask("/detach")
    assert (refused["ok"], refused["data"]) == (False, {"reason": "no_server"})
    assert chat.session in refused["text"]
    chat.completes("hi")


JOB = """
[workflow]
name = "job"
[[step]]
id = "first"
run = ["sh", "-c", '''{first}''']
[[step]]
id = "second"
needs = ["first"]
run = ["sh", "-c", '''{second}''']
"""


def test_a_saved_queue_that_is_resumed_is_said_once(
    place: Place, serve, served: Start, at_keyboard
) -> None:
    """The message of a turn that a crash cut off begins a turn again: a terminal shows it once."""
    model = serve(Hang(times=1), Text("Done."))
    chat = place.chat()
    chat.causes("name the planets", "turn_started")  # the model is asked before that is on the disk
    model.wait_requests(1)
    chat.kill()
    served()
    terminal = at_keyboard("chat")
    terminal.wait("runs in `steersman serve`")
    terminal.type("/queue resume\r")
    terminal.wait("Done.")
    assert terminal.shown().count("user: name the planets") == 1


def finished_run(place: Place) -> dict[str, object]:
    """Wait until the newest run has left the server, and return what is stored of it."""
    until(lambda: place.stored()["state"] == "suspended", place.stored)
    return place.stored()


@pytest.mark.nightly
@pytest.mark.parametrize("how", ["/detach", "hang up"])
def test_a_run_goes_on_without_its_terminal(
    place: Place, serve, served: Start, at_keyboard, gate: Gate, how: str
) -> None:
    """It has its session in the server; leaving, or a closed window, stops nothing."""
    serve(Text("Hello."))
    web = served()
    text = JOB.format(first=gate.command, second="echo two > made.txt")
    (place.folder / "job.toml").write_text(text, "utf-8")
    terminal = at_keyboard("run", "job.toml")
    gate.wait()
    terminal.wait("is in `steersman serve`")
    if how == "hang up":
        terminal.hang_up()
    else:
        terminal.type("/detach\r")
        terminal.wait("goes on in `steersman serve`")
    terminal.process.wait(seconds(WAIT))
    (listed,) = web.ask("GET", "sessions").data["sessions"]
    assert (listed["workflow"], listed["open"]) == ("job", "here")
    gate.open()
    assert finished_run(place)["run"]["state"] == "succeeded"
    assert (place.folder / "made.txt").read_text("utf-8") == "two\n"


@pytest.mark.nightly
def test_a_run_in_the_server_is_stopped_and_continued_from_a_terminal(
    place: Place, serve, served: Start, at_keyboard, gate: Gate
) -> None:
    """Ctrl-C stops it as it stops one of this program, and shows what it has changed so far."""
    serve(Text("Hello."))
    served()
    text = JOB.format(first="echo one > one.txt", second=f"{gate.command}; echo two > two.txt")
    (place.folder / "job.toml").write_text(text, "utf-8")
    terminal = at_keyboard("run", "job.toml")
    gate.wait()
    terminal.type("\x03")
    terminal.wait("continues where it stopped")
    assert "one.txt" in terminal.shown()
    assert terminal.process.wait(seconds(WAIT)) == 130
    assert finished_run(place)["run"]["state"] == "interrupted"
    assert not (place.folder / "two.txt").exists()
    again = at_keyboard("run", "--resume", "last")
    gate.wait()
    gate.open()
    again.wait("succeeded")
    assert again.process.wait(seconds(WAIT)) == 0
    assert (place.folder / "two.txt").exists()
    assert finished_run(place)["run"]["state"] == "succeeded"


@pytest.mark.nightly
def test_a_server_that_dies_is_not_the_end_of_a_run(
    place: Place, serve, served: Start, at_keyboard, gate: Gate
) -> None:
    """The terminal says what became of it; the run is continued without a server."""
    serve(Text("Hello."))
    web = served()
    text = JOB.format(first="echo one >> one.txt", second=gate.command)
    (place.folder / "job.toml").write_text(text, "utf-8")
    terminal = at_keyboard("run", "job.toml")
    gate.wait()
    web.kill()
    terminal.wait("the program that ran it has ended")
    terminal.wait("` continues it")
    assert terminal.process.wait(seconds(WAIT)) == 1
    again = at_keyboard("run", "--resume", "last", "--again", "second")
    gate.wait()
    gate.open()
    assert again.process.wait(seconds(WAIT)) == 0
    assert (place.folder / "one.txt").read_text("utf-8") == "one\n"


CHOOSING = """
[workflow]
name = "choosing"
[[step]]
id = "paint"
ask = { text = "Which colour?", options = ["dark red", "blue"] }
[[step]]
id = "name"
needs = ["paint"]
ask = { text = "What is it called?", options = [] }
"""


@pytest.mark.nightly
def test_a_steps_question_takes_its_own_answers(place: Place, serve, served: Start) -> None:
    """By HTTP and by the control socket: an option of several words, then free text; nothing else."""
    serve(Text("Hello."))
    (place.folder / "choosing.toml").write_text(CHOOSING, "utf-8")
    web = served()
    run = place.job("choosing.toml")
    paint = run.wait("question")
    assert paint["options"] == ["dark red", "blue"]
    session = run.session
    place_of = f"sessions/{session}/questions"
    for wrong in ("allow", "red", "dark"):
        refused = web.ask("POST", f"{place_of}/{paint['id']}", {"choice": wrong})
        assert refused.status == 409, refused
        assert "there are: dark red, blue" in refused.data["detail"]
    said = web.ask("POST", f"sessions/{session}/messages", {"text": "red"})
    expected = (409, "the message was not accepted: a step asks something", "question_open")
    assert (said.status, said.data["detail"], said.data["receipt"]["reason"]) == expected
    given = web.ask("POST", f"{place_of}/{paint['id']}", {"choice": "dark red"})
    assert (given.status, given.data["data"]["choice"]) == (200, "dark red")
    name = run.wait("question")
    assert name["options"] == []
    web.pair("speaker", "speak")
    answer = f"/answer {name['id']} the red one"
    said = web.ask("POST", f"sessions/{session}/messages", {"text": answer})
    assert said.status == 403, said
    answered = over_socket(place, "answer", session=session, id=name["id"], choice="the 1st, red")
    assert answered["ok"], answered
    run.wait("run_ended", status="succeeded")
    assert run.close() == 0
    steps = place.stored(session)["run"]["steps"]
    assert "dark red" in str(steps["paint"])
    assert "the 1st, red" in str(steps["name"])


def over_socket(place: Place, method: str, **params: object) -> dict[str, object]:
    """Ask the program that has a session open over its control socket; return the result."""
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    found = list[dict[str, object]]()
    folder = os.open(place.home / "state" / "sockets", os.O_RDONLY)
    for name in os.listdir(folder):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(seconds(30))
            connection.connect(f"/proc/self/fd/{folder}/{name}")  # the path may be too long
            connection.sendall(json.dumps(request).encode() + b"\n")
            found.append(json.loads(connection.makefile().readline()))
    os.close(folder)
    (result,) = (answer["result"] for answer in found if "result" in answer)
    assert isinstance(result, dict), found
    return result


def test_a_calls_question_takes_only_its_answers(place: Place, serve, served: Start) -> None:
    """A word that is no answer is refused, not taken for a no; the question stays open."""
    serve(shell("touch made"), Text("Done."))
    web = served()
    session = web.begin()
    web.ask("POST", f"sessions/{session}/messages", {"text": "make it"})
    question = web.until(session, "question")[-1]["id"]
    place_of = f"sessions/{session}/questions/{question}"
    refused = web.ask("POST", place_of, {"choice": "perhaps"})
    assert refused.status == 409, refused
    assert "there are: allow, always, deny" in refused.data["detail"]
    assert web.ask("POST", place_of, {"choice": "Allow"}).status == 200
    web.until(session, "turn_ended")
    assert (place.folder / "made").exists()


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_the_newest_entry_is_told_whole(
    place: Place, serve, served: Start, gate: Gate, is_elsewhere: bool
) -> None:
    """A reader learns that it has all of an entry before another one comes, wherever the session is."""
    serve(shell(gate.command, times=1), Text("Done."))
    chat = place.chat("--yes") if is_elsewhere else None
    web = served()
    session = chat.session if chat is not None else web.begin()
    web.ask("POST", f"sessions/{session}/messages", {"text": "wait"})
    if chat is None:
        question = web.until(session, "question")[-1]["id"]
        web.ask("POST", f"sessions/{session}/questions/{question}", {"choice": "allow"})
    gate.wait()
    follower = Follower(web.address, web.token, session)
    assert follower.wait(lambda: bool(follower.numbered))
    gate.open()
    assert follower.wait(lambda: follower.ended > 0), follower.numbered[-2:]
    follower.stop()


@pytest.mark.nightly
@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_a_message_that_is_edited_does_not_start(
    place: Place, serve, served: Start, gate: Gate, is_elsewhere: bool
) -> None:
    """Until the edit is sent or left, or its editor was not heard of for half a minute."""
    work = shell(gate.command, times=1)
    serve(work, Text("Done."))
    chat = place.chat("--yes") if is_elsewhere else None
    web = served()
    session = chat.session if chat is not None else web.begin()
    queue = f"sessions/{session}/queue"
    web.ask("POST", f"sessions/{session}/messages", {"text": "wait"})
    if chat is None:
        question = web.until(session, "question")[-1]["id"]
        web.ask("POST", f"sessions/{session}/questions/{question}", {"choice": "allow"})
    gate.wait()
    for text in ("two", "three", "four"):
        web.ask("POST", f"sessions/{session}/messages", {"text": text, "as": "queue"})

    def edit(number: int, editor: str, method: str = "PUT") -> int:
        return web.ask(method, f"{queue}/{number}/edit", {"editor": editor}).status

    def edited() -> list[int]:
        items = web.ask("GET", queue).data["items"]
        return [item["number"] for item in items if item.get("edited")]

    assert [edit(2, "a"), edit(2, "a"), edit(3, "b")] == [200, 200, 200]
    assert [edit(2, "b"), edit(1, "c"), edit(9, "c")] == [409, 409, 409]
    assert place.run("inspect", session).stdout.count("being edited") == 1
    assert edited() == [2]  # the editor `b` wanted another message instead, and has none now
    assert edit(3, "b") == 200
    gate.open()

    def began() -> list[str]:
        told = web.page(session)
        texts = {event["id"]: event["text"] for event in told if event["type"] == "accepted"}
        return [texts[event["item"]] for event in told if event["type"] == "turn_started"]

    def wait_for(texts: list[str], *editing: tuple[int, str]) -> None:
        """Wait for these turns, while the editors go on to say that they edit."""
        follower = Follower(web.address, web.token, session)
        until = time.monotonic() + seconds(90)
        while not follower.wait(lambda: follower.ended >= len(texts), 1):
            assert time.monotonic() < until, began()
            assert [edit(*one) for one in editing] == [200] * len(editing)
        follower.stop()
        assert began() == texts

    wait_for(["wait", "four"], (2, "a"), (3, "b"))
    assert edited() == [2, 3]
    said = {"text": "two, better"}
    by = ("", "b", "a")
    told = [web.ask("PATCH", f"{queue}/2", {**said, "editor": who}).status for who in by]
    assert told == [409, 409, 200]
    wait_for(["wait", "four", "two"], (3, "b"))
    assert edited() == [3]
    assert edit(3, "b") == 200
    assert edit(3, "b", "DELETE") == 200
    wait_for(["wait", "four", "two", "three"])
    texts = [item["said"]["text"] for item in place.stored(session)["queue"]["items"].values()]
    assert "two, better" in texts


@pytest.mark.nightly
def test_a_message_whose_editor_is_gone_starts(serve, served: Start, gate: Gate) -> None:
    """Half a minute after the client said for the last time that it is edited."""
    serve(shell(gate.command, times=1), Text("Done."))
    web = served()
    session = web.begin()
    web.ask("POST", f"sessions/{session}/messages", {"text": "wait"})
    question = web.until(session, "question")[-1]["id"]
    web.ask("POST", f"sessions/{session}/questions/{question}", {"choice": "allow"})
    gate.wait()
    web.ask("POST", f"sessions/{session}/messages", {"text": "two", "as": "queue"})
    path = f"sessions/{session}/queue/2/edit"
    assert web.ask("PUT", path, {"editor": "gone"}).status == 200
    gate.open()
    first = web.until(session, "turn_ended")[-1]["seq"]
    (item,) = web.ask("GET", f"sessions/{session}/queue").data["items"]
    assert (item["text"], item["state"], item["edited"]) == ("two", "pending", True)
    ended = web.until(session, "turn_ended", first)[-1]
    assert ended["status"] == "completed"


# What a platform asks -----------------------------------------------------------------------------


def test_probes_and_metrics(place: Place, serve, served: Start) -> None:
    """Anybody learns that it lives and is ready, by any name; a device that may look sees the counts."""
    serve(Text("Hello."))
    web = served()
    session = web.begin()
    web.ask("POST", f"sessions/{session}/messages", {"text": "hi"})
    web.until(session, "turn_ended")
    token, web.token = web.token, ""
    for path in ("/healthz", "/readyz"):
        answer = web.ask("GET", path, headers={"Host": "10.1.2.3:8200"})
        assert (answer.status, answer.data) == (200, "ok\n")
    assert web.ask("GET", "/metrics").status == 401
    web.token = token
    answer = web.ask("GET", "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = [line for line in answer.data.splitlines() if not line.startswith("#")]
    counts = {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}
    assert counts['steersman_sessions{state="idle",open="yes"}'] == 1
    assert counts['steersman_turns_total{status="completed"}'] == 1
    assert counts['steersman_turns_total{status="failed"}'] == 0
    assert counts['steersman_model_calls_total{outcome="answered"}'] == 1
    assert counts['steersman_model_tokens_total{direction="input"}'] > 0
    assert counts["steersman_messages_waiting"] == counts["steersman_questions_open"] == 0
    commits = counts["steersman_journal_commit_seconds_count"]
    assert commits >= 3
    assert 0 < counts["steersman_journal_commit_seconds_sum"] < seconds(5) * commits
    before = web.ask("GET", f"sessions/{session}").data["seq"]
    web.ask("POST", f"sessions/{session}/messages", {"text": "again"})
    web.until(session, "turn_ended", before)
    assert 'steersman_turns_total{status="completed"} 2' in web.ask("GET", "/metrics").data


@pytest.mark.nightly
def test_the_log_is_json_if_that_is_wanted(place: Place, serve) -> None:
    """Each line is an object: where it serves, and the life of its sessions without a word of them."""
    serve(Text("My answer."))
    assert place.run("serve", "--log-format", "json").returncode == 0
    told = place.data("serve", "status")
    web = Served.at(place, told["address"])
    session = web.begin()
    web.ask("POST", f"sessions/{session}/messages", {"text": "my question"})
    web.until(session, "turn_ended")
    assert place.run("serve", "stop").returncode == 0
    text = (place.home / "state" / "serve.log").read_text("utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    assert {(line["level"], line["logger"]) for line in lines} == {("info", "serve")}
    assert lines[0]["message"] == f"serving at {told['address']}"
    assert [(line["message"], line["session"]) for line in lines[1:]] == [
        (kind, session) for kind in ("session_started", "turn_ended", "session_suspended")
    ]
    assert "my question" not in text
    assert "My answer" not in text
    gone = place.data("serve", "status", code=1)
    assert gone == {"serving": False, "address": None}
