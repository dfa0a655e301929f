"""Where files are kept."""

from pathlib import Path

import pytest

from steersman.machines.errors import ConfigError
from steersman.workflows.paths import Paths, make_private, write_private


def test_home_holds_everything(tmp_path: Path) -> None:
    """`STEERSMAN_HOME` has all three folders in it."""
    paths = Paths.of({"STEERSMAN_HOME": str(tmp_path)})
    assert paths == Paths(config=tmp_path, state=tmp_path / "state", cache=tmp_path / "cache")
    assert paths.config_file == tmp_path / "config.toml"


def test_without_home_the_platform_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the platform's own folders are used, all named after the program."""
    monkeypatch.setenv("HOME", "/home/somebody")
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    paths = Paths.of({})
    for folder in (paths.config, paths.state, paths.cache):
        assert folder.is_relative_to("/home/somebody")
        assert "steersman" in folder.parts


def test_private_folders_are_private_at_every_level(tmp_path: Path) -> None:
    """Each folder that is made on the way is closed to others; those that were there stay."""
    before = tmp_path.stat().st_mode
    make_private(tmp_path / "a" / "b")
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b")]
    assert modes == [0o700, 0o700]
    assert tmp_path.stat().st_mode == before


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """A file in the way is a configuration error with a next step."""
    (tmp_path / "a").write_text("in the way")
    with pytest.raises(ConfigError, match="can't be created") as caught:
        make_private(tmp_path / "a" / "b")
    assert "STEERSMAN_HOME" in caught.value.hint


def test_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """A file is replaced in one step and nothing is left beside it; a link is not followed."""
    target = tmp_path / "target"
    target.write_text("theirs")
    (tmp_path / "file").symlink_to(target)
    write_private(tmp_path / "file", b"ours")
    assert (tmp_path / "file").read_bytes() == b"ours"
    assert not (tmp_path / "file").is_symlink()
    assert target.read_text() == "theirs"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "target"]
