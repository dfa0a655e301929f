"""The catalogue of weights, and which of its models is usual on a machine."""

import pytest

from steersman.ports.models.weights import PackageSource, catalogue, usual, usual_here, weights_in

GB = 1_000_000_000
SMALL, LARGE = "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"


def test_catalogue_is_complete():
    """Each entry has a size, a SHA-256, a licence, a window and two sources, and the names differ."""
    entries = catalogue()
    assert len({entry.name for entry in entries}) == len(entries)
    assert all(len(entry.sha256) == 64 and entry.size > 1_000_000 for entry in entries)
    assert all(entry.licence == "Apache-2.0" and entry.window for entry in entries)
    assert all(len(entry.sources) == 2 for entry in entries)
    sizes = [entry.size for entry in entries]
    assert sizes == sorted(sizes)


def test_a_piece_has_its_package_and_its_place():
    """The names of the wheel and of the file in it follow from the number."""
    source = PackageSource(package="a-b-part", version="1.0", piece=1)
    assert source.wheel(2) == "a_b_part2-1.0-py3-none-any.whl"
    assert source.member(2) == "a_b_part2/data/part02.bin"
    assert source.member(12) == "a_b_part12/data/part12.bin"


@pytest.mark.parametrize(
    ("memory", "disk", "here", "name", "why"),
    [
        (16 * GB, 100 * GB, (), LARGE, "16 GB of memory and 100 GB of free disk are enough for it"),
        (4 * GB, 100 * GB, (), LARGE, "4.0 GB of memory"),
        (3 * GB, 100 * GB, (), SMALL, "3.0 GB of memory and 100 GB of free disk are enough"),
        (16 * GB, GB, (), SMALL, "1.0 GB of free disk are enough"),
        (GB, GB, (), SMALL, "it is the smallest, and 1.0 GB of memory"),
        (16 * GB, 0, (), SMALL, "it is the smallest"),
        (16 * GB, 100 * GB, (SMALL,), SMALL, "it is here already"),
        (16 * GB, 0, (LARGE,), LARGE, "it is here already"),
        (16 * GB, 0, (SMALL, LARGE), LARGE, "it is here already"),
        (3 * GB, 100 * GB, (SMALL, LARGE), SMALL, "it is here already"),
        (3 * GB, 100 * GB, (LARGE,), SMALL, "enough for it"),
    ],
)
def test_the_largest_is_usual_that_the_machine_has_room_for(memory, disk, here, name, why):
    """What was fetched and fits is kept; else memory and disk decide, and the reason names them."""
    found = usual(memory, disk, here)
    assert found.entry.name == name
    assert why in found.why


def test_the_usual_one_of_this_machine_is_in_the_catalogue(tmp_path):
    """The cache folder need not exist; what has been fetched into it is found."""
    cache = tmp_path / "none" / "cache"
    assert usual_here(cache).entry in catalogue()
    small = catalogue()[0]
    path = weights_in(small, cache)
    path.parent.mkdir(parents=True)
    path.touch()
    assert usual_here(cache).why != "it is here already"
