"""Places for remote steps that are none: the run says so, and does not hang."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from support.driver import Place
from support.ray_cluster import python

from steersman.machines.errors import UsageError
from steersman.ports.ray.placement import address_of

FILE = """
[workflow]
name = "one"
[[step]]
id = "a"
run = ["touch", "began"]
remote = {}
"""


@pytest.mark.parametrize(
    ("place", "address"),
    [("ray", ""), ("ray:auto", "auto"), ("ray:h:1", "h:1"), ("ray://h:1", "ray://h:1")],
)
def test_addresses_are_what_ray_takes(place: str, address: str) -> None:
    """The client keeps its scheme; the driver's own has none."""
    assert address_of(place) == address


@pytest.mark.parametrize("place", ["", "rays", "ray:", "ray:/", "ray://", "slurm:h:1"])
def test_other_addresses_are_refused(place: str) -> None:
    """With the forms that there are."""
    with pytest.raises(UsageError, match="names no cluster"):
        address_of(place)


def test_without_ray_nothing_begins(place: Place) -> None:
    """The environment of the tests has no Ray; the message says how to get it."""
    (place.folder / "one.toml").write_text(FILE)
    ran = place.run("run", "one.toml", "--on", "ray")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "Ray is not installed here" in ran.stderr
    assert "pip install 'steersman[ray]'" in ran.stderr
    assert not (place.folder / "began").exists()


@pytest.mark.slow
@pytest.mark.skipif(python() is None, reason="Ray is not installed: `.ci/ray` does")
@pytest.mark.parametrize("scheme", ["ray:", "ray://"])
def test_an_address_of_nothing_fails_the_step(place: Place, scheme: str) -> None:
    """Soon, with the address, and nothing has begun."""
    place.command = (str(python()), "-m", "steersman")
    (place.folder / "one.toml").write_text(FILE)
    with socket.socket() as held:  # a port on which nothing listens
        held.bind(("127.0.0.1", 0))
        address = f"{scheme}127.0.0.1:{held.getsockname()[1]}"
        ran = place.run("run", "one.toml", "--on", address)
    assert ran.returncode == 1
    assert "cannot be used: nothing answers there: Connection refused" in ran.stderr
    assert not (place.folder / "began").exists()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A home and a folder."""
    return Place(tmp_path)
