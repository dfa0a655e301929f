"""Sessions as things: named, found, copied, carried to another home, deleted."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import apsw
import pytest


def listed(command: Any, **environ: str) -> dict[str, dict[str, Any]]:
    """Return the sessions by id."""
    rows = json.loads(command("sessions", "list", "--json", **environ).out)["sessions"]
    return {row["id"]: row for row in rows}


def test_a_session_has_a_name(command: Any, told: Path) -> None:
    """It is renamed, listed and found by its name; escapes do not get into one."""
    assert command("sessions", "rename", "last", "zod \x1b[31mmove\n").code == 0
    (one,) = listed(command).values()
    assert one["name"] == "zod move"
    assert "zod move" in command("sessions", "list").out
    assert command("inspect", "zod move").out.startswith(f'session {one["id"]} "zod move"')
    assert command("sessions", "rename", "last", " \x1b[0m ").code == 2
    found = json.loads(command("sessions", "search", "ZOD", "--json").out)["found"]
    assert [(hit["session"], hit["role"]) for hit in found] == [(one["id"], "name")]


def test_what_was_said_is_found(command: Any, told: Path) -> None:
    """A search finds messages of people and models with their place, and says when there is none."""
    found = json.loads(command("sessions", "search", "what is IN", "--json").out)["found"]
    assert [(message["role"], "what is in" in message["text"]) for message in found] == [
        ("user", True)
    ]
    assert found[0]["seq"] == 2
    nothing = command("sessions", "search", '100%_"\\')
    assert (nothing.code, nothing.out) == (1, "")


def test_a_fork_takes_the_conversation_along(command: Any, told: Path) -> None:
    """A fork starts with the other session's conversation, is idle, and shares nothing else with it."""
    (source,) = listed(command)
    made = json.loads(command("sessions", "fork", source, "--at", "1", "--json").out)["session"]
    shown = [command("sessions", "show", one, "--json").out for one in (source, made)]
    conversations = [json.loads(one)["messages"] for one in shown]
    assert conversations[0] == conversations[1]
    fork = listed(command)[made]
    assert (fork["state"], fork["name"]) == ("left", f"{source}, forked at t1")
    assert fork["parent"] is None
    wrong = command("sessions", "fork", source, "--at", "7")
    assert (wrong.code, "has no turn `7`" in wrong.err) == (2, True)


def test_a_session_moves_to_another_home(command: Any, told: Path, tmp_path: Path) -> None:
    """Exported and taken in elsewhere it is the same, once; what was changed on the way is refused."""
    (source,) = listed(command)
    file, other = tmp_path / "one.json", {"STEERSMAN_HOME": str(tmp_path / "other")}
    assert command("sessions", "export", source, str(file), "--whole").code == 0
    assert command("sessions", "export", source, str(file)).code == 1  # nothing is overwritten
    first = json.loads(command("sessions", "import", str(file), "--json", **other).out)
    again = json.loads(command("sessions", "import", str(file), "--json", **other).out)
    assert (first, again["new"]) == ({"session": source, "new": True}, False)
    told_how = command("sessions", "import", str(file), STEERSMAN_HOME=str(tmp_path / "fourth")).out
    assert f"`steersman chat --resume {source}` goes on with it" in told_how
    dumps = [
        json.loads(command("inspect", source, "--format", "json", **environ).out)
        for environ in ({}, other)
    ]
    for dump in dumps:
        for of_the_home in ("lease", "folder", "system", "tools", "imported_from"):
            del dump[of_the_home]
    assert dumps[0] == dumps[1]
    beside = json.loads(command("sessions", "import", str(file), "--new-id", "--json", **other).out)
    assert set(listed(command, **other)) == {source, beside["session"]}

    data = json.loads(file.read_text())
    for broken, text in (
        ("[", "is not JSON"),
        ("{}", "is no session"),
        (json.dumps({**data, "version": 9}), "has version 9"),
        (json.dumps({**data, "entries": data["entries"][1:]}), "entry 1 is not as it was exported"),
        (json.dumps(data).replace("what is", "what was"), "is not as it was exported"),
        (json.dumps({**data, "version": 1, "entries": data["entries"][1:]}), "entry 1 is missing"),
        (
            json.dumps({**data, "version": 1, "entries": data["entries"][:1] * 2}),
            "entry 2 is missing",
        ),
    ):
        file.write_text(broken)
        refused = command("sessions", "import", str(file), STEERSMAN_HOME=str(tmp_path / "third"))
        assert (refused.code, text in refused.err) == (2, True), refused.err


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="OpenSSH's client is not installed")
def test_a_signed_file_is_taken_from_its_signer_alone(
    command: Any, told: Path, tmp_path: Path
) -> None:
    """As git has it: a key signs, and a list says whose key it is; what was changed is refused."""
    for name in ("ann", "bob"):
        key = ("-t", "ed25519", "-N", "", "-C", name, "-f", str(tmp_path / name))
        subprocess.run(["ssh-keygen", "-q", *key], check=True)
    file, signers, other = tmp_path / "one.json", tmp_path / "signers", str(tmp_path / "other")
    signers.write_text(f"ann {(tmp_path / 'ann.pub').read_text()}")
    take = ("sessions", "import", str(file), "--signers", str(signers), "--json")

    refused = command("sessions", "export", "last", "--format", "json", "--sign", "k")
    assert (refused.code, "standard output is not signed" in refused.err) == (2, True)
    command("sessions", "export", "last", str(file), "--sign", str(tmp_path / "ann"))
    taken = command(*take, STEERSMAN_HOME=other)
    assert json.loads(taken.out)["signer"] == "ann", taken.err

    whole = file.read_text()
    file.write_text(whole + " ")
    changed = command(*take, STEERSMAN_HOME=other)
    assert (changed.code, "the signature does not hold" in changed.err) == (1, True)
    file.unlink()
    command("sessions", "export", "last", str(file), "--sign", str(tmp_path / "bob"))
    foreign = command(*take, STEERSMAN_HOME=other)
    assert (foreign.code, "the signature does not hold" in foreign.err) == (1, True)


def test_a_journal_is_verified(command: Any, told: Path, tmp_path: Path) -> None:
    """One UPDATE is found, also in a snapshot; heads that were kept find a journal that was made anew."""
    (session,) = listed(command)
    kept = tmp_path / "heads.json"
    first = command("sessions", "verify", "--all", "--json")
    kept.write_text(first.out)
    (row,) = json.loads(first.out)["sessions"]
    said = command("sessions", "verify", session)
    assert (first.code, said.code) == (0, 0)
    assert said.out == f"{session}: {row['entries']} entries as written; {row['head']}\n"

    def verified(statement: str, *more: str) -> tuple[int, str]:
        """Look through a home of the same, in whose database a statement was run."""
        home = tmp_path / "altered"
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(told, home)
        connection = apsw.Connection(str(home / "state" / "journal.db"))
        connection.execute(statement)
        connection.close()
        found = command("sessions", "verify", "--all", *more, STEERSMAN_HOME=str(home))
        return found.code, found.out

    altered = "UPDATE entries SET data = replace(data, 'what is', 'what was') WHERE seq = 2"
    assert verified(altered) == (1, f"{session}: entry 2 was changed\n")
    shorter = "DELETE FROM entries WHERE seq > 3; DELETE FROM snapshots; "
    shorter += "UPDATE sessions SET seq = 3, head = (SELECT hash FROM entries WHERE seq = 3)"
    assert verified(shorter)[0] == 0
    assert verified(shorter, "--heads", str(kept)) == (
        1,
        f"{session}: entry 4 is missing, of which the hash was kept\n",
    )
    gone = "DELETE FROM entries; DELETE FROM snapshots; DELETE FROM inbox; DELETE FROM sessions"
    assert verified(gone, "--heads", str(kept))[0] == 1


def test_markdown_is_for_reading(command: Any, told: Path, secret: str) -> None:
    """The Markdown has who said what, and neither a secret nor an escape."""
    out = command("sessions", "export", "last").out
    assert out.startswith("# Session ")
    places = [out.index(part) for part in ("## user", "## assistant", "## tool")]
    assert places == sorted(places)
    assert secret[8:] not in out
    assert "\x1b" not in out
    whole = command("sessions", "export", "last", "--format", "json").out
    assert secret[8:] not in whole


def test_deleted_is_gone(command: Any, told: Path) -> None:
    """Nothing is deleted unasked; then no row, no file and no byte of it is left in the database."""
    (session,) = listed(command)
    output = told / "state" / "output" / session
    output.mkdir(parents=True)
    (output / "long.txt").write_text("x" * 5000)
    size = json.loads(command("sessions", "list", "--size", "--json").out)["sessions"][0]["bytes"]
    assert size > 5000
    asked = command("sessions", "delete", session)
    assert (asked.code, "nothing was deleted" in asked.err) == (2, True)
    gone = json.loads(command("sessions", "delete", session, "--yes", "--json").out)
    assert gone["deleted"] == [session]
    assert gone["freed"] >= 5000
    assert listed(command) == {}
    assert not output.exists()
    connection = apsw.Connection(str(told / "state" / "journal.db"))
    for table in ("entries", "snapshots", "inbox", "sessions"):
        assert connection.execute(f"SELECT count(*) FROM {table}").fetchall() == [(0,)]
    connection.close()
    assert b"what is in" not in (told / "state" / "journal.db").read_bytes()
    assert command("inspect", session).code == 2


def test_finalized_and_pruned(command: Any, told: Path) -> None:
    """A finalized session stays readable, until it is old and a person wants such ones gone.

    Both it and its output are in the trash first, where they can be used, and go when that is emptied.
    """
    (session,) = listed(command)
    assert command("sessions", "finalize", session).code == 0
    assert listed(command)[session]["state"] == "finalized"
    assert command("sessions", "show", session).code == 0
    output = told / "state" / "output" / session
    output.mkdir(parents=True)
    (output / "long.txt").write_text("x" * 5000)
    assert json.loads(command("sessions", "prune", "--json").out)["outputs"]["freed"] == 0
    connection = apsw.Connection(str(told / "state" / "journal.db"))
    connection.execute("UPDATE sessions SET row = json_replace(row, '$.updated', 0.0)")
    connection.close()
    days = "".join(f"{day * 86400.0}\n" for day in range(1, 9))
    (told / "state" / "trash" / "starts").write_text(days)
    pruned = json.loads(command("sessions", "prune", "--finalized", "--json").out)
    assert (pruned["outputs"]["trashed"], pruned["outputs"]["freed"]) == ([session], 0)
    assert (pruned["trashed"], pruned["deleted"]) == ([session], [])
    assert (listed(command), command("sessions", "show", session).code) == ({}, 0)
    trash = json.loads(command("home", "trash", "--json").out)["trash"]
    assert {found["id"] for found in trash} == {f"outputs-{session}", f"session-{session}"}
    assert command("home", "trash", "restore", f"session-{session}").code == 0
    assert set(listed(command)) == {session}
    assert command("home", "trash", "empty").code == 2
    assert output.exists()
    emptied = json.loads(command("home", "trash", "empty", "--yes", "--json").out)["deleted"]
    assert (emptied["outputs"], emptied["session"]) == ([session], [])
    assert not output.exists()
    assert command("sessions", "show", session).code == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_a_file_that_cannot_be_read(command: Any, tmp_path: Path) -> None:
    """It is said which, and why."""
    file = tmp_path / "one.json"
    file.write_text("{}")
    file.chmod(0)
    assert "cannot be read" in command("sessions", "import", str(file)).err
