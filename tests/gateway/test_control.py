"""The control socket: its permissions, its answers, and that no client holds up a session."""

import json
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from gateway.conftest import Begin
from support.patience import seconds

from steersman.gateway.client import SessionClient
from steersman.gateway.control import LINE_LIMIT, UNREAD_LIMIT, Requests
from steersman.gateway.events.contract import Event
from steersman.gateway.host.host import Host
from steersman.gateway.reach import SessionReach
from steersman.gateway.remote import ControlConnection
from steersman.gateway.remote_session import RemoteSession
from steersman.journal.folder import PrivateFolder
from steersman.machines import protocol as m
from steersman.machines.errors import UnknownSession

WAIT = 20.0


def socket_of(host: Host) -> Path:
    """Where a host listens."""
    (found,) = (host.paths.state / "sockets").glob("*.sock")
    return found


@contextmanager
def connected(conversation: SessionClient) -> Iterator[socket.socket]:
    """Give a connection to the socket of the host that has a session."""
    path = socket_of(conversation.host)
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(seconds(WAIT))
        with closing(PrivateFolder.open(path.parent, create=False)) as folder:
            client.connect(folder.address(path.name))
        yield client


@contextmanager
def talking(conversation: SessionClient) -> Iterator[Callable[[bytes], dict[str, Any]]]:
    """Give a way to send one raw line and read one answer."""
    with connected(conversation) as client, client.makefile("rb") as answers:

        def talk(line: bytes) -> dict[str, Any]:
            client.sendall(line + b"\n")
            answer: dict[str, Any] = json.loads(answers.readline())
            return answer

        yield talk


def remote_of(conversation: SessionClient) -> RemoteSession:
    """Connect as another process would."""
    host = conversation.host
    owner = host.store.owner(conversation.session)
    assert owner is not None
    return SessionReach(host.paths, os.environ, host.store).remote(conversation.session, owner)


@pytest.mark.parametrize(
    ("line", "code", "text"),
    [
        (b"nonsense", -32600, "not a request"),
        (b"[1, 2]", -32600, "not an object"),
        (b"\xff\xfe", -32600, "not a request"),
        (b"[" * 5_000, -32600, "not a request: values are nested more than 64 deep"),
        (b'{"id": 1}', -32600, "not a request: 'method'"),
        (b'{"id": 1, "method": "fly"}', -32600, "no method `fly`"),
        (rb'{"id": 1, "method": "\ud800"}', -32600, "no method `\ud800`"),
        (b'{"id": 1, "method": "say", "params": []}', -32600, "not a request"),
        (b'{"id": 1, "method": "say", "params": 5}', -32600, "not an object"),
        (b'{"id": 1, "method": "queue", "params": {"session": "nope"}}', -32001, "`nope`"),
        (b'{"id": 1, "method": "subscribe", "params": {"session": "nope"}}', -32001, "`nope`"),
    ],
)
def test_senseless_requests(conversation: SessionClient, line: bytes, code: int, text: str) -> None:
    """Each line that is no request is answered with why, and the next one is served."""
    with talking(conversation) as talk:
        error = talk(line)["error"]
        assert (error["code"], text in error["message"]) == (code, True), error
        assert talk(b'{"id": 2, "method": "sessions"}')["result"] == [conversation.session]


@pytest.mark.parametrize(
    "error", [TypeError("x"), RuntimeError("x"), OSError("x"), AssertionError()]
)
def test_a_request_is_answered_whatever_fails(
    conversation: SessionClient, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """A mistake of ours is an answer with the request's id, without the trace; the next one is served."""
    with monkeypatch.context() as planted, talking(conversation) as talk:

        async def fail(*_: object) -> None:
            raise error

        planted.setattr(Requests, "call", fail)
        answer = talk(b'{"id": 7, "method": "sessions"}')
        assert (answer["id"], answer["error"]["code"]) == (7, -32603)
        assert answer["error"]["message"] == "a mistake in steersman"
        planted.undo()
        assert talk(b'{"id": 8, "method": "sessions"}')["result"] == [conversation.session]


def test_a_line_without_end_is_cut_off(conversation: SessionClient) -> None:
    """More than the limit in one line is refused, and that client is gone; others are served."""
    with connected(conversation) as client:
        block = b"x" * 65536
        with suppress(OSError):  # it was cut off while we were still at it
            for _ in range(2 * LINE_LIMIT // len(block) + 1):
                client.sendall(block)
    with talking(conversation) as talk:
        assert "result" in talk(b'{"id": 2, "method": "sessions"}')


def test_a_client_that_never_reads_is_cut_off(conversation: SessionClient) -> None:
    """A subscriber that reads nothing is dropped when its buffer is full; the session goes on."""
    number = UNREAD_LIMIT // 1_000_000 + 6
    with connected(conversation) as client:
        params = json.dumps({"session": conversation.session})
        client.sendall(f'{{"id": 1, "method": "subscribe", "params": {params}}}\n'.encode())
        with client.makefile("rb") as heard:
            assert b"ok" in heard.readline()
            for _ in range(number):
                conversation.publisher.notice("x" * 1_000_000)
            other = remote_of(conversation)
            assert other.call("queue")["items"] == []
            other.close()
            try:
                read = len(heard.read())  # ends, for the connection has
            except ConnectionResetError:
                read = 0
    assert read < number * 1_000_000


def test_a_hundred_clients_at_once(begin: Begin) -> None:
    """What a hundred clients say at the same time is all taken in, once each, and acknowledged."""
    host = begin("[auto_queue]\nmax_queue_size = 200")
    conversation = host.begin(host.paths.config.parent / "project")
    receipts: list[dict[str, Any]] = []

    def say(n: int) -> None:
        remote = remote_of(conversation)
        receipts.append(remote.call("say", text=f"message {n}", **{"as": "queue"}))
        remote.close()

    threads = [threading.Thread(target=say, args=(n,)) for n in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds(WAIT))
    assert {receipt["type"] for receipt in receipts} == {"accepted"}
    assert {receipt["text"] for receipt in receipts} == {f"message {n}" for n in range(100)}
    assert len({receipt["id"] for receipt in receipts}) == 100


def test_a_command_is_answered_with_its_result(conversation: SessionClient) -> None:
    """Slash commands said from elsewhere go through the one registry."""
    remote = remote_of(conversation)
    result = remote.call("say", text="/queue list", client_id="mine")
    assert (result["type"], result["ok"], result["client_id"]) == ("result", True, "mine")
    assert result["data"] == {"session": conversation.session, "state": "open", "items": []}
    remote.close()


@pytest.mark.parametrize("number", ["[]", "{}", '"x"', "true", "1.5", "Infinity"])
def test_only_a_number_names_a_message(conversation: SessionClient, number: str) -> None:
    """Whatever else stands there is no request, for `edit` and for the items of `run`."""
    with talking(conversation) as talk:
        for method, more in (
            ("edit", f'"number": {number}'),
            ("run", f'"again": [["a", {number}]]'),
        ):
            params = f'{{"session": "{conversation.session}", {more}}}'
            answer = talk(f'{{"id": 1, "method": "{method}", "params": {params}}}'.encode())
            assert answer["error"]["message"] == "not a request: not a whole number"


def test_a_conversation_is_not_continued_as_a_run(conversation: SessionClient) -> None:
    """A request to continue a session that is no run is refused in words."""
    with talking(conversation) as talk:
        params = {"session": conversation.session, "again": [["a", 0]]}
        error = talk(json.dumps({"id": 1, "method": "run", "params": params}).encode())["error"]
        assert error["message"].startswith(f"session `{conversation.session}` is no run")
        assert talk(b'{"id": 2, "method": "sessions"}')["result"] == [conversation.session]


def test_an_edit_ends_with_its_client(conversation: SessionClient) -> None:
    """A message that a client edits is marked, until the client says so or hangs up."""
    items = (m.ImportedItem(said=m.Said(text="one")), m.ImportedItem(said=m.Said(text="two")))
    assert conversation.ask(m.QueueImport(items=items))["ok"]
    is_over = threading.Event()

    def hear(event: Event) -> None:
        if event["type"] == "queue" and not any(item.get("edited") for item in event["items"]):
            is_over.set()

    remote = remote_of(conversation)
    for number in (1, 2):
        remote.call("edit", number=number)
        marked = [item["number"] for item in conversation.queue()["items"] if item.get("edited")]
        assert marked == [number]
    conversation.host.event_bus.subscribe(hear)
    remote.close()
    assert is_over.wait(seconds(WAIT))


def test_sockets_of_the_dead_are_removed(begin: Begin) -> None:
    """A socket without a listener is deleted when the next process listens."""
    host = begin()
    folder = host.paths.state / "sockets"
    folder.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(folder / "n1-dead.sock"))
    live = socket.socket(socket.AF_UNIX)
    live.bind(str(folder / "n2-live.sock"))
    live.listen()
    with live:
        host.begin(host.paths.config.parent / "project")
        names = {path.name for path in folder.iterdir()}
        assert names == {"n2-live.sock", f"{host.runtime.node}.sock"}
        assert (folder / f"{host.runtime.node}.sock").stat().st_mode & 0o777 == 0o600
        host.close()
    assert {path.name for path in folder.iterdir()} == {"n2-live.sock"}


def test_an_owner_that_has_ended_is_not_called_silent() -> None:
    """Also where a request is the first to notice."""
    ours, theirs = socket.socketpair()
    theirs.close()
    remote = ControlConnection("s1", ours)
    with pytest.raises(UnknownSession, match="the session's owner has ended"):
        remote.request("queue", {})
    remote.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_another_user_gets_nothing(conversation: SessionClient, tmp_path: Path) -> None:
    """Another user is refused by the folder's mode and, if the folder is open, by the peer's id."""
    path = socket_of(conversation.host)
    code = (
        "import socket, sys\n"
        "client = socket.socket(socket.AF_UNIX)\n"
        "try:\n"
        f"    client.connect({path.name!r})\n"
        '    client.sendall(b\'{"id": 1, "method": "sessions"}\\n\')\n'
        "    print('got', client.recv(1000))\n"
        "except OSError as error:\n"
        "    print(type(error).__name__)\n"
    )
    other = ["setpriv", "--reuid", "65534", "--clear-groups", "/usr/bin/env", "python3", "-c", code]

    def attempt() -> str:
        done = subprocess.run(
            other, capture_output=True, text=True, timeout=seconds(WAIT), cwd=path.parent
        )
        return done.stdout.strip() or done.stderr

    assert attempt() == "PermissionError"
    for folder in [path, *path.parents]:
        if folder == Path("/tmp"):
            break
        folder.chmod(0o777)
    assert attempt() in ("got b''", "ConnectionResetError", "BrokenPipeError")
