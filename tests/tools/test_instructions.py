"""What AGENTS.md files give to a session's system prompt."""

import os

import pytest

from steersman.ports.instructions import HEAD, has_changed, instructions_of, read_instructions


@pytest.fixture
def deep(tmp_path):
    """A folder two below the root of a repository."""
    folder = tmp_path / "repository/src/deep"
    folder.mkdir(parents=True)
    (tmp_path / "repository/.git").mkdir()
    return folder


def test_nearest_has_the_last_word(deep, tmp_path):
    """The person's own comes first, then from the repository's root down; nothing above the root."""
    own = tmp_path / "config"
    own.mkdir()
    for place, text in [
        (own, "mine"),
        (tmp_path, "above"),
        (deep.parents[1], "top"),
        (deep, "near"),
    ]:
        (place / "AGENTS.md").write_text(f"{text}\n")
    found = read_instructions(deep, own)
    assert found.text == (
        f"{HEAD}\n\n## your own AGENTS.md\n\nmine\n\n## ../../AGENTS.md\n\ntop\n\n## AGENTS.md\n\nnear"
    )
    assert found.told() == (
        "Instructions from your own AGENTS.md (4 characters), ../../AGENTS.md (3 characters), "
        "AGENTS.md (4 characters)."
    )
    system = f"You are.{found.text}"
    assert instructions_of(system) == found.text
    assert not has_changed(found.text, deep, own)
    (deep / "AGENTS.md").unlink()
    assert has_changed(found.text, deep, own)


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_file_under_two_names_is_read_once(deep, tmp_path, link):
    """A link to the parent's file adds nothing; a byte order mark and carriage returns are no text."""
    (deep.parents[1] / "AGENTS.md").write_bytes(b"\xef\xbb\xbftop\r\nend\r\n")
    link(deep.parents[1] / "AGENTS.md", deep / "AGENTS.md")
    found = read_instructions(deep, tmp_path)
    assert found.text == f"{HEAD}\n\n## AGENTS.md\n\ntop\nend"
    assert found.notes == ()


def test_without_a_repository_only_the_folder(tmp_path):
    """Without a repository, files in parent folders are ignored."""
    folder = tmp_path / "here"
    folder.mkdir()
    (tmp_path / "AGENTS.md").write_text("above")
    assert read_instructions(folder, tmp_path / "none").text == ""
    assert instructions_of("You are.") == ""


def test_the_nearest_gets_its_bytes_first(deep, tmp_path):
    """What is too long is cut at a line, and that is said; what has no room is named."""
    (deep.parents[1] / "AGENTS.md").write_text("top\n" * 10)
    (deep / "AGENTS.md").write_text("near\n" * 10)
    found = read_instructions(deep, tmp_path, 30)
    assert found.text.count("near") == 6
    assert found.files == ("AGENTS.md (29 characters, cut)",)
    assert found.notes == ("../../AGENTS.md is not read: there is no room left for it.",)


@pytest.mark.parametrize("kind", ["link", "folder", "pipe", "binary"])
def test_what_is_no_text_of_the_folder_is_not_read(deep, tmp_path, kind):
    """A link that leads out, and what is no text, is left out with a note; nothing hangs."""
    file = deep / "AGENTS.md"
    (tmp_path / "key").write_text("secret")
    match kind:
        case "link":
            file.symlink_to(tmp_path / "key")
        case "folder":
            file.mkdir()
        case "pipe":
            os.mkfifo(file)
        case _:
            file.write_bytes(b"a\0b")
    found = read_instructions(deep, tmp_path)
    assert found.text == ""
    assert found.told().startswith("AGENTS.md is not read: ")


def test_a_link_within_the_repository_is_followed(deep, tmp_path):
    """One file under two names is fine."""
    (deep.parents[1] / "CLAUDE.md").write_text("be brief")
    (deep / "AGENTS.md").symlink_to("../../CLAUDE.md")
    assert "be brief" in read_instructions(deep, tmp_path).text


def test_a_file_imports_others(deep, tmp_path):
    """Each once, behind the one that names it, within the repository, and texts only."""
    top = deep.parents[1]
    (top / "guides").mkdir()
    for name, text in {
        "AGENTS.md": "Read @guides/style.md, (@guides/more.txt). Not `@guides/code.md`, @.env or @up.md",
        "guides/style.md": "short words, as @more.txt says; @../AGENTS.md",
        "guides/more.txt": "more",
        "guides/code.md": "code",
        ".env": "KEY=1",
    }.items():
        (top / name).write_text(text)
    (tmp_path / "outside.md").write_text("outside")
    (top / "up.md").symlink_to(tmp_path / "outside.md")
    found = read_instructions(deep, tmp_path / "none")
    heads = [line for line in found.text.splitlines() if line.startswith("## ")]
    assert heads == ["## ../../AGENTS.md", "## ../../guides/style.md", "## ../../guides/more.txt"]
    assert "KEY=1" not in found.text
    assert found.notes == ("../../up.md is not read: it is a link that leads out of the folder.",)
    assert "../../guides/more.txt (4 characters)" in found.told()


def test_imports_end(deep, tmp_path):
    """What imports itself, or the next one for ever, is read to a bound, and as far as there is room."""
    for number in range(9):
        (deep / f"n{number}.md").write_text(f"{number} @n{number + 1}.md @n{number}.md")
    (deep / "AGENTS.md").write_text("@n0.md")
    found = read_instructions(deep, tmp_path)
    assert found.told().count("characters") == 6
    (deep / "n0.md").write_text("x\n" * 9_000)
    found = read_instructions(deep, tmp_path, limit=1_000)
    assert "n0.md (" in found.told()
    assert ", cut)" in found.told()
    assert len(found.text) < 1_000 + len(HEAD) + 100
