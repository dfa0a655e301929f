"""Another model for a session that is open, from its next call on; instructions and tools stay."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .agent_profile import AgentProfile

if TYPE_CHECKING:
    from .live_session import LiveSession


async def change_model(live: LiveSession, profile: AgentProfile) -> None:
    """Take the model over from `profile`, with all that depends on it; run on the actors' own loop.

    A call that is on its way ends with the model that it was begun with.
    """
    live.performer.change_model(profile.model, profile.judge)
    environment = live.environment
    environment.price, environment.goals = profile.price, profile.goals
    overhead = live.performer.scene.overhead
    environment.compaction = replace(profile.compaction, overhead=overhead)
    live.profile = replace(
        live.profile,
        model=profile.model,
        judge=profile.judge,
        price=profile.price,
        goals=profile.goals,
        compaction=profile.compaction,
    )
