"""`steersman setup`: what it writes, and that it writes nothing which does not work."""

import threading
import tomllib
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from blackbox.terminal import Terminal
from support.driver import COMMAND, Place
from support.model_server import ModelServer, Status, Text

KEY = "sk-setup-0123456789"
REFUSED = Status(401, body='{"error": {"message": "no such key"}}')


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A model server that is not configured."""
    with ModelServer([Text("ready")]) as running:
        yield running


@pytest.fixture
def key_file(place: Place) -> Path:
    """A file with a key, as an editor leaves it."""
    file = place.folder / "key"
    file.write_bytes(b"\xef\xbb\xbf" + KEY.encode() + b"\r\n")
    return file


def config(place: Place) -> dict[str, Any]:
    """What the configuration has now."""
    return tomllib.loads((place.home / "config.toml").read_text("utf-8"))


def written(place: Place) -> list[str]:
    """The files of the home."""
    return sorted(path.name for path in place.home.rglob("*") if path.is_file())


@pytest.mark.checks_data("setup")
def test_a_model_is_tried_and_becomes_the_default(
    place: Place, server: ModelServer, key_file: Path
) -> None:
    """Without a terminal, by options; the key is private, sent, hidden, and not in the configuration."""
    given = ("setup", "--base-url", server.base_url, "--key-file", str(key_file))
    ran = place.run(*given)
    assert ran.returncode == 0, ran.stderr
    model = {"provider": "openai", "base_url": server.base_url, "model": "test-model"}
    kept = config(place)["models"]["main"]
    assert kept == model | {"api_key_env": "STEERSMAN_MAIN_API_KEY"}
    assert KEY not in (place.home / "config.toml").read_text() + ran.stdout + ran.stderr
    keys = place.home / "state" / "keys.toml"
    assert (keys.stat().st_mode & 0o777, KEY in keys.read_text()) == (0o600, True)
    assert place.run("chat", f"I say {KEY}").returncode == 0
    assert [asked.headers["authorization"] for asked in server.requests] == [f"Bearer {KEY}"] * 2
    assert KEY not in place.run("sessions", "show", "last").stdout
    keys.chmod(0o644)
    refused = place.run("chat", "hello")
    assert (refused.returncode, "chmod 600" in refused.stderr) == (2, True)


def test_an_address_needs_no_scheme(place: Place, server: ModelServer) -> None:
    """As people type it; this machine is asked by http."""
    bare = server.base_url.removeprefix("http://")
    assert place.run("setup", "--base-url", bare, "--model", "test-model").returncode == 0
    assert config(place)["models"]["main"]["base_url"] == server.base_url


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "`--provider` is one of anthropic, openai, openrouter, ollama, llama.cpp"),
        (("--provider", "nobody"), 2, "there is no provider `nobody`"),
        (("--provider", "compatible"), 2, "give `--base-url URL`"),
        (("--provider", "anthropic"), 2, "`--key-file FILE` or `--key-env ANTHROPIC_API_KEY`"),
        (("--provider", "openai", "--key-env", "NOT_SET"), 2, "`NOT_SET` is not set"),
        (("--provider", "openai", "--key-file", "none"), 2, "`none` cannot be read"),
        (("--base-url", "ftp://x", "--model", "m"), 2, "`base_url` is no address"),
        (("--provider", "local", "--model", "qwen2.5-coder-0.5b"), 2, "`--yes` fetches them"),
        (("--base-url", "SERVER", "--model", "m"), 1, "answered 401: no such key"),
        (("--provider", "anthropic", "--base-url", "SERVER", "--key-file", "key"), 1, "401"),
    ],
)
def test_what_does_not_work_is_not_written(
    place: Place, key_file: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    """The message names the next step, and the home is as empty as before."""
    with ModelServer([REFUSED]) as server:
        ran = place.run(
            "setup",
            *(server.base_url if argument == "SERVER" else argument for argument in arguments),
        )
    assert (ran.returncode, said in ran.stderr) == (code, True), ran.stderr
    assert written(place) == []
    assert KEY not in ran.stdout + ran.stderr


def test_a_server_that_is_not_there(place: Place) -> None:
    """Nothing listens: one sentence, unless the person insists."""
    with ModelServer([]) as server:
        url = server.base_url
    ran = place.run("setup", "--base-url", url)
    assert (ran.returncode, "does not answer" in ran.stderr) == (1, True)
    assert written(place) == []
    assert place.run("setup", "--base-url", url, "--model", "m", "--untested").returncode == 0
    assert config(place)["models"]["main"]["model"] == "m"


def test_a_server_that_lists_nothing(place: Place) -> None:
    """It is said before a model is asked for."""

    class Nothing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Nothing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        ran = place.run("setup", "--base-url", f"http://127.0.0.1:{server.server_port}/v1")
        server.shutdown()
    assert ran.returncode == 2
    told = "it named none, or did not answer: a model can be typed all the same"
    assert ran.stderr.index(told) < ran.stderr.index("which model?")


def test_what_a_person_wrote_is_kept(place: Place, server: ModelServer) -> None:
    """Another `[models.main]` is replaced only with `--yes`; the rest stays, with its line ends."""
    text = (
        "# mine\r\nbusy_input_mode = 'queue'\r\n[models.main]\r\nprovider = 'openai'\r\nmodel = 'old'\r\n"
        "\r\n# the other\r\n[models.other]\r\nprovider = 'openai'\r\nbase_url = 'http://h/v1'\r\n"
    )
    file = place.home / "config.toml"
    file.write_bytes(text.encode())
    refused = place.run("setup", "--base-url", server.base_url)
    assert (refused.returncode, "`--yes` replaces it" in refused.stderr) == (2, True)
    assert file.read_bytes() == text.encode()
    ran = place.run("setup", "--base-url", server.base_url, "--yes")
    assert ran.returncode == 0, ran.stderr
    after = file.read_bytes().decode()
    before, _, rest = text.partition("provider = 'openai'\r\nmodel = 'old'\r\n")
    assert after.startswith(before)
    assert rest in after
    assert after.count("\n") == after.count("\r\n")
    assert config(place)["agents"]["assistant"]["model"] == "main"


def test_a_person_is_asked_in_a_terminal(place: Place, at_keyboard, server: ModelServer) -> None:
    """Provider, address and model by number or name; a typing mistake is asked again."""
    terminal = at_keyboard("setup")
    for wanted, typed in (
        ("Number or name", "nobody"),
        ("`nobody` is not in the list", "6"),
        ("Address of the server", server.base_url),
        ("Key (Enter: none): ", ""),
        ("Which model?", "1"),
    ):
        terminal.wait(wanted)
        terminal.type(f"{typed}\n")
    terminal.wait("A chat uses it")
    assert terminal.process.wait() == 0
    assert config(place)["models"]["main"]["model"] == "test-model"


def test_a_person_may_insist(place: Place, key_file: Path) -> None:
    """Where the model refuses, a no writes nothing, and a yes what was chosen; the key does not echo."""
    with ModelServer([REFUSED]) as server:
        given = ("setup", "--provider", "anthropic", "--base-url", server.base_url)
        for answer, code in (("n", 2), ("y", 0)):
            with closing(Terminal(place, [*COMMAND, *given, "--model", "m"])) as terminal:
                terminal.wait("Key (Enter: none): ")
                terminal.type(f"{KEY}\n")
                terminal.wait("Write it all the same?")
                terminal.type(f"{answer}\n")
                assert terminal.process.wait() == code
                assert KEY not in terminal.shown()
            assert written(place) == (["config.toml", "keys.toml"] if answer == "y" else [])
        assert server.requests[0].headers["x-api-key"] == KEY
