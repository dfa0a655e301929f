"""The type check reads the event contract: a misspelt key does not pass it."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly

BUILDER = ("gateway/events/run.py", "status=run.state", "statsu=run.state", '"statsu"')
READER = ("cli/talk.py", 'event["items"]', 'event["itmes"]', '"itmes"')
FORGETFUL = ("gateway/events/run.py", "run=session, ", "", '"run"')


@pytest.mark.parametrize(
    ("file", "right", "wrong", "named"),
    [BUILDER, READER, FORGETFUL],
    ids=["a builder's misspelt key", "a reader's misspelt key", "a builder's missing key"],
)
def test_a_wrong_key_of_an_event_is_a_type_error(
    file: str, right: str, wrong: str, named: str, root: Path, tmp_path: Path
) -> None:
    """A builder or a reader with a wrong key fails, and the error names the key."""
    source = (root / file).read_text("utf-8")
    assert right in source
    shadow = tmp_path / "shadow.py"
    shadow.write_text(source.replace(right, wrong), "utf-8")
    (tmp_path / "steersman").symlink_to(root)
    checked = f"steersman/{file}"
    settings = ["--config-file", "steersman/pyproject.toml", "--cache-dir", "cache"]
    replaced = ["--follow-imports", "silent", "--shadow-file", checked, str(shadow)]
    run = subprocess.run(
        [sys.executable, "-m", "mypy", *settings, *replaced, checked],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1, run.stderr
    assert named in run.stdout
