"""`steersman gateway` and `steersman people`: what is found, and what is wrong, in words."""

import re
import resource
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest
from support.driver import Place, end
from support.model_server import Text
from support.patience import seconds
from support.served import Served
from support.telegram_server import TOKEN, TelegramServer
from support.until import until

from .conftest import Serve

GROUP, ANN = -100_700, 71
FREE = resource.RLIM_INFINITY
EXAMPLE = re.compile(r"^```(?:python|toml)\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGE = Path(__file__).parents[2] / "docs" / "gateways.md"


@pytest.fixture
def telegram(tmp_path: Path) -> Generator[TelegramServer]:
    """A server with a group in which Ann is."""
    with TelegramServer(tmp_path) as server:
        server.act("person", id=ANN, first_name="Ann")
        server.act("chat", id=GROUP, type="supergroup", title="Team", managers=[ANN])
        yield server


def said_by_bot(server: TelegramServer) -> str:
    """Return what the gateway has said in the group, one message a line."""
    said = server.act("messages", chat=GROUP)
    return "\n".join(sent["text"] for sent in said if sent.get("from", {}).get("is_bot"))


def table(server: TelegramServer, rest: str = "") -> str:
    """Write the configuration of a gateway to the server."""
    return (
        f'[gateways.telegram]\nserver = "{server.url}"\nrooms = {{ "{GROUP}" = {{}} }}\n'
        f'[people]\nann = {{ telegram = "{ANN}" }}\n{rest}'
    )


@pytest.mark.checks_data("people check")
def test_people_and_what_is_missing(place: Place) -> None:
    """Each person with what their rights allow; what keeps people from working is an exit code."""
    (place.home / "config.toml").write_text(
        '[gateways.irc]\n[people]\nann = { irc = "ann", may = ["speak", "stop"] }\nbo = {}\n'
    )
    said = place.data("people", "check", code=1)
    ann, bo = said["people"]
    assert (ann["name"], ann["names"], ann["may"]) == ("ann", {"irc": "ann"}, ["speak", "stop"])
    assert ann["can"] == {
        "speak": True,
        "steer own": True,
        "steer others": False,
        "stop own": True,
        "stop others": True,
        "approve": False,
    }
    assert bo["can"]["stop others"] is False
    assert said["missing"] == [
        "`bo` has no name on any platform, and is never heard",
        "no person on `irc` may approve: what is asked there stays open",
    ]


@pytest.mark.checks_data("gateway check")
def test_a_check_connects_once(place: Place, telegram: TelegramServer) -> None:
    """What was found is printed; a wrong secret, key or room is named, and the token never is."""
    (place.home / "config.toml").write_text(table(telegram))
    ran = place.run("gateway", "check", "telegram")
    assert ran.returncode == 2
    assert "`STEERSMAN_TELEGRAM_TOKEN` is not set" in ran.stderr
    place.environ["STEERSMAN_TELEGRAM_TOKEN"] = TOKEN
    ran = place.run("gateway", "check", "telegram")
    assert ran.returncode == 0, ran.stderr
    assert "Team" in ran.stdout
    (place.home / "config.toml").write_text(table(telegram).replace("rooms", "romos = 1\nrooms"))
    ran = place.run("gateway", "check", "telegram")
    assert ran.returncode == 2
    assert "`romos`: there is no such key" in ran.stderr
    assert TOKEN not in ran.stderr
    ran = place.run("config", "check")
    assert (ran.returncode, "`romos`: there is no such key" in ran.stderr) == (2, True)
    (place.home / "config.toml").write_text(table(telegram).replace("{}", '{ folder = "gone" }'))
    ran = place.run("gateway", "check", "telegram")
    assert (ran.returncode, "no folder `gone`" in ran.stderr) == (2, True)


def test_a_run_says_whether_it_is_connected(place: Place, telegram: TelegramServer) -> None:
    """Who runs it sees the server that it waits for, and that it is there."""
    place.environ["STEERSMAN_TELEGRAM_TOKEN"] = TOKEN
    away = re.sub(r'server = ".*"', 'server = "http://127.0.0.1:9"', table(telegram))
    for config, said in ((away, "no connection to"), (table(telegram), "connected to")):
        (place.home / "config.toml").write_text(config)
        gateway = place.start("gateway", "run", "telegram")
        try:
            assert gateway.stderr is not None
            line = gateway.stderr.readline()
            assert said in line
            assert TOKEN not in line
        finally:
            end(gateway.pid)
            gateway.communicate()


def test_a_full_disk_is_said_and_ends_nothing(
    place: Place, telegram: TelegramServer, serve: Serve
) -> None:
    """While nothing can be kept the room is told once; what was said then is answered later."""
    serve(Text("Hello Ann."), Text("Still here."), rest=table(telegram))
    place.environ["STEERSMAN_TELEGRAM_TOKEN"] = TOKEN
    gateway = place.start("gateway", "run", "telegram")
    try:
        telegram.act("say", chat=GROUP, user=ANN, text="hello")
        until(lambda: "Hello Ann." in said_by_bot(telegram))
        resource.prlimit(gateway.pid, resource.RLIMIT_FSIZE, (1_000, FREE))
        telegram.act("say", chat=GROUP, user=ANN, text="are you there?")
        until(lambda: "My disk takes nothing now" in said_by_bot(telegram))
        assert "Still here." not in said_by_bot(telegram)
        resource.prlimit(gateway.pid, resource.RLIMIT_FSIZE, (FREE, FREE))
        until(lambda: "Still here." in said_by_bot(telegram))
        assert said_by_bot(telegram).count("My disk takes nothing now") == 1
        assert gateway.poll() is None
    finally:
        end(gateway.pid)
        gateway.communicate()


@pytest.mark.nightly
def test_a_server_of_a_home_keeps_its_gateways_running(
    place: Place, telegram: TelegramServer, serve: Serve
) -> None:
    """It starts them, starts one again that was killed, and ends them with itself."""
    serve(Text("Hello Ann."), Text("Still here."), rest=table(telegram))
    place.environ["STEERSMAN_TELEGRAM_TOKEN"] = TOKEN

    def gateways() -> list[int]:
        return [pid for pid, line in place.processes().items() if "gateway run telegram" in line]

    with closing(Served(place)):
        telegram.act("say", chat=GROUP, user=ANN, text="hello")
        until(lambda: "Hello Ann." in said_by_bot(telegram))
        (first,) = gateways()
        end(first)
        telegram.act("say", chat=GROUP, user=ANN, text="are you there?")
        until(lambda: "Still here." in said_by_bot(telegram))
        assert gateways() != [first]
        assert said_by_bot(telegram).count("Hello Ann.") == 1
    until(lambda: not gateways())
    served = Served(place)
    until(lambda: len(gateways()) == 1)
    served.kill()
    until(lambda: not gateways())


@pytest.mark.nightly
def test_the_example_of_the_page_is_a_gateway(
    place: Place, serve: Serve, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    """Built and installed by pip, it answers Ann, refuses a stranger, and goes on after a kill."""
    source, site = tmp_path_factory.mktemp("example"), tmp_path_factory.mktemp("site")
    files = dict(EXAMPLE.findall(PAGE.read_text("utf-8")))
    for name, text in files.items():
        (source / name).write_text(text, "utf-8")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    command = [*pip, "--no-build-isolation", "--target", str(site), str(source)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=seconds(110))
    assert ran.returncode == 0, ran.stderr
    place.environ["PYTHONPATH"] = str(site)
    config = files["config.toml"].replace("/tmp", str(tmp_path))
    serve(Text("Hello."), Text("Again."), rest=config.replace("~/project", str(place.folder)))
    heard, said = tmp_path / "team.in", tmp_path / "team.out"
    heard.write_text("eve: stop\nann: hello\nann: not yet a li")
    ran = place.run("gateway", "check", "echo")
    assert (ran.returncode, ran.stdout) == (0, "team: 2 lines\n")

    for answers in (["Hello."], ["Hello.", "Again."]):
        gateway = place.start("gateway", "run", "echo")
        until(lambda: said.exists() and answers[-1] in said.read_text())  # noqa: B023 - at once
        end(gateway.pid)
        gateway.communicate()
        lines = said.read_text().splitlines()
        assert lines[0].startswith("eve: I do not know you")
        # killed before it has noted that the platform has a line, it tells the room of that line
        told = [line for line in lines[1:] if "says it again" not in line]
        assert told == [f"ann: {answer}" for answer in answers]
        with heard.open("a") as file:
            file.write("ne\n")
