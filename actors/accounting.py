"""A session's account, as its journal has it."""

from __future__ import annotations

from ..journal.record import SessionRecord
from ..machines.conversation import Usage
from ..machines.limits import Account, Limits

__all__ = ["account_of"]


def account_of(record: SessionRecord, limits: Limits) -> Account:
    """Open the account of a session that is taken up, with all that it and its children have used."""
    used = record.whole_usage + Usage(input=record.lost)
    return Account("limits", limits, used=used, seconds=record.seconds, shares=1 + record.grants)
