"""What a process needs to run a workflow: what stands where an agent would, and how one is found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import field
from msgspec.structs import replace

from ..actors.agent_profile import AgentProfile
from ..actors.runs.work import WORKFLOW, given_in
from ..journal.entries import WorkflowCopy
from ..journal.record import SessionRecord
from ..machines.errors import SteersmanError
from ..machines.messages import Message, ResumeQueue
from ..machines.policy import DelegationPolicy
from ..machines.value import Value
from ..machines.workflow_messages import Reopen, TryAgain
from ..workflows.flow.spec import StepSpec, WorkflowAction, WorkflowSpec
from ..workflows.paths import Paths
from ..workflows.settings import Settings
from .client import SessionClient

Works = tuple[tuple[str, int], ...]
"""Work of unknown outcome: pairs of a step and the index of an item."""


class RunPlan(Value):
    """A workflow that may run, and the values of its variables."""

    spec: WorkflowSpec
    variables: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def name(self) -> str:
        """What its session is called where others have the name of their agent."""
        return f"{WORKFLOW}{self.spec.name}"


def plan_of(copy: WorkflowCopy) -> RunPlan:
    """Read a plan back from a journal. Raises `ConfigError` where this version reads it otherwise."""
    from ..workflows.flow.reading import parse_workflow

    spec = replace(parse_workflow(copy.file, copy.source), folder=copy.folder)
    return RunPlan(spec=spec, variables=copy.variables)


def included_plan(name: str, above: WorkflowSpec, task: str, paths: Paths) -> RunPlan:
    """Find a workflow that is a step of another. Raises `SteersmanError`."""
    from ..workflows.flow.inclusion import included_file
    from ..workflows.flow.reading import load_workflow
    from ..workflows.flow.variables import bind_values

    spec = load_workflow(included_file(above, name, paths))
    return RunPlan(spec=spec, variables=bind_values(spec, given_in(name, task)))


def run_profile(bare: AgentProfile, plan: RunPlan, settings: Settings) -> AgentProfile:
    """Return what a run goes by: how it takes messages is configured, how it delegates is declared.

    Its agents may delegate as deep as others do.
    """
    return replace(
        bare,
        model=None,
        system="",
        tools=(),
        policy=replace(bare.policy, is_auto_queue=False),
        delegation=_delegation(bare.delegation, plan.spec),
        workflow=plan.spec,
        variables=plan.variables,
        helpers=(settings.default_agent, settings.goals.judge),
    )


def start_run(client: SessionClient, workflow: str) -> None:
    """Begin a run that was opened: its first and only item is the run itself."""
    client.send_message(f"run {workflow}", "queue")


def try_again(ask: Callable[[Message], dict[str, Any]]) -> None:
    """Go on with a run that failed. Raises `SteersmanError` where it can't."""
    answer = ask(TryAgain())
    if not answer.get("ok"):
        raise SteersmanError(
            f"the run cannot continue: {answer.get('reason')}",
            "start a new run when the cause is repaired",
        )


def was_taken_back(record: SessionRecord) -> bool:
    """Whether what a run changed was given back, so that what is done is not done any more."""
    reverts = [revert.outcome for revert in record.reverts.values() if revert.outcome is not None]
    whole = [done for done in reverts if done.scope != "last" and not done.is_dry_run]
    return bool(whole) and whole[-1].scope == "turn" and bool(whole[-1].restored)


def resume_run(ask: Callable[[Message], dict[str, Any]], again: Works, done: Works) -> None:
    """Go on with a run that was interrupted. Raises `SteersmanError` where it can't."""
    orders: list[Message] = [Reopen(work=again)] if again else []
    orders += [Reopen(work=done, is_done=True)] if done else []
    answer: dict[str, Any] = {}
    for order in (*orders, ResumeQueue()):
        answer = ask(order)
        if not answer.get("ok"):
            raise SteersmanError(f"the run cannot continue: {answer.get('reason')}")
    if not answer.get("restored"):
        raise SteersmanError("the run cannot continue: nothing of it was interrupted")


def _delegation(usual: DelegationPolicy, spec: WorkflowSpec) -> DelegationPolicy:
    included = (_included(step) for step in spec.steps)
    return replace(
        usual,
        agents=(*usual.agents, *filter(None, included)),
        max_depth=usual.max_depth + 1,
        when_full="wait",
        detached=(),
        timeout=0.0,
    )


def _included(step: StepSpec) -> str:
    action = step.action
    return f"{WORKFLOW}{action.name}" if isinstance(action, WorkflowAction) else ""
