"""Which words of a message name a file, and what of the file comes along."""

import os

import pytest

from steersman.machines.conversation import rendered, told
from steersman.ports.attachment import LARGEST, attach
from steersman.ports.tools.permission import Permissions, Rule

READS = [Rule("read", "*", "allow"), Rule("list", "*", "allow")]


@pytest.fixture
def folder(tmp_path):
    """A folder with files to name, and one outside of it."""
    here = tmp_path / "work"
    (here / "src").mkdir(parents=True)
    (here / "a.txt").write_text("one\n")
    (here / "my notes.md").write_text("```\nfenced\n```\n")
    (here / "src/b.py").write_text("b = 1\n")
    (here / "photo.png").write_bytes(b"\x89PNG\0\0")
    (here / "secret").write_text("4711")
    (tmp_path / "out.txt").write_text("outside")
    (here / "link").symlink_to(tmp_path / "out.txt")
    os.mkfifo(here / "pipe")
    return here


def named(text, folder, *rules):
    """Attach what a text names; give paths, refused ones with a minus."""
    permissions = Permissions([*rules, *READS])
    found = attach(text, folder, lambda tool, given: permissions.decide(tool, given, folder))
    return [f"-{one.path}" if one.is_refused else one.path for one in found]


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("look at @a.txt", ["a.txt"]),
        ("@a.txt", ["a.txt"]),
        ("(see @a.txt), and @src/b.py.", ["a.txt", "src/b.py"]),
        ("is it @a.txt? or @a.txt!", ["a.txt"]),
        ("@\"my notes.md\" and @'a.txt'", ["my notes.md", "a.txt"]),
        ("what is in @src and @src/", ["src/"]),
        ("@./src/../a.txt", ["a.txt"]),
        ("mail me@a.txt or ask @ann, @types/node", []),
        ("the decorator `@a.txt` and\n```\n@a.txt\n```", []),
        ("@", []),
        ("@ a.txt @@a.txt", []),
        ('@"missing.txt"', ["-missing.txt"]),
        ("@./missing.txt, please", ["-missing.txt"]),
        ("see @notes.tx or @missing.txt.", ["-missing.txt"]),
        ("@src/missing, @lib/missing @pytest.fixture", ["-src/missing"]),
        ("@photo.png @pipe", ["-photo.png", "-pipe"]),
        ("@nul\0", []),
    ],
)
def test_names(folder, text, paths):
    """Names of what is there come along, each once; other words with an @ are left alone."""
    assert named(text, folder) == paths


def test_outside_and_denied(folder):
    """A path outside needs a rule, also through a link; a deny rule holds; the reason is reported."""
    out = folder.parent / "out.txt"
    assert named(f"@{out} @../out.txt @link", folder) == [f"-{out}"]
    assert named("@link", folder, Rule("read", f"{folder.parent}/*", "allow")) == [str(out)]
    assert named("@secret", folder, Rule("*", "secret", "deny")) == ["-secret"]
    assert named("@src", folder, Rule("list", "*", "deny")) == ["-src"]


def test_sizes_and_fences(folder):
    """A long file is cut at a line, one message holds so much, and no file ends its own quotation."""
    (folder / "big").write_text("0123456789\n" * 10_000)
    for n in range(6):
        (folder / f"big{n}").write_text("x" * 10**6)
    permissions = Permissions(READS)

    def ask(tool, path):
        return permissions.decide(tool, {"path": path}, folder)

    (big,) = attach("@big", folder, ask)
    assert len(big.text) <= LARGEST
    assert big.text.endswith("9")
    assert told([big]) == (
        "Attached big (110.0 kB, only the first 5957 lines; `read` has the rest from offset 5958)."
    )
    (small,) = attach("@big", folder, ask, largest=100)
    assert small.text == "\n".join(["0123456789"] * 9)
    many = attach(" ".join(f"@big{n}" for n in range(6)), folder, ask)
    assert [one.is_refused for one in many] == [False] * 4 + [True] * 2
    assert sum(len(one.text) for one in many) <= 256 * 1024
    (notes,) = attach('@"my notes.md"', folder, ask)
    assert rendered([notes]) == "\n\n[Attached: my notes.md]\n````\n```\nfenced\n```\n````"
    assert told(attach("@photo.png", folder, ask)) == (
        "Not attached: photo.png: it is a binary file of 6 bytes."
    )
