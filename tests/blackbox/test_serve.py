"""`steersman serve`: a session over HTTP on loopback, for clients with the token."""

import http.client
import json
import signal
import socket
import struct
import subprocess
import threading
from pathlib import Path

import pytest
from support.driver import Place
from support.model_server import Text
from support.patience import seconds

from steersman.cli import serve as module
from steersman.cli.serve import CONNECTIONS

Door = dict[str, str]


def started(place: Place) -> tuple["subprocess.Popen[str]", str, Door]:
    """Start serving; return the process, its address, and the header that lets one in."""
    program = place.start("serve")
    assert program.stdout is not None
    address = program.stdout.readline().split("http://")[1].strip()
    token = program.stdout.readline().split()[1]
    return program, address, {"Authorization": f"Bearer {token}"}


def ended(program: "subprocess.Popen[str]") -> str:
    """End a process that serves; return what it said on standard error."""
    program.send_signal(signal.SIGTERM)
    try:
        return program.communicate(timeout=seconds(30))[1]
    finally:
        program.kill()


def first_event(address: str, door: Door, last: str = "") -> tuple[str, int]:
    """Return the id and the journal's number of the first event of a stream."""
    stream = http.client.HTTPConnection(address, timeout=seconds(30))
    stream.request("GET", "/events", headers=door | ({"Last-Event-ID": last} if last else {}))
    answer = stream.getresponse()
    name = answer.readline().decode().removeprefix("id: ").strip()
    event = json.loads(answer.readline().removeprefix(b"data: "))
    stream.close()
    return name, event["seq"]


@pytest.mark.slow
def test_an_id_of_an_earlier_run_silences_no_stream(place: Place, serve) -> None:
    """A stream goes on after an id of this run, and begins at the first event after any other."""
    serve(Text("Hello."))
    program, address, door = started(place)
    first, _ = first_event(address, door)
    second, _ = first_event(address, door, first)
    assert int(second.rpartition("-")[2]) == int(first.rpartition("-")[2]) + 1
    assert ended(program) == ""
    program, address, door = started(place)
    try:
        for old in (f"{first.rpartition('-')[0]}-5000", "5000", "nonsense"):
            name, seq = first_event(address, door, old)
            assert (name.rpartition("-")[2], seq) == ("1", 1)
            assert name.rpartition("-")[0] != first.rpartition("-")[0]
    finally:
        assert ended(program) == ""


@pytest.mark.slow
def test_clients_that_hang_up_or_say_nothing_leave_nothing(place: Place, serve) -> None:
    """No traceback; of many half-open connections few are kept, and others are served meanwhile."""
    serve(Text("Hello."))
    program, address, door = started(place)
    host, port = address.split(":")
    threads = Path(f"/proc/{program.pid}/task")
    try:
        for _ in range(20):
            with socket.create_connection((host, int(port))) as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.sendall(b"GET /inspect HTTP/1.1\r\nHost: x\r\n\r\n")
        silent = [socket.create_connection((host, int(port))) for _ in range(3 * CONNECTIONS)]
        silent[-1].sendall(b"GET / HTT")
        assert first_event(address, door)
        assert len(list(threads.iterdir())) < CONNECTIONS + 20
        closed = silent[0].recv(1)
        assert closed == b""
        for client in silent:
            client.close()
        assert first_event(address, door)
    finally:
        assert ended(program) == ""


def test_a_request_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection without a whole request is closed after a time, whatever trickles in."""
    monkeypatch.setattr(module, "HEADER_SECONDS", 0.0)
    server = module.Server(("127.0.0.1", 0), module.BaseHTTPRequestHandler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        with socket.create_connection(server.server_address[:2]) as client:
            client.settimeout(seconds(30))
            client.sendall(b"GET / HTT")
            assert client.recv(1) == b""
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_session_over_http_needs_the_token(place: Place, serve) -> None:
    """Requests without the token, from another page or host are refused; others run a turn."""
    serve(Text("Hello."))
    program, address, door = started(place)

    def ask(method: str, path: str, headers: dict[str, str], body: str = "") -> int:
        one = http.client.HTTPConnection(address, timeout=seconds(30))
        one.request(method, path, body, headers)
        status = one.getresponse().status
        one.close()
        return status

    try:
        assert ask("GET", "/inspect", {}) == 401
        assert ask("GET", "/inspect", {"Authorization": "Bearer wrong"}) == 401
        assert ask("POST", "/messages", {}, "hi") == 401
        assert ask("GET", "/inspect", door | {"Host": "evil.example"}) == 403
        assert ask("GET", "/inspect", door | {"Origin": "http://evil.example"}) == 403
        assert ask("GET", "/inspect", door | {"Origin": f"http://{address}"}) == 200
        assert ask("GET", "/nothing", door) == 404
        assert ask("POST", "/messages", door, "hi") == 202
        stream = http.client.HTTPConnection(address, timeout=seconds(30))
        stream.request("GET", "/events", headers=door)
        answer, kinds = stream.getresponse(), list[str]()
        while "turn_ended" not in kinds:
            line = answer.readline()
            if line.startswith(b"data: "):
                kinds.append(json.loads(line[6:])["type"])
        assert kinds[0] == "session_started"
        assert "text" in kinds
        stream.close()
        program.send_signal(signal.SIGTERM)
        _, diagnostics = program.communicate(timeout=seconds(30))
        assert program.returncode == 143
        assert diagnostics == ""
    finally:
        program.kill()
        program.communicate()


def test_only_loopback_is_served(place: Place, serve) -> None:
    """Any other address is refused, since nothing is encrypted."""
    serve(Text("Hello."))
    ran = place.run("serve", "--host", "0.0.0.0")
    assert ran.returncode == 2
    assert "only this machine is served" in ran.stderr


@pytest.mark.parametrize("port", ["99999", "-1"])
def test_a_port_that_cannot_be_is_a_usage_error(place: Place, port: str) -> None:
    """It is said before a session is opened, which names the option."""
    ran = place.run("serve", "--port", port)
    assert ran.returncode == 2
    assert "Invalid value for '--port'" in ran.stderr
    assert not (place.home / "state").exists()
