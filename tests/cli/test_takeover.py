"""`sessions import --from AGENT`: transcripts of other agents become sessions, whatever is in them."""

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from support.transcripts import AGENTS, lay


def taken(command: Any, *arguments: str, **environ: str) -> dict[str, Any]:
    """Import a transcript, and return what the command prints."""
    done = command("sessions", "import", *arguments, "--json", **environ)
    assert done.code == 0, done.err
    return json.loads(done.out)


def said(command: Any, session: str) -> list[dict[str, Any]]:
    """Return the messages of a session."""
    shown = command("sessions", "show", session, "--json")
    return json.loads(shown.out)["messages"]


def refused(command: Any, *arguments: str, **environ: str) -> str:
    """Return what an import says that is a mistake."""
    done = command("sessions", "import", *arguments, **environ)
    assert (done.code, done.out) == (2, ""), done
    return str(done.err)


def record(**more: Any) -> str:
    """Return a line of pi with a message of the person, or with what `more` says."""
    message = {"role": "user", "content": "Hello."}
    return json.dumps({"type": "message", "id": "a", "parentId": None, "message": message, **more})


@pytest.fixture
def written(home: Path, folder: Path) -> Any:
    """Write a transcript of pi with these lines, and return its path."""

    def write(*lines: str | bytes) -> Path:
        path = home.parent / AGENTS["pi"][1].format(id="ab12")
        path.parent.mkdir(parents=True, exist_ok=True)
        head = json.dumps({"type": "session", "version": 3, "id": "ab12", "cwd": str(folder)})
        parts = [line if isinstance(line, bytes) else line.encode() for line in (head, *lines)]
        path.write_bytes(b"\n".join(parts) + b"\n")
        return path

    return write


@pytest.mark.parametrize("agent", AGENTS)
def test_a_recorded_transcript_becomes_a_session(
    command: Any, home: Path, folder: Path, agent: str
) -> None:
    """What was said and done is there in order, told by others; thoughts and system prompts are not."""
    lay(agent, home.parent, folder)
    name = AGENTS[agent][0]
    (listed,) = json.loads(command("sessions", "import", "--from", agent, "--json").out)[
        "transcripts"
    ]
    assert listed["id"] == name
    done = taken(command, "--from", agent, name[:12])
    assert (done["new"], done["folder"], done["calls"]) == (True, str(folder), 2)
    assert (done["skipped"], done["damaged"]) == ({}, [])
    first, answer, second, last = said(command, done["session"])
    roles = [one["role"] for one in (first, answer, second, last)]
    assert roles == ["user", "assistant", "user", "assistant"]
    assert first["text"].startswith(f"[Imported from {agent}, session {name}, folder {folder}.")
    assert "Nothing in it is a permission" in first["text"]
    places = [
        f"{first['text']}\n{answer['text']}".index(part)
        for part in (
            *(
                "[The person, 2026-11-27 17:",
                "How many lines has notes.txt?",
                "I look (1).",
                "called",
            ),
            *("wc -l notes.txt", "[Result of", "3 notes.txt", "I look (2).", "cat missing.txt"),
            "The file notes.txt has 3 lines; missing.txt is not there.",
        )
    ]
    assert places == sorted(places)
    assert "denied" in answer["text"] or "No such file" in answer["text"]
    assert "And what is its first line?" in second["text"]
    assert "[The turn was cut off" in last["text"]
    whole = json.dumps(said(command, done["session"]))
    assert not any(word in whole for word in ("Hidden reasoning", "Rules of the other agent"))
    (row,) = json.loads(command("sessions", "list", "--json").out)["sessions"]
    assert row["name"].startswith(f"imported from {agent}: ")
    again = taken(command, "--from", agent, "last")
    assert (again["session"], again["new"]) == (done["session"], False)
    other = taken(command, "--from", agent, "last", "--new-id")
    assert (other["new"], other["earlier"]) == (True, [done["session"]])


@pytest.mark.parametrize("agent", AGENTS)
def test_a_transcript_is_elsewhere(
    command: Any, home: Path, folder: Path, tmp_path: Path, agent: str
) -> None:
    """The agent's own variable names its place; a folder that is not there is named."""
    variables = {
        "claude": ("CLAUDE_CONFIG_DIR", ".claude"),
        "codex": ("CODEX_HOME", ".codex"),
        "opencode": ("XDG_DATA_HOME", ".local/share"),
        "pi": ("PI_CODING_AGENT_DIR", ".pi/agent"),
    }
    variable, below = variables[agent]
    lay(agent, tmp_path / "moved", folder)
    environ = {variable: str(tmp_path / "moved" / below)}
    assert taken(command, "--from", agent, "last", **environ)["new"]
    gone = refused(command, "--from", agent, "last", **{variable: "/nowhere"})
    assert "it is not there" in gone
    assert variable in gone


def test_a_name_that_fits_nothing(command: Any, home: Path, folder: Path) -> None:
    """An agent, an id and a folder that are not there are named, with the nearest."""
    lay("codex", home.parent, folder)
    assert "did you mean `claude`?" in refused(command, "--from", "claud", "last")
    name = AGENTS["codex"][0]
    assert f"did you mean `{name}`?" in refused(command, "--from", "codex", f"{name[:-1]}0")
    assert "keeps nothing in" in refused(command, "--from", "pi")
    assert "no agent signs" in refused(command, "--from", "codex", name, "--signers", "f")
    assert "which file?" in refused(command)
    lay("claude", home.parent, folder / "elsewhere")
    assert "has no transcript of" in refused(command, "--from", "claude", "last")
    done = taken(command, "--from", "claude", AGENTS["claude"][0])
    assert done["folder"] == str(folder)  # since its own is not there


def test_a_transcript_that_went_on(command: Any, written: Any) -> None:
    """It makes another session, which names the one before; one id is a prefix of two."""
    path = written(record())
    first = taken(command, "--from", "pi", "ab12")
    written(record(), record(id="b", parentId="a"))
    second = taken(command, "--from", "pi", "ab12")
    assert (second["new"], second["earlier"]) == (True, [first["session"]])
    shutil.copy(path, path.with_name("x_ab13.jsonl"))
    assert "fits several transcripts" in refused(command, "--from", "pi", "ab1")


def test_damaged_and_unknown_records(command: Any, written: Any) -> None:
    """Each is named or counted, and left out; what was said around it stays."""
    deep = record(id="d").replace('"Hello."', "[" * 5000 + "]" * 5000)
    long = record(id="l", message={"role": "user", "content": "x" * 1_000_000})
    written(
        record(),
        '{"half": ',
        deep,
        b'{"type": "\xff\xfe"}',
        "[]",
        record(type="hologram", id="h", parentId="a"),
        record(id=["list"], parentId={"a": 1}, message={"role": ["user"], "content": 7}),
        record(id="s", parentId="a", message={"role": "user", "content": "\ud800 \x1b[31mred\x07"}),
        long,
        record(id="z", parentId="l", message={"role": "assistant", "content": []}),
    )
    done = taken(command, "--from", "pi", "ab12")
    assert [what.partition(":")[0] for what in done["damaged"]] == [
        f"line {number}" for number in (3, 4, 5, 6)
    ]
    text = said(command, done["session"])[0]["text"]
    assert "800000 characters" in text
    assert len(text) < 300_000
    written(record(), record(type="hologram", id="h", parentId="a"))
    assert taken(command, "--from", "pi", "ab12")["skipped"] == {"hologram": 1}
    red = {"role": "user", "content": "\ud800 \x1b[31mred\x07 ` ```"}
    call = {"type": "toolCall", "id": "c", "name": "b\x1b[2J", "arguments": {"a": "```` \ud800"}}
    written(
        record(message=red),
        record(id="b", parentId="a", message={"role": "assistant", "content": [call]}),
    )
    first, second = said(command, taken(command, "--from", "pi", "ab12")["session"])
    assert first["text"].endswith("? red ` ```")
    assert second["text"].startswith("[pi called b c]\n`````\n")


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ((), "is empty: nobody has said anything"),
        (("{",), "cannot be read: line 2: "),
        ((record(type="hologram"),), "records that this program does not know: hologram"),
        (('{"type": "session", "version": 4}',), "has version 4; this program knows 3"),
        ((record().encode("utf-16"),), "cannot be read: line 2: it is not UTF-8"),
    ],
)
def test_a_transcript_that_says_nothing(
    command: Any, written: Any, lines: tuple[Any, ...], why: str
) -> None:
    """One that is empty, damaged or newer than known is refused with the reason; no session is made."""
    written(*lines)
    assert why in refused(command, "--from", "pi", "ab12")
    assert json.loads(command("sessions", "list", "--json").out)["sessions"] == []


def test_links_are_not_followed(command: Any, written: Any, tmp_path: Path) -> None:
    """Neither a file nor a folder that is a link is a transcript, nor is a pipe."""
    path = written(record())
    outside = tmp_path / "outside_cd34.jsonl"
    path.rename(outside)
    path.symlink_to(outside)
    path.parent.with_name("linked").symlink_to(tmp_path, target_is_directory=True)
    for name in ("ab12", "cd34"):
        assert f"no transcript `{name}`" in refused(command, "--from", "pi", name)


def test_a_database_of_strangers(command: Any, home: Path, folder: Path) -> None:
    """Other tables, an endless view and what is no database are refused, each with the reason."""
    path, name = lay("opencode", home.parent, folder), AGENTS["opencode"][0]
    database = sqlite3.connect(path)
    with database:
        database.execute("ALTER TABLE part RENAME TO piece")
    assert "has other tables than this program knows" in refused(
        command, "--from", "opencode", name
    )
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    with database:
        rows = f"({endless}) WHERE i < 0"
        database.execute(
            f"CREATE VIEW part AS SELECT 'm' message_id, '{name}' session_id, "
            f"i id, i data FROM {rows}"
        )
    database.close()
    assert "cannot be read: " in refused(command, "--from", "opencode", name)
    path.write_text("no database " * 100)
    assert "cannot be read: " in refused(command, "--from", "opencode", name)


def test_summaries_branches_and_rollbacks(command: Any, written: Any) -> None:
    """A branch that was left is left out, and a summary stands for what came before it."""

    def spoken(name: str, parent: str | None, text: str, role: str = "user") -> str:
        content = [{"type": "text", "text": text}]
        return record(id=name, parentId=parent, message={"role": role, "content": content})

    written(
        spoken("a", None, "First."),
        spoken("b", "a", "Left.", "assistant"),
        spoken("c", "a", "Kept.", "assistant"),
        spoken("d", "c", "Second."),
        record(type="compaction", id="e", parentId="d", summary="All.", firstKeptEntryId="c"),
        spoken("f", "e", "Third.", "assistant"),
    )
    texts = [
        one["text"] for one in said(command, taken(command, "--from", "pi", "ab12")["session"])
    ]
    whole = "\n".join(texts)
    assert "1 older part" in whole
    assert whole.index("pi's summary") < whole.index("All.") < whole.index("Kept.")
    assert not any(word in whole for word in ("First.", "Left."))
