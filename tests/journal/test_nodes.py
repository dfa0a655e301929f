"""What every store promises to nodes: who lives, which families they get, how mail is answered."""

import threading
from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from support.older_home import make_older
from support.patience import seconds

from steersman.journal.store import Lease, SessionRow, Store
from steersman.machines.errors import MachineError, StoreError, UsageError


def family(store: Store, root: str, *children: str, place: str = "here") -> None:
    """Create a session with its children, the first of which has the others."""
    store.create(SessionRow(session=root, folder="/", place=place))
    for parent, child in zip((root, *children[:1] * len(children)), children, strict=False):
        store.create(SessionRow(session=child, folder="/", parent=parent))


def names(leases: Sequence[Lease]) -> list[str]:
    """Name the sessions of leases, sorted."""
    return sorted(lease.session for lease in leases)


def test_a_family_knows_its_root_and_place(backend, store):
    """Children and their children belong to the session at the top, and are where it is."""
    family(store, "a", "b", "c")
    rows = {row.session: row for row in backend.reopen(store).sessions()}
    assert {name: (row.root, row.place) for name, row in rows.items()} == {
        "a": ("a", "here"),
        "b": ("a", "here"),
        "c": ("a", "here"),
        "s1": ("s1", ""),
    }


def test_no_commit_moves_a_session(store, make):
    """Root and place are those of the creation, whatever a commit's row has there."""
    lease = store.claim("s1", "n1")
    commit = make.commit(lease, 1, 1)
    store.commit([replace(commit, row=replace(commit.row, root="x", place="there"))])
    assert (store.row("s1").root, store.row("s1").place) == ("s1", "")


def test_a_node_is_listed_until_it_leaves(store):
    """A row has what the node said and what the store knows; a directed state is seen."""
    store.nodes.join("n1", "here", 5)
    store.claim("s1", "n1")
    (row,) = store.nodes.rows()
    assert (row.node, row.place, row.capacity, row.state) == ("n1", "here", 5, "active")
    assert (row.is_alive, row.sessions, row.pid > 0) == (True, 1, True)
    assert store.nodes.beat("n1")
    assert store.nodes.rows()[0].beat > row.beat
    assert store.nodes.direct("n1", "draining")
    assert store.nodes.rows()[0].state == "draining"
    store.nodes.leave("n1")
    store.nodes.leave("n1")
    assert store.nodes.rows() == []
    assert not store.nodes.beat("n1")
    assert not store.nodes.direct("n1", "active")


def test_families_of_an_older_home_are_known(home, opened):
    """A home of before families has them after its next start, damaged rows and circles included."""
    store = opened()
    for name, parent in (("a", ""), ("b", "a"), ("c", "b"), ("d", "gone"), ("e", "f"), ("f", "e")):
        store.create(SessionRow(session=name, folder="/", parent=parent))
    store.create(SessionRow(session="g", folder="/"))
    store.close()
    make_older(home / "journal.db", ("UPDATE sessions SET row = 'x' WHERE session = ?", ("g",)))
    with pytest.raises(StoreError, match="earlier version"):
        opened(read_only=True)
    again = opened()
    again.nodes.join("n1", "here", 1)
    roots = {name: again.row(name).root for name in "abcdef"}
    assert roots == {"a": "a", "b": "a", "c": "a", "d": "d", "e": "e", "f": "f"}
    again.post("c", 1, {})
    assert names(again.nodes.claim_many("n1", "here", 1)) == ["a", "b", "c"]


def test_a_killed_owner_is_taken_over(home, opened, children):
    """What a process owned that was killed is claimed with its family, and its node is shown dead."""
    store = opened()
    family(store, "a", "b")
    child = children.start("node", home, "a")
    assert child.stdout.readline() == "READY\n"
    assert store.nodes.claim_many("n1", "here", 9) == []
    child.kill()
    child.wait()
    (row,) = store.nodes.rows()
    assert (row.is_alive, row.sessions) == (False, 1)
    assert names(store.nodes.claim_many("n1", "here", 9)) == ["a", "b"]
    store.nodes.join("n1", "here", 9)
    assert [known.node for known in store.nodes.rows()] == ["n1"]


def test_an_odd_id_does_not_join(store):
    """An odd id is refused."""
    for name in ("../x", ""):
        with pytest.raises(UsageError):
            store.nodes.join(name, "here", 1)


def test_mail_makes_a_family_claimable(store):
    """Of its place, with all members, and once."""
    family(store, "a", "b", "c")
    family(store, "d", place="there")
    assert store.nodes.claim_many("n1", "here", 9) == []
    store.post("c", 1, {})
    store.post("d", 1, {})
    assert store.nodes.claim_many("n1", "elsewhere", 9) == []
    assert store.nodes.claim_many("n1", "here", 0) == []
    leases = store.nodes.claim_many("n1", "here", 9)
    assert names(leases) == ["a", "b", "c"]
    assert store.nodes.claim_many("n2", "here", 9) == []
    assert store.claim("b", "n2") is None
    store.nodes.release_many(leases)
    store.nodes.release_many(leases)
    again = store.nodes.claim_many("n2", "here", 9)
    assert names(again) == ["a", "b", "c"]
    assert all(new.epoch > old.epoch for new, old in zip(again, leases, strict=True))


def test_a_family_with_a_live_owner_is_left(store):
    """Also if only a child of it is owned, and whatever mail it has."""
    family(store, "a", "b")
    store.post("a", 1, {})
    held = store.claim("b", "n1")
    assert store.nodes.claim_many("n2", "here", 9) == []
    store.release(held)
    assert names(store.nodes.claim_many("n2", "here", 9)) == ["a", "b"]


def test_the_oldest_mail_comes_first(store):
    """Up to the limit, which counts families."""
    for name in "abc":
        family(store, name, f"{name}1")
    for name in ("b1", "c", "a"):
        store.post(name, 1, {})
    assert names(store.nodes.claim_many("n1", "here", 1)) == ["b", "b1"]
    assert names(store.nodes.claim_many("n1", "here", 9)) == ["a", "a1", "c", "c1"]


def test_a_session_without_a_place_fits_all(store):
    """As those of a home that is older than places."""
    store.post("s1", 1, {})
    assert names(store.nodes.claim_many("n1", "here", 1)) == ["s1"]


def test_what_is_finalized_is_not_claimed_with_its_family(store, make):
    """Unless it has mail."""
    family(store, "a", "b", "c")
    for child in "bc":
        lease = store.claim(child, "n1")
        commit = make.commit(lease, 1, 1)
        store.commit([replace(commit, row=replace(commit.row, parent="a", state="finalized"))])
        store.release(lease)
    store.post("a", 1, {})
    store.post("c", 1, {})
    assert names(store.nodes.claim_many("n1", "here", 9)) == ["a", "c"]


def test_a_node_wakes_for_a_session_without_owner(store):
    """A post to a session of its place wakes it, though it owns nothing."""
    family(store, "a")
    store.nodes.join("n1", "here", 1)
    assert store.wait("n1", 0) == []
    poster = threading.Thread(target=store.post, args=("a", 1, {}))
    poster.start()
    assert store.wait("n1", 60) == []
    poster.join()
    assert names(store.nodes.claim_many("n1", "here", 1)) == ["a"]


def test_a_reply_comes_with_the_commit(backend, store, make):
    """A message that a commit answers is consumed, and its sender gets the reply, also later."""
    first, second = store.post("s1", 1, {"text": "?"}, "k"), store.post("s1", 1, {})
    assert store.reply(first, 0) is None
    lease = store.claim("s1", "n1")
    commit = make.commit(lease, 1, 1, consumed=(second,))
    assert store.commit([replace(commit, answers={first: {"took": [1]}})]) == [True]
    assert store.unconsumed("s1") == ()
    assert store.reply(first, 0) == {"took": [1]}
    assert store.reply(second, 0) is None
    assert backend.reopen(store).reply(first, 0) == {"took": [1]}


def test_a_reply_can_come_alone(store, make):
    """Before a commit has consumed the message or after; the first one stays."""
    unread, read = store.post("s1", 1, {}), store.post("s1", 1, {})
    lease = store.claim("s1", "n1")
    store.commit([make.commit(lease, 1, 1, consumed=(read,))])
    assert store.answer(lease, unread, {"n": 1})
    assert store.answer(lease, read, {"n": 2})
    assert store.answer(lease, read, {"n": 3})
    assert (store.reply(unread, 0), store.reply(read, 0)) == ({"n": 1}, {"n": 2})
    assert store.unconsumed("s1") == ()
    with pytest.raises(MachineError, match="99"):
        store.answer(lease, 99, {})


def test_only_the_owner_answers(store):
    """A lease that is lost answers nothing."""
    message = store.post("s1", 1, {})
    old = store.claim("s1", "n1")
    store.release(old)
    assert not store.answer(old, message, {})
    assert len(store.unconsumed("s1")) == 1


def test_a_sender_waits_for_the_reply(store):
    """It is woken by it."""
    message = store.post("s1", 1, {})
    lease = store.claim("s1", "n1")
    answering = threading.Thread(target=store.answer, args=(lease, message, {"ok": True}))
    answering.start()
    assert store.reply(message, seconds(60)) == {"ok": True}
    answering.join()


def test_what_is_there_is_found(store, make):
    """Search, sizes and rows of single sessions are the same in every store."""
    store.create(make.row("s2"))
    for session in ("s1", "s2"):
        store.commit([make.commit(store.claim(session, "n1"), 1, 2)])
    assert [(name, entry.seq) for name, entry in store.search("É 2 \N{INBOX TRAY}")] == []
    assert [(name, entry.seq) for name, entry in store.search("NOTED")] == [
        ("s1", 1),
        ("s1", 2),
        ("s2", 1),
        ("s2", 2),
    ]
    assert [(name, entry.seq) for name, entry in store.search("%")] == []
    sizes = store.sizes()
    assert set(sizes) == {"s1", "s2"}
    assert sizes["s1"] == sizes["s2"] > 50
    assert store.row("s2") == store.load("s2").row


def test_a_deleted_session_is_gone(store, make):
    """With its journal and its inbox; only its owner deletes it."""
    lease = store.claim("s1", "n1")
    store.commit([make.commit(lease, 1, 1)])
    store.post("s1", 1, {})
    store.delete(lease)
    assert store.sessions() == []
    assert store.sizes() == {}
    store.create(make.row("s1"))
    assert store.load("s1").unconsumed == ()
