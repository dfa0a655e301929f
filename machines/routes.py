"""The two routing tables under one name: everything that decides what a message does.

`STEERSMAN` is in force unless another table was chosen. Other tables are files
(`workflows/table_file.py`); custom routes go in front of any of them (`custom_routes.py`).
"""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from .delivery import DEFAULT_DELIVERIES, Delivery, DeliveryRow, Relation, in_force
from .disposition import DEFAULT_DISPOSITIONS, DispositionRow
from .routing import Table
from .value import Value


class Routes(Value):
    """A named pair of tables; `doc` says in a sentence or two what is peculiar to it."""

    name: str
    doc: str
    dispositions: Table[DispositionRow]
    deliveries: Table[DeliveryRow]

    def in_force(self, interrupt_at: str, is_run: bool = False) -> "Routes":
        """Return the tables with the rows of a session's settings; see `delivery.in_force`."""
        return replace(self, deliveries=in_force(self.deliveries, interrupt_at, is_run))

    def reach(self, cause: str) -> Mapping[str, Delivery]:
        """Map each relation to what a cause gives it; without those that get nothing or have no row."""
        rows = ((relation, self.deliveries.find((cause, relation))) for relation in Relation)
        return {
            relation: row.action
            for relation, row in rows
            if row is not None and row.action != Delivery.NONE
        }


STEERSMAN: Final = Routes(
    name="steersman",
    doc="A converse message never stops a child; a stop reaches every descendant.",
    dispositions=DEFAULT_DISPOSITIONS,
    deliveries=DEFAULT_DELIVERIES,
)
