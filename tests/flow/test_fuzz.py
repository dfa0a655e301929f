"""Bytes that are no workflow file are answered with sentences; `soak/fuzz.py` breaks files at random."""

from pathlib import Path

import pytest

from steersman.workflows.document import tell
from steersman.workflows.flow.check import Surroundings, check_file
from steersman.workflows.paths import Paths


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"\x00" * 100, b"[" * 50_000, b"a." * 5_000])
def test_no_bytes_are_answered_with_a_traceback(content: bytes, tmp_path: Path) -> None:
    """Not even what is no text at all."""
    around = Surroundings(
        paths=Paths.of({"STEERSMAN_HOME": str(tmp_path)}), folder=tmp_path, environ={}
    )
    path = tmp_path / "job.toml"
    path.write_bytes(content)
    assert all(tell(error) for error in check_file(path, around).errors)
    assert check_file(tmp_path, around).errors, "a folder is no file"
