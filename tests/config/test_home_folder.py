"""`~` in what people write: one home folder, however HOME is spelled."""

from pathlib import Path

import pytest

from steersman.machines.errors import ConfigError
from steersman.workflows.home_folder import expanded


@pytest.mark.parametrize(
    ("home", "written", "meant"),
    [
        ("/", "~/.claude", "/.claude"),
        ("/home/ann", "~", "/home/ann"),
        ("/home/ann", "~/a/b", "/home/ann/a/b"),
        ("/home/ann", "~//a", "/home/ann/a"),
        ("/home/ann", "/a", "/a"),
    ],
)
def test_a_home_is_put_in_place(
    home: str, written: str, meant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below the folder of HOME, also if that is the root."""
    monkeypatch.setenv("HOME", home)
    assert str(expanded(written)) == meant


def test_an_account_without_a_home_has_no_such_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mistake says so."""

    def unknown(number: int) -> object:
        raise KeyError(number)

    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", unknown)
    with pytest.raises(ConfigError, match="there is no such home folder"):
        expanded(Path("~/a"))
