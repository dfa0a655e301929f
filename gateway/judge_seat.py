"""Goals as they are configured: what they go by, and who judges them."""

from __future__ import annotations

from ..machines.policy import GoalPolicy
from ..ports.judging import INSTRUCTIONS, JudgeSeat
from ..ports.models.choice import Choice
from ..ports.models.model import Model
from ..workflows.config import Config

__all__ = ["goal_policy", "seat"]


def goal_policy(config: Config, choice: Choice | None) -> GoalPolicy:
    """Return what goals go by; `choice` is the model that a judge without one of its own uses."""
    goals = config.goals
    own = config.models.get(config.agent(goals.judge).model)
    provider = own.provider if own is not None else choice.config.provider if choice else ""
    return GoalPolicy(
        goals.max_turns,
        goals.max_tokens,
        goals.max_minutes,
        goals.gates,
        provider == "local",  # so small a model can't be trusted with a verdict
        goals.max_judge_failures,
        goals.max_failed_turns,
        goals.judge_timeout,
        goals.gate_timeout,
        goals.backoff,
        goals.backoff_limit,
        goals.max_wait,
    )


def seat(config: Config, model: Model) -> JudgeSeat:
    """Return who judges; an agent with words of its own is told those, and how to answer."""
    system = config.agent(config.goals.judge).system
    return JudgeSeat(model, f"{system}\n{INSTRUCTIONS}".strip())
