"""`steersman serve`: a session over HTTP on loopback, for clients with the token."""

import http.client
import json
import signal

import pytest
from support.driver import Place
from support.model_server import Text
from support.patience import seconds


def test_a_session_over_http_needs_the_token(place: Place, serve) -> None:
    """Requests without the token, from another page or host are refused; others run a turn."""
    serve(Text("Hello."))
    program = place.start("serve")
    assert program.stdout is not None
    address = program.stdout.readline().split("http://")[1].strip()
    token = program.stdout.readline().split()[1]
    door = {"Authorization": f"Bearer {token}"}

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
