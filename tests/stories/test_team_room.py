"""Story 16, in the team's room: the installed gateway, real servers, two people with other clients."""

import subprocess
from collections.abc import Generator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import pytest
from blackbox.conftest import Serve, echoed, place, serve
from support import irc_server, matrix_server
from support.driver import Place, end
from support.irc_server import IrcServer, RawClient
from support.matrix_server import MatrixServer
from support.model_server import Door, Text
from support.telegram_server import TOKEN, TelegramServer
from support.until import until

pytestmark = pytest.mark.nightly

__all__ = ["echoed", "place", "serve"]

ANN, BO = 11, 22
GROUP = -100_500


class Team(Protocol):
    """A room with Ann and Bo in it, on a real server."""

    config: str
    environ: dict[str, str]

    def enter(self) -> None:
        """Have both enter, once the gateway is there."""
        ...

    def say(self, who: str, text: str) -> None:
        """Say something as `ann` or `bo`."""
        ...

    def texts(self) -> list[str]:
        """Return what the gateway has said, as the room shows it now."""
        ...

    def restart(self) -> None:
        """Kill the server and start it again."""
        ...

    def close(self) -> None:
        """End the server."""
        ...


PEOPLE = """
[people]
ann = {{ {platform} = "{ann}", may = ["speak", "steer", "stop", "approve"] }}
bo = {{ {platform} = "{bo}" }}
"""


class IrcTeam:
    """A channel; Ann and Bo have plain sockets."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.server = IrcServer(kind, folder)
        self.server.start()
        self.environ: dict[str, str] = {}
        self.config = PEOPLE.format(platform="irc", ann="ann", bo="bo") + (
            f'[gateways.irc]\nserver = "{self.server.address}"\nnick = "steers"\n'
            'interval = 0.0\nrooms = { "#dev" = {} }\n'
        )
        self.people: dict[str, RawClient] = {}
        self._said: list[str] = []

    def enter(self) -> None:
        if not self.people:
            self.people = {name: RawClient(self.server, name) for name in ("ann", "bo")}
            for person in self.people.values():
                person.join("#dev")
        until(self._is_there)

    def _is_there(self) -> bool:
        """Whether the gateway is in the room."""
        self.people["ann"].say("NAMES #dev")
        return "steers" in self.people["ann"].hears(" 353 ")

    def say(self, who: str, text: str) -> None:
        self.people[who].say(f"PRIVMSG #dev :steers: {text}")

    def texts(self) -> list[str]:
        self.people["bo"].barrier()
        lines = [line for line in self.people["bo"].seen if ":steers!" in line]
        parts = [line.partition(" PRIVMSG #dev :") for line in lines]
        said = [text for _, is_said, text in parts if is_said]
        return [*self._said, *said]

    def restart(self) -> None:
        self._said = self.texts()
        self._leave()
        self.server.kill()
        self.server.start()
        self.enter()

    def _leave(self) -> None:
        for person in self.people.values():
            person.close()
        self.people = {}

    def close(self) -> None:
        self._leave()
        self.server.close()


class MatrixTeam:
    """A room of a homeserver; Ann and Bo speak plain HTTP."""

    def __init__(self, folder: Path) -> None:
        self.server = MatrixServer(folder)
        self.server.start()
        self.people = {name: self.server.person(name) for name in ("ann", "bo", "steers")}
        ann, bo, bot = self.people.values()
        self.room = ann.room(bo, bot)
        bo.join(self.room)
        self.environ = {"STEERSMAN_MATRIX_TOKEN": bot.token}
        self.config = PEOPLE.format(platform="matrix", ann=ann.id, bo=bo.id) + (
            f'[gateways.matrix]\nserver = "{self.server.address}"\naccount = "{bot.id}"\n'
            f'token_env = "STEERSMAN_MATRIX_TOKEN"\nrooms = {{ "{self.room}" = {{}} }}\n'
        )

    def enter(self) -> None:
        until(lambda: len(self._members()) == 3)

    def _members(self) -> list[str]:
        return list(self.people["ann"].ask(f"rooms/{quote(self.room)}/joined_members")["joined"])

    def say(self, who: str, text: str) -> None:
        name = self.people["steers"].id[1:].partition(":")[0]
        self.people[who].send(self.room, f"{name}: {text}")

    def texts(self) -> list[str]:
        shown: dict[str, str] = {}
        for event in self.people["bo"].read(self.room):
            if event.get("sender") != self.people["steers"].id or event["type"] != "m.room.message":
                continue
            content: dict[str, Any] = event["content"]
            about = content.get("m.relates_to", {})
            if about.get("rel_type") == "m.replace":
                shown[about["event_id"]] = content["m.new_content"]["body"]
            elif "body" in content:
                shown.setdefault(event["event_id"], content["body"])
        return list(shown.values())

    def restart(self) -> None:
        self.server.kill()
        self.server.start()

    def close(self) -> None:
        self.server.close()


class TelegramTeam:
    """A group of a server that implements the documented Bot API."""

    def __init__(self, folder: Path) -> None:
        self.server = TelegramServer(folder)
        self.server.start()
        self.server.act("person", id=ANN, first_name="Ann")
        self.server.act("person", id=BO, first_name="Bo")
        self.server.act("chat", id=GROUP, type="supergroup", title="Team")
        self.environ = {"STEERSMAN_TELEGRAM_TOKEN": TOKEN}
        self.config = PEOPLE.format(platform="telegram", ann=ANN, bo=BO) + (
            f'[gateways.telegram]\nserver = "{self.server.url}"\nrooms = {{ "{GROUP}" = {{}} }}\n'
        )

    def enter(self) -> None:
        """They are there."""

    def say(self, who: str, text: str) -> None:
        self.server.act("say", chat=GROUP, user=ANN if who == "ann" else BO, text=text)

    def texts(self) -> list[str]:
        said = self.server.act("messages", chat=GROUP)
        return [row["text"] for row in said if row.get("from", {}).get("is_bot")]

    def restart(self) -> None:
        self.server.kill()
        self.server.start()

    def close(self) -> None:
        self.server.close()


def irc_team(folder: Path) -> Team:
    """A channel of ngircd, which knows no accounts."""
    if not irc_server.program("ngircd"):
        pytest.skip("ngircd is not installed")
    return IrcTeam(folder, "ngircd")


def matrix_team(folder: Path) -> Team:
    """A room of Synapse."""
    if matrix_server.python() is None:
        pytest.skip("Synapse is not installed: .ci/synapse does that")
    return MatrixTeam(folder)


@pytest.fixture(params=[irc_team, matrix_team, TelegramTeam], ids=["irc", "matrix", "telegram"])
def team(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Team]:
    """A room with two people on a real server."""
    folder = tmp_path / "server"
    folder.mkdir()
    made: Team = request.param(folder)
    yield made
    made.close()


class Gateway:
    """The installed gateway; it can be killed and started again."""

    def __init__(self, place: Place, name: str) -> None:
        self._place, self._name = place, name
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it."""
        self.process = self._place.start("gateway", "run", self._name)

    def kill(self) -> None:
        """End it at once."""
        if self.process is not None:
            end(self.process.pid)
            self.process.communicate()
            self.process = None


def test_in_the_teams_room(place: Place, serve: Serve, team: Team) -> None:
    """Ann's message runs, Bo's waits; Ann steers; Bo may not stop; server and gateway are killed."""
    with ExitStack() as ending:
        doors = [ending.enter_context(closing(Door())) for _ in range(2)]
        model = serve(
            Text("On it.", door=doors[0]),
            Text("Done, with tabs.", door=doors[1]),
            Text("Bo gets his answer."),
            Text("Still here."),
            rest=team.config,
        )
        place.environ |= team.environ
        name = team.config.partition("[gateways.")[2].partition("]")[0]
        gateway = Gateway(place, name)
        ending.callback(gateway.kill)
        gateway.start()
        team.enter()

        def shows(text: str, times: int = 1) -> None:
            until(lambda: sum(text in one for one in team.texts()) >= times, team.texts)

        team.say("ann", "refactor the parser")
        model.wait_requests(1)
        team.say("bo", "what is the syntax for optional again?")
        shows('Queued #2: "what is the syntax')
        team.say("bo", "stop")
        shows("you do not have the right `stop`")
        team.say("ann", "!steer use tabs")
        shows("Steering with #3")
        doors[0].open()
        shows("[Steered]")
        team.restart()  # in the middle of the turn
        doors[1].open()
        shows("Done, with tabs.")
        shows("Bo gets his answer.")
        gateway.kill()
        gateway.start()
        team.enter()
        team.say("ann", "are you still there?")
        shows("Still here.")
        said = team.texts()
        for text in ("Done, with tabs.", "Bo gets his answer.", "Still here."):
            assert sum(text in one for one in said) == 1, said
    asked = [request.prompt for request in model.requests]
    assert len(asked) == 4
    assert "use tabs" in asked[1]
    assert "[New message from bo]" in asked[2]
