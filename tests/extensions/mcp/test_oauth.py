"""Logins at MCP servers, against a real server with an authorization server of its own, on loopback."""

import asyncio
import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from blackbox.terminal import Terminal
from extensions.mcp.conftest import Play, Session, odd
from support.driver import COMMAND, Place, Process
from support.login_server import LoginServer
from support.loopback import LoopbackRequest, LoopbackServer
from support.model_server import Text, Tools
from support.patience import seconds

from steersman.extensions.mcp.login_file import LoginFile
from steersman.extensions.mcp.login_request import check_address
from steersman.machines.errors import ToolError
from steersman.ports.tools.mcp_offer import McpServer

LOOK_UP = Tools([{"tool": "mcp__notes__look_up", "arguments": {"name": "shopping"}}])
ALLOWED = '[permissions]\nrules = [{ tool = "mcp__notes__*", do = "allow" }]\n'
NEEDED = "it needs a login: run `steersman mcp login notes`"


@pytest.fixture
def locked() -> Iterator[LoginServer]:
    """A server that wants a login."""
    with LoginServer() as server:
        yield server


def table(url: str) -> str:
    """Configure the server."""
    return f'[mcp.notes]\nurl = "{url}"\nstart_timeout = {seconds(60)}\nwait = {seconds(60)}\n{ALLOWED}'


def config(place: Place, url: str, **settings: Any) -> McpServer:
    """Configure the server for a client of our own."""
    return odd(name="notes", command=(), url=url, login=str(kept(place)), **settings)


def kept(place: Place) -> Path:
    """Return the file of the login."""
    return place.home / "state" / "mcp-logins" / "notes.json"


def read(place: Place) -> Any:
    """Read the file of the login."""
    return json.loads(kept(place).read_text())


def change(place: Place, **fields: Any) -> None:
    """Change the file of the login."""
    kept(place).write_text(json.dumps(read(place) | fields))


def begin(place: Place, *options: str) -> tuple[Process, str]:
    """Start a login without a terminal; return it with the address to open."""
    program = place.start("mcp", "login", "notes", "--timeout", str(seconds(60)), *options)
    stream = program.stderr if "--json" in options else program.stdout
    assert stream is not None
    line = ""
    while not line.startswith("http"):
        line = stream.readline()
        assert line, program.communicate()
    return program, line.strip()


def visited(url: str) -> str:
    """Open an address as a browser does, which follows redirects."""
    with urlopen(url, timeout=seconds(30)) as answer:
        return str(answer.read().decode())


def log_in(place: Place, server: LoginServer) -> None:
    """Configure the server, and log in."""
    place.configure("http://127.0.0.1:9", rest=table(server.url))
    program, url = begin(place)
    visited(url)
    _, errors = program.communicate(timeout=seconds(60))
    assert program.returncode == 0, errors


def leaks(place: Place, server: LoginServer) -> list[str]:
    """Return the files of the home, but for that of the login, that have a token."""
    files = [path for path in place.home.rglob("*") if path.is_file() and path != kept(place)]
    tokens = [token.encode() for token in server.provider.granted]
    return [str(path) for path in files if any(token in path.read_bytes() for token in tokens)]


# The command --------------------------------------------------------------------------------------


@pytest.mark.checks_data("mcp login")
def test_a_login_ends_at_a_port_of_this_machine(place: Place, locked: LoginServer) -> None:
    """What was granted is said, and kept in a file of one's own; PKCE and the resource are sent."""
    place.configure("http://127.0.0.1:9", rest=table(locked.url))
    program, url = begin(place, "--json")
    assert "code_challenge_method=S256" in url
    assert "resource=http" in url
    assert visited(url).startswith("This page can be closed")
    out, errors = program.communicate(timeout=seconds(60))
    assert program.returncode == 0, errors
    said = json.loads(out)
    assert (said["scopes"], said["url"], said["can_be_renewed"]) == (["notes"], locked.url, True)
    assert said["expires"].endswith("Z")
    assert stat.S_IMODE(kept(place).stat().st_mode) == 0o600
    assert stat.S_IMODE(kept(place).parent.stat().st_mode) == 0o700
    assert {"acc-", "ref-"} == {read(place)[key][:4] for key in ("access_token", "refresh_token")}
    assert not [token for token in locked.provider.granted if token in out + errors]


def test_an_address_is_pasted(place: Place, locked: LoginServer) -> None:
    """At a terminal the browser may be anywhere; what is no address of this login is asked for again."""
    place.configure("http://127.0.0.1:9", rest=table(locked.url))
    terminal = Terminal(place, (*COMMAND, "mcp", "login", "notes"), size=(24, 1000))
    try:
        terminal.wait("paste that here")
        url = next(word for word in terminal.shown().split() if word.startswith("http"))
        ended = asyncio.run(_redirected(url))
        terminal.type(ended.replace("state=", "state=x") + "\n")
        terminal.wait("this address is that of another login")
        terminal.type("hello\n")
        terminal.wait("this is not the address at which a login ends")
        terminal.type(ended + "\n")
        terminal.wait("Logged in to `notes`: notes, until")
        assert terminal.process.wait(seconds(30)) == 0
    finally:
        terminal.close()
    assert read(place)["url"] == locked.url


async def _redirected(url: str) -> str:
    """Open an address, and return where it leads."""
    import httpx2

    async with httpx2.AsyncClient() as http:
        return (await http.get(url)).headers["location"]


def test_ctrl_c_ends_a_login(place: Place, locked: LoginServer) -> None:
    """Nothing is kept, and no trace is shown."""
    place.configure("http://127.0.0.1:9", rest=table(locked.url))
    terminal = Terminal(place, (*COMMAND, "mcp", "login", "notes"), size=(24, 1000))
    try:
        terminal.wait("paste that here")
        terminal.type("\x03")
        assert terminal.process.wait(seconds(30)) == 130
        assert "Traceback" not in terminal.shown()
    finally:
        terminal.close()
    assert not kept(place).exists()


def test_an_answer_to_another_login_is_refused(place: Place, locked: LoginServer) -> None:
    """A wrong state is not taken, and this login goes on; a refusal of the person ends it."""
    place.configure("http://127.0.0.1:9", rest=table(locked.url))
    program, url = begin(place)
    ended = asyncio.run(_redirected(url))
    base, state = ended.partition("?")[0], ended.partition("state=")[2]
    for query in ("code=x&state=wrong", "code=x", "state=" + state, "error=x&state=wrong"):
        with pytest.raises(HTTPError, match="400"):
            visited(f"{base}?{query}")
    assert program.poll() is None
    visited(f"{base}?error=access_denied&state={state}&error_description=no%1b[2J")
    _, errors = program.communicate(timeout=seconds(60))
    assert (program.returncode, "the login was refused: no\\x1b[2J" in errors) == (1, True)
    assert locked.paths("/token") == []
    assert not kept(place).exists()


@pytest.mark.parametrize(
    ("settings", "code", "said"),
    [
        ('url = "{url}"\nheaders = {{ authorization = "Bearer k" }}', 2, "which is used instead"),
        ('command = ["true"]', 2, "no MCP server `notes` with a `url`"),
        ('url = "http://192.0.2.1/mcp"', 1, "is not https"),
        ('url = "{url}"', 1, "nobody has logged in within 1 s"),
        ('url = "{url}/other"', 1, "answered 404 Not Found: it asked for no login"),
    ],
)
def test_no_login(place: Place, locked: LoginServer, settings: str, code: int, said: str) -> None:
    """What cannot be logged in to says why."""
    place.configure("http://127.0.0.1:9", rest=f"[mcp.notes]\n{settings.format(url=locked.url)}")
    ran = place.run("mcp", "login", "notes", "--timeout", "1")
    assert (ran.returncode, said in ran.stderr) == (code, True), ran.stderr


@pytest.mark.checks_data("mcp logout")
@pytest.mark.parametrize("can_revoke", [True, False])
def test_a_logout_removes_and_revokes(place: Place, can_revoke: bool) -> None:
    """The file is gone; the server is asked to revoke if it can, and it is said what became of that."""
    with LoginServer(can_revoke=can_revoke) as server:
        log_in(place, server)
        ran = place.run("mcp", "logout", "notes")
        said = "revoked at" if can_revoke else "the server names no way to revoke them"
        assert (ran.returncode, said in ran.stdout) == (0, True), ran.stderr
        assert bool(server.provider.access) is not can_revoke
    assert not kept(place).exists()
    assert place.run("mcp", "logout", "notes").returncode == 1


# Sessions -----------------------------------------------------------------------------------------


def test_a_chat_uses_the_login(place: Place, serve: Any, locked: LoginServer) -> None:
    """Without one the server is ended, and says the command; after it the same chat calls the tool.

    No token is in any other file of the home, though the tool answers with it.
    """
    model = serve(LOOK_UP, Text("It says."), LOOK_UP, Text("Again."), rest=table(locked.url))
    chat = place.chat()
    chat.wait_text(NEEDED)
    server = chat.ask("/mcp")["data"]["servers"][0]
    assert (server["state"], NEEDED in server["fault"]) == ("ended", True)
    program, url = begin(place)
    visited(url)
    program.communicate(timeout=seconds(60))
    assert program.returncode == 0
    assert chat.ask("/mcp restart notes")["data"]["state"] == "ready"
    chat.completes("look it up")
    told = str(model.requests[-1].body["messages"][-1]["content"])
    assert told == "The note shopping, for ….", told
    locked.forget_access()
    chat.completes("once more")
    assert str(model.requests[-1].body["messages"][-1]["content"]) == told
    assert chat.close() == 0
    assert len(locked.paths("/token")) == 2
    assert leaks(place, locked) == []


async def _called(session: Session) -> Any:
    return await session.call("mcp__notes__look_up", name="x")


def test_a_token_that_is_over_is_renewed_after_a_restart(place: Place, play: Play) -> None:
    """Its end is known to a new program, as is where it is renewed; the refresh token is replaced."""
    with LoginServer(life=1) as server:  # seconds, which is over at once
        log_in(place, server)
        before = read(place)

        async def scenario(session: Session) -> None:
            assert (await _called(session)).status == "ok"

        play(scenario, config(place, server.url))
        after = read(place)
        assert before["refresh_token"] != after["refresh_token"]
        form = server.paths("/token")[1].body
        assert f"refresh_token={before['refresh_token']}" in form
        assert "resource=http" in form


def test_two_programs_renew_once(place: Place, locked: LoginServer, serve: Any) -> None:
    """Each refresh token counts once, and none is lost: the other program takes what the first got."""
    log_in(place, locked)
    serve(LOOK_UP, Text("One."), LOOK_UP, Text("Two."), rest=table(locked.url))
    change(place, expires=1.0)
    running = [place.start("chat", "look it up") for _ in range(2)]
    for program in running:
        _, errors = program.communicate(timeout=seconds(60))
        assert (program.returncode, "login" in errors) == (0, False), errors
    assert len([seen for seen in locked.paths("/token") if "refresh_token=" in seen.body]) == 1
    assert read(place)["refresh_token"] in locked.provider.refresh


def test_many_calls_renew_once(place: Place, play: Play, locked: LoginServer) -> None:
    """Calls at the same time that are refused do not each ask for a token."""
    log_in(place, locked)

    async def scenario(session: Session) -> None:
        locked.forget_access()
        results = await asyncio.gather(*(_called(session) for _ in range(8)))
        assert {result.status for result in results} == {"ok"}

    play(scenario, config(place, locked.url))
    assert len(locked.paths("/token")) == 2


def test_a_refused_renewal_is_the_hint(place: Place, play: Play, locked: LoginServer) -> None:
    """The call fails with the command, as do all later ones; a new login is used at once."""
    log_in(place, locked)

    async def scenario(session: Session) -> None:
        locked.forget_access()
        locked.provider.refresh.clear()
        for _ in range(6):
            result = await _called(session)
            assert (result.status, NEEDED in result.text) == ("failed", True), result.text
        status = session.servers.status("notes")
        assert (status.state, NEEDED in status.fault) == ("ended", True)
        await asyncio.to_thread(log_in, place, locked)
        assert (await _called(session)).status == "ok"

    play(scenario, config(place, locked.url))
    assert len([seen for seen in locked.paths("/token") if "refresh_token=" in seen.body]) == 1


def test_a_server_that_is_down_takes_no_login_away(place: Place, locked: LoginServer) -> None:
    """A renewal that fails otherwise is no reason to log in again, and says nothing that was sent."""
    log_in(place, locked)
    change(place, expires=1.0, token_endpoint=f"{locked.origin}/nothing")
    before = read(place)
    with pytest.raises(ToolError, match=r"could not be renewed: .* answered 404") as caught:
        LoginFile(kept(place)).access_token(locked.url)
    assert before["refresh_token"] not in str(caught.value)
    assert read(place) == before


# Elsewhere ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "sent", "said"),
    [({}, "", NEEDED), ({"Authorization": "Bearer k"}, "Bearer k", "could not be used")],
)
def test_tokens_go_to_their_address_alone(
    place: Place, play: Play, locked: LoginServer, headers: Any, sent: str, said: str
) -> None:
    """A server of the same name at another address gets nothing; a configured header goes first."""
    log_in(place, locked)

    async def scenario(session: Session) -> None:
        with pytest.raises(ToolError, match=said):
            await session.servers.connect("notes")

    with LoginServer() as other:
        play(scenario, config(place, other.url, headers=headers), is_connected=False)
        assert {(seen.path, seen.authorization) for seen in other.seen} == {("/mcp", sent)}


class Hostile(LoopbackServer):
    """A server with an authorization server of its own making; `changes` are those of its answers."""

    def __init__(self, changes: dict[str, Any]) -> None:
        super().__init__(_HostileRequest)
        self.changes, self.asked = changes, list[str]()


class _HostileRequest(LoopbackRequest):
    server: Hostile

    def do_GET(self) -> None:
        server, path = self.server, self.path
        server.asked.append(path)
        origin = server.url
        metadata: dict[str, Any] = {"issuer": origin}
        for name in ("authorization", "token", "registration"):
            metadata[f"{name}_endpoint"] = f"{origin}/{name}"
        resource = {"resource": f"{origin}/mcp", "authorization_servers": [origin]}
        answers = {
            "/.well-known/oauth-authorization-server": metadata,
            "/.well-known/oauth-protected-resource/mcp": resource,
            "/registration": {"client_id": "c", "redirect_uris": ["http://127.0.0.1/callback"]},
        }
        answer = json.dumps(answers.get(path, {}) | server.changes.get(path, {})).encode()
        headers = dict(server.changes.get("headers", {}))
        if redirect := server.changes.get("redirect", {}).get(path):
            headers["Location"] = redirect
        status = 302 if redirect else 200 if path in answers else 401
        self.reply(status, answer, *headers.items())

    do_POST = do_GET


METADATA = "/.well-known/oauth-authorization-server"
HOSTILE: list[tuple[dict[str, Any], str]] = [
    ({METADATA: {"authorization_endpoint": "http://a.example/"}}, "is not https"),
    ({METADATA: {"registration_endpoint": "http://a.example/"}}, "is not https"),
    ({METADATA: {"authorization_endpoint": "javascript:alert(1)"}}, "Registration failed"),
    ({METADATA: {"issuer": "https://a.example"}}, "issuer mismatch"),
    ({METADATA: {"x": "y" * 300_000}}, "more than 262,144 bytes"),
    (
        {"headers": {"WWW-Authenticate": 'Bearer resource_metadata="http://a.example/"'}},
        "not https",
    ),
    (
        {"headers": {"WWW-Authenticate": 'Bearer resource_metadata="http://h:x/"'}},
        "the login failed",
    ),
    ({"redirect": {METADATA: "OTHER/x", "/register": "OTHER/x"}}, "Registration failed: 302"),
    ({"/registration": {"token_endpoint_auth_method": "\x1b[2J"}}, "unsupported"),
]


@pytest.mark.parametrize(("changes", "said"), HOSTILE)
def test_a_hostile_server_leads_nowhere(place: Place, changes: Any, said: str) -> None:
    """What its metadata names is not asked, shown or followed, if it may not be."""
    with Hostile({}) as other:
        changes = json.loads(json.dumps(changes).replace("OTHER", other.url))
        with Hostile(changes) as server:
            place.configure("http://127.0.0.1:9", rest=f'[mcp.notes]\nurl = "{server.url}/mcp"')
            ran = place.run("mcp", "login", "notes", "--timeout", str(seconds(60)))
    assert (ran.returncode, said in ran.stderr) == (1, True), ran.stderr
    assert "Traceback" not in ran.stderr
    assert (ran.stdout, "\x1b" in ran.stderr, other.asked) == ("", False, [])
    assert "/token" not in server.asked


@pytest.mark.parametrize(
    ("url", "server", "said"),
    [
        ("http://auth.example/token", "https://mcp.example/", "is not https"),
        ("http://127.0.0.1/token", "https://192.0.2.1/", "is not https"),
        ("https://127.0.0.1/token", "https://192.0.2.1/", ""),
        ("https://127.0.0.1/token", "https://1.1.1.1/", "of a private network"),
        ("https://[::ffff:10.0.0.1]/x", "https://1.1.1.1/", "of a private network"),
        ("https://169.254.169.254/x", "https://1.1.1.1/", "of a private network"),
        ("https://1.1.1.2/x", "https://1.1.1.1/", ""),
        ("http://127.0.0.1:1/x", "http://localhost/", ""),
        ("https://a:b@1.1.1.1/x", "https://1.1.1.1/", "is no address"),
        ("file:///etc/passwd", "https://1.1.1.1/", "is no address"),
        ("https://1.1.1.1/\x1b[2J", "https://1.1.1.1/", "is no address"),
    ],
)
def test_where_a_server_may_send_us(url: str, server: str, said: str) -> None:
    """To https, or on loopback if it is there itself, and to no private network from the public one."""
    if not said:
        assert check_address(url, server) <= {urlsplit(url).hostname}
        return
    with pytest.raises(ToolError, match=said) as caught:
        check_address(url, server)
    assert caught.value.message.isprintable()


@pytest.mark.parametrize("content", ["", "{}", "[" * 10_000, "\xff"])
def test_a_file_that_is_no_login_is_named(place: Place, content: str) -> None:
    """Neither a damaged file nor one that others may read is used."""
    kept(place).parent.mkdir(parents=True)
    kept(place).write_bytes(content.encode("latin-1"))
    for mode in (0o600, 0o644):
        kept(place).chmod(mode)
        with pytest.raises(ToolError, match="cannot be used"):
            LoginFile(kept(place)).read()
