"""The log: what failed, with its trace, without secrets, private, bounded, and told in one line."""

import logging
import os
from collections.abc import Generator
from pathlib import Path

import pytest

from steersman.gateway.host.offline_writer import MOST, OLD, Logbook, log_path
from steersman.workflows.paths import Paths

KEYS = {"OPENAI_API_KEY": "hunter2-hunter2", "MY_MODEL": "swordfish-99"}
LOGGER = logging.getLogger("steersman")


@pytest.fixture
def told() -> list[str]:
    """The line for a person."""
    return []


@pytest.fixture
def book(tmp_path: Path, told: list[str]) -> Generator[Logbook]:
    """A log with `--debug` in a home of its own."""
    paths = Paths.of({"STEERSMAN_HOME": str(tmp_path)})
    made = Logbook(paths, KEYS, ("MY_MODEL",), told.append, is_debug=True)
    assert made.path == log_path(paths)
    yield made
    made.close()


def test_a_bug_is_one_line_and_its_trace_is_logged(
    book: Logbook, told: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """No secret is in either: not of the environment, not of a header."""
    old = os.umask(0)
    try:
        raise ValueError("Authorization: Bearer abcdefghij and swordfish-99 and hunter2-hunter2")
    except ValueError as error:
        LOGGER.error("actor turn died: %s", error, exc_info=error)
    finally:
        os.umask(old)
    text = book.path.read_text()
    assert "Traceback (most recent call last)" in text
    for secret in ("abcdefghij", "swordfish-99", "hunter2-hunter2"):
        assert secret not in text
        assert secret not in told[0]
    assert told[0].startswith("A fault in the program: actor turn died")
    assert str(book.path) in told[0]
    assert book.path.stat().st_mode & 0o777 == 0o600
    assert book.path.parent.stat().st_mode & 0o777 == 0o700
    assert capsys.readouterr().err == ""


def test_its_size_is_bounded(book: Logbook) -> None:
    """Old files go, and each is the user's own."""
    for _ in range(40):
        LOGGER.warning("x" * (MOST // 8))
    files = list(book.path.parent.iterdir())
    assert len(files) == OLD + 1
    assert sum(file.stat().st_size for file in files) <= (OLD + 1) * MOST
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


def test_without_a_fault_there_is_no_file(tmp_path: Path, told: list[str]) -> None:
    """Events are logged with `--debug` only; otherwise nothing is written at all."""
    paths = Paths.of({"STEERSMAN_HOME": str(tmp_path)})
    quiet = Logbook(paths, KEYS, (), told.append)
    quiet.receive({"type": "text"})
    LOGGER.debug("nothing")
    quiet.close()
    assert not quiet.path.exists()
    loud = Logbook(paths, KEYS, (), told.append, is_debug=True)
    loud.receive({"type": "text", "delta": "hunter2-hunter2"})
    loud.close()
    assert '"type": "text"' in loud.path.read_text()
    assert "hunter2" not in loud.path.read_text()
