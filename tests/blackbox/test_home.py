"""A home on PostgreSQL, and the way there and back, with the installed command."""

import json
import subprocess
import sys

import pytest
from support.driver import Place
from support.model_server import Text
from support.postgres_server import PostgresServer

URL = "STEERSMAN_HOME_URL"


@pytest.mark.nightly
@pytest.mark.checks_data("home init", "home move", "home check")
def test_a_home_moves_there_and_back(place: Place, serve, postgres_server: PostgresServer) -> None:
    """Sessions go on in the database, and then in the state folder again, each with its whole journal."""
    serve(Text("One."), Text("Two."), Text("Three."))
    chat = place.chat()
    chat.completes("first")
    session = chat.session
    assert chat.close() == 0
    before = place.stored(session)["messages"]

    url = postgres_server.url()
    refused = place.run("home", "move", "--to", url)
    assert refused.returncode == 1
    assert "home init" in refused.stderr
    made = place.run("home", "init", url)
    assert made.returncode == 0, made.stderr
    for copied in ("0 entries", None)[::-1]:
        moved = place.run("home", "move", "--to", url)
        assert moved.returncode == 0, moved.stderr
        assert copied is None or f", {copied} copied" in moved.stdout

    place.environ[URL] = url
    assert place.stored(session)["messages"] == before
    chat = place.chat("--resume", session)
    chat.completes("second")
    moving = place.run("home", "move", "--to", "sqlite")
    assert moving.returncode == 1
    assert f"has session `{session}` open" in moving.stderr
    assert chat.close() == 0
    after = place.stored(session)["messages"]
    assert after > before
    checked = place.data("home", "check")
    assert (checked["sessions"], checked["faults"]) == (1, [])
    back = place.run("home", "move", "--to", "sqlite")
    assert back.returncode == 0, back.stderr

    del place.environ[URL]
    assert place.stored(session)["messages"] == after
    assert place.run("home", "check").stdout.startswith(str(place.home))


def test_a_session_is_there_on_each_machine(place: Place, serve, postgres_url: str) -> None:
    """With the configured address; a chat that is killed is shown as crashed, and resumed elsewhere."""
    serve(Text("One."), Text("Two."), rest=f'[home]\nurl = "{postgres_url}"')
    chat = place.chat()
    chat.completes("first")
    session = chat.session
    assert place.data("sessions", "list")["sessions"][0]["state"] == "idle"
    chat.kill()
    assert place.data("sessions", "list")["sessions"][0]["state"] == "crashed"
    there = place.chat("--resume", session)
    there.completes("second")
    assert there.close() == 0


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("settings", "code", "said"),
    [
        ('url = "postgresql://ann:geheim@127.0.0.1:1/x"', 1, "cannot be reached"),
        (
            'url = "postgresql://ann:geheim@127.0.0.1/x?schema=A-B"',
            2,
            "is not the name of a schema",
        ),
        ('url = "nothing://x"', 2, "no store is installed for `nothing:`"),
        ("url = 5", 2, "wrong type"),
        ("lease = 2.0", 2, "less than"),
    ],
)
def test_a_wrong_home_is_reported(place: Place, settings: str, code: int, said: str) -> None:
    """With what is wrong, and without the password."""
    (place.home / "config.toml").write_text(f"[home]\n{settings}\n")
    for command in (("sessions", "list"), ("chat", "hello"), ("home", "check")):
        ran = place.run(*command)
        assert ran.returncode in (code, 2), ran.stderr
        assert "Traceback" not in ran.stderr
        assert "geheim" not in ran.stdout + ran.stderr
    assert said in ran.stderr
    assert "geheim" not in place.run("config", "show").stdout


def test_no_project_moves_the_home(place: Place) -> None:
    """A project's file cannot say where the sessions are kept."""
    (place.folder / ".steersman.toml").write_text('[home]\nurl = "postgresql://127.0.0.1:1/x"\n')
    ran = place.run("sessions", "list")
    assert ran.returncode == 0, ran.stderr


def test_the_doctor_looks_at_the_home(place: Place, serve, postgres_url: str) -> None:
    """The bell comes back, and there is no mail; of a server that is away it says so."""
    serve(Text("One."), rest=f'[home]\nurl = "{postgres_url}"')
    ran = place.run("doctor", "--home", "--json")
    checks = {check["name"]: check for check in json.loads(ran.stdout)["checks"]}
    assert "PostgreSQL" in checks["home"]["text"]
    assert "comes back after" in checks["bell"]["text"]
    assert checks["mail"]["text"] == "0 unread, the oldest for 0 s"
    place.environ[URL] = "postgresql://ann:geheim@127.0.0.1:1/x"
    ran = place.run("doctor", "--home")
    assert ran.returncode == 1
    assert "cannot be reached" in ran.stdout
    assert "geheim" not in ran.stdout + ran.stderr


def test_a_home_without_its_package_says_what_to_install(place: Place) -> None:
    """A command on a machine that lacks the extra says so, and ends with exit code 2."""
    code = (
        "import sys; sys.modules['psycopg'] = None; from steersman.cli.main import main;"
        " sys.argv = ['steersman', 'sessions', 'list']; sys.exit(main())"
    )
    environ = {**place.environ, "STEERSMAN_HOME_URL": "postgresql://me@127.0.0.1:1/x"}
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "[postgres]" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.checks_data("home check", "home salvage")
def test_a_damaged_row_closes_no_other_session(place: Place, serve) -> None:
    """It is named; others go on, begin, and are read; it is resumed by its id, which repairs it."""
    serve(Text("One."), Text("Two."), Text("Three."), Text("Four."))
    for text in ("first", "second"):
        assert place.run("chat", text).returncode == 0
    newest, oldest = (row["id"] for row in place.data("sessions", "list")["sessions"])
    place.alter(f"UPDATE sessions SET row = '{{' WHERE session = '{newest}'")
    listed = place.run("sessions", "list")
    named = f"1 session cannot be read: {newest} (`steersman home check` says more)"
    assert (listed.returncode, named in listed.stderr, oldest in listed.stdout) == (0, True, True)
    assert newest not in listed.stdout
    assert "One." in place.run("sessions", "show", "last").stdout
    assert place.run("chat", "third").stdout == "Three.\n"
    (fault,) = place.data("home", "check", code=1)["faults"]
    assert (fault["table"], fault["row"]) == ("sessions", newest)
    doctor = place.run("doctor", "--home")
    assert (doctor.returncode, fault["next"] in doctor.stdout) == (1, True)
    target = place.home.with_name("new")
    saved = place.data("home", "salvage", str(target))
    assert (len(saved["saved"]), saved["lost"]) == (3, [])
    assert place.run("chat", "--resume", newest, "fourth").stdout == "Four.\n"
    assert place.data("home", "check")["faults"] == []
    place.environ["STEERSMAN_HOME"] = str(target)
    assert "Two." in place.run("sessions", "show", newest).stdout


def test_a_damaged_session_is_deleted_by_its_id(place: Place, serve) -> None:
    """One whose row and journal cannot be read is named, and goes; the other stays."""
    serve(Text("One."), Text("Two."))
    for text in ("first", "second"):
        assert place.run("chat", text).returncode == 0
    session, _ = (row["id"] for row in place.data("sessions", "list")["sessions"])
    place.alter(
        f"UPDATE sessions SET row = '' WHERE session = '{session}'",
        f"UPDATE entries SET data = '{{' WHERE session = '{session}' AND seq = 1",
        f"DELETE FROM snapshots WHERE session = '{session}'",
    )
    shown = place.run("sessions", "show", session)
    assert (shown.returncode, "entry 1" in shown.stderr) == (1, True)
    faults = place.data("home", "check", code=1)["faults"]
    assert {(fault["table"], fault["row"]) for fault in faults} == {
        ("sessions", session),
        ("entries", f"{session} 1"),
    }
    assert place.run("sessions", "delete", session, "--yes").returncode == 0
    assert place.run("home", "check").returncode == 0
    (row,) = place.data("sessions", "list")["sessions"]
    assert row["id"] != session
