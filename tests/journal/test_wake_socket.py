"""Doorbells between threads and processes."""

import signal
import threading

import pytest
from support.patience import seconds

from steersman.journal.folder import PrivateFolder
from steersman.journal.presence import WakeSocket, ring
from steersman.machines.errors import StoreBusy


@pytest.fixture
def folder(tmp_path, closing):
    """A private folder at the end of a path far longer than a socket address may be."""
    folder = PrivateFolder.open(tmp_path.joinpath(*["long-name-of-a-folder"] * 12), create=True)
    closing.callback(folder.close)
    return folder


def test_a_ring_ends_the_wait(folder):
    """A ring is heard by who waits, once, and by who comes later, once."""
    bell = WakeSocket(folder, "n1")
    waiting = threading.Thread(target=bell.wait, args=(60,))
    waiting.start()
    assert ring(folder, "n1")
    waiting.join(seconds(30))
    assert not waiting.is_alive()
    assert all(ring(folder, "n1") for _ in range(100))  # more than its queue holds
    bell.wait(seconds(60))
    bell.wait(0)
    bell.close()


def test_closing_ends_the_wait(folder):
    """A bell that is closed lets go of who waits, and its socket is gone."""
    bell = WakeSocket(folder, "n1")
    waiting = threading.Thread(target=bell.wait, args=(60,))
    waiting.start()
    bell.close()
    bell.close()
    waiting.join(seconds(30))
    assert not waiting.is_alive()
    bell.wait(seconds(60))
    assert not list(folder.path.iterdir())


def test_a_node_has_one_bell(folder):
    """A second bell of a living node is refused, and the first still rings."""
    bell = WakeSocket(folder, "n1")
    with pytest.raises(StoreBusy, match="n1"):
        WakeSocket(folder, "n1")
    bell.wait(seconds(60))  # rung by the attempt
    bell.close()


def test_a_dead_bell_is_taken_down(home, opened, children):
    """A wake-up of a killed node removes its socket and returns False."""
    child = children.start("make", home)
    while (line := child.stdout.readline()) != "READY\n":
        assert line, "the child ended early"
    bells = PrivateFolder.open(home / "bells", create=False)
    assert ring(bells, "here")
    child.send_signal(signal.SIGKILL)
    child.wait(seconds(30))
    assert (home / "bells" / "here.sock").exists()
    assert not ring(bells, "here")
    assert not (home / "bells" / "here.sock").exists()
    assert not ring(bells, "here")
    bells.close()


def test_a_process_is_woken_by_another(home, opened, children, make):
    """A post in one process wakes the owner in another."""
    store = opened()
    store.create(make.row("s1"))
    store.claim("s1", "n1")
    assert store.wait("n1", 0) == []
    poster = children.start("post", home, "s1", "p", 1)
    print(file=poster.stdin, flush=True)
    assert store.wait("n1", 60) == ["s1"]
    assert [one.client_id for one in store.unconsumed("s1")] == ["p-0"]
    assert poster.wait(seconds(30)) == 0
