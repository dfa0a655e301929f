"""The file of devices and their codes, with a clock of the test's own."""

import os
import re
from contextlib import suppress
from pathlib import Path

import pytest
from starlette.exceptions import HTTPException

from steersman.gateway.commands.command import DECLARED, CommandCall
from steersman.gateway.commands.registry import needing_approval
from steersman.gateway.web.access import CODE_SECONDS, Access, DeviceFile
from steersman.machines.errors import UsageError
from steersman.machines.people import DEFAULT_RIGHTS, Deed, objection


def test_a_code_is_valid_once_and_for_ten_minutes(tmp_path: Path) -> None:
    """It pairs one device; used, replaced, revoked or too old it pairs none."""
    file = DeviceFile(tmp_path / "state")
    code = file.offer("phone", "look", 0.0)
    assert file.redeem(code, CODE_SECONDS) is None
    assert file.redeem(code.lower().replace("-", " "), CODE_SECONDS - 1) is not None
    assert file.redeem(code, 1.0) is None
    replaced, second = file.offer("pad", "look", 0.0), file.offer("pad", "speak", 0.0)
    assert file.redeem(replaced, 1.0) is None
    paired = file.redeem(second, 1.0)
    assert paired is not None
    assert (paired[0].name, paired[0].scope) == ("pad", "speak")
    revoked = file.offer("third", "look", 0.0)
    file.revoke("third")
    assert file.redeem(revoked, 1.0) is None
    assert file.redeem("", 1.0) is None
    assert [device.name for device in DeviceFile(tmp_path / "state").known().devices] == [
        "phone",
        "pad",
    ]


def test_a_code_gives_no_second_device_of_a_name(tmp_path: Path) -> None:
    """A name that was given away meanwhile is not given again."""
    file = DeviceFile(tmp_path)
    code = file.offer("bot", "approve", 0.0)
    file.grant("bot", "look", 0.0)
    assert file.redeem(code, 1.0) is None
    assert [device.scope for device in file.known().devices] == ["look"]


@pytest.mark.parametrize("planted", ["link", "hole", "folder", "pipe"])
def test_a_file_that_was_planted_admits_nobody(tmp_path: Path, planted: str) -> None:
    """A link is not followed, a pipe is not waited for; the message names the file."""
    other, state = tmp_path / "other", tmp_path / "state"
    DeviceFile(other).grant("thief", "approve", 0.0)
    state.mkdir(0o700)
    place = state / "devices.json"
    if planted == "link":
        place.symlink_to(other / "devices.json")
    elif planted == "hole":
        place.symlink_to(tmp_path / "nowhere")
    elif planted == "folder":
        place.mkdir()
    else:
        os.mkfifo(place)
    with pytest.raises(UsageError, match=r"devices\.json"):
        DeviceFile(state).known()


def test_a_lock_that_was_planted_is_not_followed(tmp_path: Path) -> None:
    """What the link names is not made."""
    state = tmp_path / "state"
    state.mkdir(0o700)
    (state / "devices.lock").symlink_to(tmp_path / "made")
    with pytest.raises(UsageError, match=r"devices\.lock"):
        DeviceFile(state).grant("bot", "look", 0.0)
    assert not (tmp_path / "made").exists()


def test_each_command_is_for_whoever_may_approve_unless_it_is_shared(tmp_path: Path) -> None:
    """On a device, and in a room, where a stranger may not even speak; gates are never shared."""
    file = DeviceFile(tmp_path)
    access = Access(file, ())
    file.grant("speaker", "speak", 0.0)
    file.grant("owner", "approve", 0.0)
    speaker, owner = file.known().devices
    shared = set[str]()
    for name, command in DECLARED.items():
        call = CommandCall(command=command, arguments={})
        access.check_command(owner, call)
        with suppress(HTTPException):
            access.check_command(speaker, call)
            shared.add(name)
        deed = Deed.APPROVE if needing_approval(call) else Deed.SPEAK
        assert objection((), deed, "stranger", "")
        assert bool(objection(DEFAULT_RIGHTS, deed, "ann", "")) == (name not in shared)
    assert shared == {name for name, command in DECLARED.items() if command.is_shared}
    page = (Path(__file__).parents[2] / "docs" / "serving.md").read_text("utf-8")
    named = {name.strip("`/") for name in re.findall(r"`/[a-z -]+`", page)} | {"answer"}
    families = {name for name in named if " " not in name}
    needing = {name for name in DECLARED if name not in shared} - named
    assert {name for name in needing if name.partition(" ")[0] not in families} == set()
    with pytest.raises(HTTPException, match="needs approve"):
        access.check_command(
            speaker, CommandCall(command=DECLARED["goal"], arguments={"gates": "x"})
        )
