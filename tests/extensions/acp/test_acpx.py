"""`acpx`, a client of the protocol that people install from npm, at work with `steersman acp`."""

import json
import subprocess

import pytest
from blackbox.conftest import Serve
from extensions.acp.typescript import MODULES, node
from support.driver import COMMAND, Place
from support.model_server import Text, shell
from support.patience import seconds


@pytest.mark.nightly
def test_acpx_has_a_command_run_and_goes_on_with_its_session(place: Place, serve: Serve) -> None:
    """It begins a session, approves the call, prints the answer, and its next prompt has the first."""
    program = MODULES / "acpx" / "dist" / "cli.js"
    if not node() or not program.exists():
        pytest.skip("no acpx, or no Node.js: `.ci/clients/make` installs both")
    server = serve(shell("touch made"), Text("It is made."), Text("I made a file."))
    agent = " ".join((*COMMAND, "acp"))

    def acpx(*arguments: str) -> str:
        ran = subprocess.run(
            [node(), str(program), "--approve-all", "--ttl", "1", "--agent", agent, *arguments],
            cwd=place.folder,
            env=place.environ,
            capture_output=True,
            text=True,
            timeout=seconds(60),
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    acpx("sessions", "new")
    assert "It is made." in acpx("make a file")
    assert (place.folder / "made").exists()
    assert "I made a file." in acpx("what did you do?")
    assert "make a file" in json.dumps(server.requests[-1].body["messages"])
