"""Places for remote steps that are none: the run says so, and does not hang."""

from __future__ import annotations

import json

import pytest
from support.driver import Place
from support.ports import HeldPort
from support.ray_cluster import python

from steersman.extensions.ray.driver import first_sentence
from steersman.extensions.ray.placement import address_of
from steersman.machines.errors import UsageError

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
    [
        ("ray", ""),
        ("ray:auto", "auto"),
        ("ray:h:1", "h:1"),
        ("ray:[::1]:1", "[::1]:1"),
        ("ray://h.example:65535", "ray://h.example:65535"),
    ],
)
def test_addresses_are_what_ray_takes(place: str, address: str) -> None:
    """The client keeps its scheme; the driver's own has none."""
    assert address_of(place) == address


@pytest.mark.parametrize(
    "place",
    [
        *("", "rays", "ray:", "ray:/", "ray://", "slurm:h:1", "ray:h", "ray://h", "ray:h:x"),
        *(
            "ray:h:0",
            "ray:h:65536",
            "ray:::1:1",
            "ray://auto",
            "ray://h/a:1",
            "ray:me@h:1",
            "ray:h:1 ",
        ),
    ],
)
def test_other_addresses_are_refused(place: str) -> None:
    """With the forms that there are."""
    with pytest.raises(UsageError, match="names no cluster"):
        address_of(place)


def test_a_wrong_address_is_a_wrong_command(place: Place) -> None:
    """It is refused before a run begins, with the forms that there are."""
    (place.folder / "one.toml").write_text(FILE)
    ran = place.run("run", "one.toml", "--on", "ray://127.0.0.1")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "`--on ray://127.0.0.1` names no cluster" in ran.stderr
    assert "`ray://HOST:PORT` for Ray's client" in ran.stderr
    assert json.loads(place.run("sessions", "list", "--json").stdout) == {"sessions": []}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("It requires `ray[client]`. If you installed Ray, …", "It requires `ray[client]`"),
        ("Version mismatch: it has:\n  Ray: 2.9\n", "Version mismatch: it has: Ray: 2.9"),
        ("It failed:\nTraceback (most recent call last):\n  F\nE: why\n", "It failed: E: why"),
        ("", "RuntimeError"),
    ],
)
def test_what_ray_says_is_one_sentence(said: str, told: str) -> None:
    """It advises at length about options that steersman does not have, and shows tracebacks."""
    assert first_sentence(RuntimeError(said)) == told


def test_without_ray_nothing_begins(place: Place) -> None:
    """The environment of the tests has no Ray; the message says how to get it."""
    (place.folder / "one.toml").write_text(FILE)
    ran = place.run("run", "one.toml", "--on", "ray")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "Ray is not installed here" in ran.stderr
    assert "[ray]" in ran.stderr
    assert not (place.folder / "began").exists()


@pytest.mark.skipif(python() is None, reason="Ray is not installed: `.ci/ray` does")
@pytest.mark.parametrize("scheme", ["ray:", "ray://"])
def test_an_address_of_nothing_fails_the_step(place: Place, scheme: str) -> None:
    """Soon, with the address, and nothing has begun."""
    place.command = (str(python()), "-m", "steersman")
    (place.folder / "one.toml").write_text(FILE)
    with HeldPort() as closed:
        address = f"{scheme}127.0.0.1:{closed.number}"
        ran = place.run("run", "one.toml", "--on", address)
    assert ran.returncode == 1
    assert "cannot be used: nothing answers there: Connection refused" in ran.stderr
    assert not (place.folder / "began").exists()
