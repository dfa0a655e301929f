"""The nodes of a store in memory: threads of one process, which live until they leave or are lost."""

from collections.abc import Sequence

from msgspec.structs import replace

from ..machines.errors import StoreBusy
from .lock import this_process
from .memory_home import MemoryHome, MemorySession
from .store import Lease, NodeRow, NodeState, check_identifier


class MemoryNodes:
    """See `store.Nodes` for each method. `lose` makes a node look dead, as if its process had died."""

    def __init__(self, home: MemoryHome) -> None:
        self._home = home

    def join(self, node: str, place: str, capacity: int) -> None:
        """Enter a node."""
        check_identifier("node", node)
        with self._home.used():
            nodes = self._home.disk.nodes
            if node in nodes and nodes[node].is_alive:
                raise StoreBusy(f"node `{node}` has joined", "Give each process its own id.")
            now, process = self._home.clock(), this_process(node, 0.0)
            for gone in [row.node for row in self._rows() if not row.is_alive and not row.sessions]:
                del nodes[gone]
            nodes[node] = NodeRow(
                node=node,
                place=place,
                host=process.host,
                pid=process.pid,
                capacity=capacity,
                since=now,
                beat=now,
            )

    def beat(self, node: str) -> bool:
        """Note the time; False if the node is lost."""
        with self._home.used():
            known = self._home.disk.nodes.get(node)
            if known is None or not known.is_alive:
                return False
            self._home.disk.nodes[node] = replace(known, beat=self._home.clock())
            return True

    def direct(self, node: str, state: NodeState) -> bool:
        """Set a node's state, and ring it."""
        check_identifier("node", node)
        with self._home.used():
            known = self._home.disk.nodes.get(node)
            if known is not None:
                self._home.disk.nodes[node] = replace(known, state=state)
                self._home.ring(node)
            return known is not None

    def leave(self, node: str) -> None:
        """Remove the node's row."""
        with self._home.used():
            self._home.disk.nodes.pop(node, None)

    def lose(self, node: str) -> None:
        """Make a node dead: others may take over what it owns, and its commits go on until they do."""
        with self._home.used():
            known = self._home.disk.nodes.get(node)
            if known is not None:
                self._home.disk.nodes[node] = replace(known, is_alive=False)
            for session in [held for held, lease in self._home.owned.items() if lease.node == node]:
                del self._home.owned[session]

    def rows(self) -> list[NodeRow]:
        """List the nodes, dead ones too."""
        with self._home.used():
            return self._rows()

    def claim_many(self, node: str, place: str, limit: int) -> list[Lease]:
        """Claim families that need an owner."""
        check_identifier("node", node)
        with self._home.used():
            wanted = self._families(place)[: max(0, limit)]
            if not wanted:
                return []
            with self._home.write():
                return [self._home.take(session, node) for family in wanted for session in family]

    def release_many(self, leases: Sequence[Lease]) -> None:
        """Give sessions back."""
        with self._home.used():
            held = [lease for lease in leases if self._home.owned.get(lease.session) == lease]
            if not held:
                return
            with self._home.write():
                for lease in held:
                    self._home.disk.sessions[lease.session].node = ""
            for lease in held:
                del self._home.owned[lease.session]

    def at(self, place: str) -> list[str]:
        """List the nodes that may take a session of a place; the store is in use."""
        found = self._home.disk.nodes.values()
        return [
            row.node for row in found if row.state == "active" and (not place or row.place == place)
        ]

    def _rows(self) -> list[NodeRow]:
        claimed = [stored.node for stored in self._home.disk.sessions.values()]
        found = sorted(self._home.disk.nodes.values(), key=lambda row: (row.since, row.node))
        return [replace(row, sessions=claimed.count(row.node)) for row in found]

    def _families(self, place: str) -> list[list[str]]:
        """List what is to be claimed of each family that needs an owner."""
        families: dict[str, dict[str, MemorySession]] = {}
        for session, stored in self._home.disk.sessions.items():
            families.setdefault(stored.root, {})[session] = stored
        found: list[tuple[float, str, list[str]]] = []
        for root, members in families.items():
            top = self._home.disk.sessions.get(root)
            mail = [min(stored.inbox) for stored in members.values() if stored.inbox]
            needs_one = bool(mail) or any(stored.node for stored in members.values())
            is_free = not any(session in self._home.owned for session in members)
            if top is None or top.place not in (place, "") or not needs_one or not is_free:
                continue
            wanted = [
                session
                for session, stored in sorted(members.items())
                if stored.node or stored.inbox or stored.state != "finalized"
            ]
            found.append((min(mail, default=float("inf")), root, wanted))
        return [family for _, _, family in sorted(found)]
