"""The tools read, write, edit and list, on real files."""

import os
import stat

import pytest

from steersman.ports.tools.file_tools import replace_text
from steersman.ports.tools.place import Place, open_file

ODD_NAMES = [
    "plain.txt",
    "-rf",
    "with space",
    "ünïcödé 日本.txt",
    "new\nline",
    "tab\tand\x1b[31mred",
    '"quoted"',
    "$(touch x)",
    ":(glob)x",
    "a" * 255,
    "deep/er/and/deeper.txt",
]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names(bench, name):
    """A file of any name can be written, read, edited and listed, and shows on one line."""
    assert bench.call("write", path=name, content="one\ntwo\n").status == "ok"
    assert bench.call("read", path=name).text == "one\ntwo"
    edited = bench.call("edit", path=name, old="two", new="drei")
    assert (bench.folder / name).read_text() == "one\ndrei\n"
    listing = bench.call("list").text
    assert len(listing.splitlines()) == 3
    assert all(line.isprintable() for line in (*listing.splitlines(), *edited.text.splitlines()))


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("nul\0byte", "a path cannot hold a NUL character"),
        ("", "the path is empty"),
        ("a" * 300, "File name too long"),
        ("half\ud800", "`path` holds half of a character"),
        ("/etc/passwd", "leads outside the session's folder"),
        ("../outside/secret.txt", "leads outside the session's folder"),
        ("x/../../outside/secret.txt", "leads outside the session's folder"),
        ("exit/secret.txt", "leads outside the session's folder"),
        ("exit/new.txt", "leads outside the session's folder"),
        ("leak.txt", "leads outside the session's folder"),
        ("~/secret.txt", "leads outside the session's folder"),
        ("~", "leads outside the session's folder"),
        (".", "is a folder"),
        ("pipe", "is not a regular file"),
    ],
)
@pytest.mark.parametrize("tool", ["read", "write", "edit"])
def test_refused_paths(bench, tool, path, reason):
    """A path that is none, or leads out of the folder, is refused, and nothing changes."""
    os.mkfifo(bench.folder / "pipe")
    arguments = {
        "read": {},
        "write": {"content": "x"},
        "edit": {"old": "secret", "new": "open"},
    }[tool]
    result = bench.call(tool, path=path, **arguments)

    assert result.status == "failed"
    assert reason in result.text
    assert (bench.outside / "secret.txt").read_text() == "secret\n"
    assert [entry.name for entry in bench.outside.iterdir()] == ["secret.txt"]


@pytest.mark.parametrize("path", ["../outside/secret.txt", "exit/secret.txt", "leak.txt"])
def test_leaving_with_permission(bench, path):
    """With permission a path outside the folder is read and written; a symlink stays one."""
    assert bench.call("read", may_leave_folder=True, path=path).text == "secret"
    assert bench.call("write", may_leave_folder=True, path=path, content="new").status == "ok"
    assert (bench.outside / "secret.txt").read_text() == "new"
    assert (bench.folder / "leak.txt").is_symlink()


def test_a_symlink_inside(bench):
    """A symlink that stays in the folder is followed, and stays a symlink."""
    (bench.folder / "real.txt").write_text("old")
    (bench.folder / "link.txt").symlink_to("real.txt")
    assert bench.call("write", path="link.txt", content="new").text == (
        "Replaced `real.txt` (3 bytes, 1 line).\n@@ line 1 @@\n-old\n+new"
    )
    assert (bench.folder / "link.txt").is_symlink()
    assert (bench.folder / "real.txt").read_text() == "new"


def test_a_symlink_planted_after_the_look(bench):
    """A path that has turned into a symlink since it was resolved is not followed."""
    place = Place(bench.folder / "exit" / "secret.txt", "exit/secret.txt", is_outside=False)
    with pytest.raises(NotADirectoryError):
        replace_text(place, b"new")
    with pytest.raises(NotADirectoryError), open_file(place):
        pass
    with (
        pytest.raises(OSError, match="symbolic links"),
        open_file(Place(bench.folder / "leak.txt", "leak.txt", is_outside=False)),
    ):
        pass
    assert (bench.outside / "secret.txt").read_text() == "secret\n"


def test_missing_file(bench):
    """A file that is not there is said to be so, with the names that are, and the one that is meant."""
    (bench.folder / "notes.txt").write_text("x")
    said = (
        "Error: `note.txt`: No such file or directory; did you mean `notes.txt`? in `.` there is: "
    )
    assert bench.call("read", path="note.txt").text == f"{said}exit, leak.txt, notes.txt"
    assert bench.call("list", path="no").text == "Error: `no`: No such file or directory"
    assert bench.call("read", path="leak.txt/x").status == "failed"


def test_read_a_part(bench):
    """`offset` and `limit` count lines from 1, and the text says how to read on."""
    (bench.folder / "many").write_text("".join(f"line {number}\n" for number in range(1, 101)))
    assert bench.call("read", path="many", offset=3, limit=2).text == (
        "line 3\nline 4\n[lines 3-4; more follow, read on with offset 5]"
    )
    assert bench.call("read", path="many", offset=99).text == "line 99\nline 100"
    assert bench.call("read", path="many", offset=101).text == "Error: `many` has only 100 lines"


def test_read_a_huge_file(bench):
    """A huge file and huge lines are cut, and the full size is reported."""
    with open(bench.folder / "huge", "wb") as file:
        file.write(b"x" * 5000 + b"\n" + b"short\n")
        for _ in range(50):
            file.write((b"y" * 1000 + b"\n") * 1000)
    result = bench.call("read", path="huge")

    assert result.bytes == 5001 + 6 + 50 * 1_001_000
    assert "xxx [… 3001 bytes more in this line]\nshort\nyyy" in result.text
    assert result.text.endswith("more follow, read on with offset 4]")
    assert len(result.text) < 5000


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "`file` is empty."),
        (b"\x7fELF\0\1\2", "Error: `file` is a binary file of 7 bytes"),
        (b"caf\xe9\n", "caf\ufffd"),
        (b"one\r\ntwo\r\n", "one\ntwo"),
        (b"\xef\xbb\xbfbom", "\ufeffbom"),
        (b"no end", "no end"),
        (b"\n\n", "\n"),
    ],
)
def test_contents(bench, content, text):
    """Binary files are named as such; text is decoded, never refused."""
    (bench.folder / "file").write_bytes(content)
    assert bench.call("read", path="file").text == text


def test_write(bench):
    """A new file gets its folders and the usual mode; a replaced one keeps its mode."""
    assert bench.call("write", path="a/b/new.sh", content="x\ny").text == (
        "Created `a/b/new.sh` (3 bytes, 2 lines)."
    )
    file = bench.folder / "a/b/new.sh"
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(file.stat().st_mode) == 0o666 & ~umask
    file.chmod(0o751)
    assert bench.call("write", path="a/b/new.sh", content="").text == (
        "Replaced `a/b/new.sh` (0 bytes, 0 lines).\n@@ line 0 @@\n-x\n-y"
    )
    assert stat.S_IMODE(file.stat().st_mode) == 0o751
    assert os.listdir(file.parent) == ["new.sh"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_no_permission(bench):
    """A read-only file or folder stays unchanged, and the reason is reported."""
    file = bench.folder / "fixed"
    file.write_text("old")
    file.chmod(0o444)
    assert bench.call("write", path="fixed", content="new").text == "Error: `fixed` is read-only"
    bench.folder.chmod(0o555)
    assert "Permission denied" in bench.call("write", path="new", content="new").text
    bench.folder.chmod(0o755)
    assert file.read_text() == "old"


def test_edit(bench):
    """An edit replaces exactly one place, keeps the mode, and shows a short diff."""
    file = bench.folder / "code.py"
    file.write_text("".join(f"line {number}\n" for number in range(1, 21)))
    file.chmod(0o700)
    result = bench.call("edit", path="code.py", old="line 10\n", new="line ten\nand more\n")

    assert result.text == (
        "Edited `code.py` (1 replacement).\n"
        "@@ line 8 @@\n line 8\n line 9\n-line 10\n+line ten\n+and more\n line 11\n line 12"
    )
    assert "line 9\nline ten\nand more\nline 11\n" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o700


def test_an_edit_that_misses_shows_the_nearest_lines(bench):
    """The model sees what it should have written."""
    (bench.folder / "file").write_text("first\ndef total(prices):\n    return sum(prices)\n")
    said = bench.call("edit", path="file", old="def total(price):\n  return", new="x").text
    assert said.endswith("the nearest lines are:\ndef total(prices):\n    return sum(prices)")


def test_a_write_that_drops_most_of_a_file_is_refused_once(bench):
    """A model that was asked a question does not replace the file in question; one that means it may."""
    file = bench.folder / "server.log"
    file.write_text("".join(f"line {number}\n" for number in range(130)))
    refused = bench.call("write", path="server.log", content="line 1\nline 2\n")
    assert refused.status == "failed"
    assert "has 130 lines, and this would drop 128 of them; nothing was changed" in refused.text
    assert len(file.read_text()) > 1000
    bench.about = {"is_again": True}
    again = bench.call("write", path="server.log", content="line 1\n")
    assert again.changed[0].removed == 129
    assert file.read_text() == "line 1\n"


def test_a_write_that_changes_nothing_says_so(bench):
    """It touches no file, and counts as no change."""
    (bench.folder / "a.txt").write_text("same\n")
    result = bench.call("write", path="a.txt", content="same\n")
    assert (result.text, result.changed) == ("Unchanged: `a.txt` has just this content.", ())
    (changed,) = bench.call("edit", path="a.txt", old="same", new="other").changed
    assert (changed.path, changed.added, changed.removed, changed.is_new) == ("a.txt", 1, 1, False)
    (made,) = bench.call("write", path="b.txt", content="x\n").changed
    assert (made.added, made.is_new) == (1, True)


def test_edit_must_be_unique(bench):
    """An `old` that occurs never or often is refused, and said where; `all` replaces everywhere."""
    file = bench.folder / "file"
    file.write_text("a\nb\na\n")
    assert bench.call("edit", path="file", old="c", new="d").text == (
        "Error: `old` does not occur in `file`; nothing was changed; read the file again"
    )
    assert bench.call("edit", path="file", old="a", new="d").text == (
        "Error: `old` occurs 2 times in `file`, in lines 1, 3; "
        "give more of its surroundings, or set `all`"
    )
    assert file.read_text() == "a\nb\na\n"
    assert "(2 replacements)" in bench.call("edit", path="file", old="a", new="d", all=True).text
    assert file.read_text() == "d\nb\nd\n"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n", b"x\r\ny\r\nc\r\n"),
        (b"a\r\nb\r\n", "b", "x\ny", b"a\r\nx\r\ny\r\n"),
        (b"a\r\nb\nc\r\n", "b\nc", "x\ny", b"a\r\nx\ny\r\n"),
        (b"a\r\nb\nc\r\n", "a\nb", "x\ny", b"x\r\ny\nc\r\n"),
        (b"caf\xe9 old \xff\n", "old", "new", b"caf\xe9 new \xff\n"),
        ("日本語\n".encode(), "本", "x", "日x語\n".encode()),
    ],
)
def test_edit_keeps_the_rest(bench, before, old, new, after):
    """Line ends and bytes that are no UTF-8 stay as they are."""
    (bench.folder / "file").write_bytes(before)
    bench.call("edit", path="file", old=old, new=new)
    assert (bench.folder / "file").read_bytes() == after


def test_a_large_edit(bench):
    """A change of many lines is reported by its number only, or its diff is cut."""
    file = bench.folder / "file"
    file.write_text("old\n" * 10_000)
    result = bench.call("edit", path="file", old="old", new="new", all=True)
    assert result.text == "Edited `file` (10000 replacements)."
    file.write_text("old\n" * 500)
    result = bench.call("edit", path="file", old="old", new="new", all=True)
    assert len(result.text.splitlines()) == 42
    assert result.text.endswith("[… diff cut]")


def test_list(bench):
    """A folder's entries come sorted, with their kind and size; a symlink shows where it leads."""
    (bench.folder / "sub").mkdir()
    (bench.folder / "b.txt").write_text("12345")
    os.mkdir(os.fsencode(bench.folder) + b"/caf\xe9")
    assert bench.call("list").text.splitlines() == [
        "b.txt  5 bytes",
        "caf\\xe9/",
        f"exit -> {bench.outside}",
        f"leak.txt -> {bench.outside}/secret.txt",
        "sub/",
    ]
    assert bench.call("list", path="sub").text == "`sub` is empty."
    assert bench.call("list", path="b.txt").text == "Error: `b.txt` is a file; use the tool `read`"
    assert "leads outside" in bench.call("list", path="exit").text
    assert bench.call("list", may_leave_folder=True, path="exit").text == "secret.txt  7 bytes"


def test_list_a_large_folder(bench):
    """Of a large folder the first entries are shown, and how many there are."""
    for number in range(600):
        (bench.folder / f"{number:04}").touch()
    rows = bench.call("list").text.splitlines()
    assert len(rows) == 501
    assert rows[-1] == "[500 of 602 entries shown]"


@pytest.mark.parametrize(
    "name", [b"bad\xff.txt", b"new\nline", b"\xfe\n", b" blank ", rb"plain\xff"], ids=repr
)
def test_a_name_is_read_as_it_was_listed(bench, name: bytes) -> None:
    """Read, edit, write and search use the spelling of `list`, also of a folder."""
    inner = bench.folder / os.fsdecode(b"d\xff")
    inner.mkdir()
    (inner / os.fsdecode(name)).write_text("one\n")
    folder = "d\\xff/"
    assert folder in bench.call("list").text.splitlines()
    (row,) = bench.call("list", path=folder).text.splitlines()
    path = folder + row.removesuffix("  4 bytes")
    assert bench.call("read", path=path).text == "one"
    assert bench.call("edit", path=path, old="one", new="two").status == "ok"
    found = bench.call("search", pattern="two").text.splitlines()[0].removesuffix(":1: two")
    assert bench.call("write", path=found, content="three\n").status == "ok"
    assert [file.read_bytes() for file in inner.iterdir()] == [b"three\n"]
