"""Runs of workflows: their plans, their profiles, and the messages that start and resume them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import field
from msgspec.structs import replace

from ..actors.agent_profile import AgentProfile
from ..journal.entries import WorkflowCopy
from ..machines import protocol as m
from ..machines.errors import SteersmanError, UsageError
from ..machines.steps import WORKFLOW, given_in
from ..machines.value import Value
from ..workflows.config import Config, load
from ..workflows.document import parse_document
from ..workflows.flow.spec import WorkflowAction, WorkflowSpec
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
        """The name of the run's session, in place of an agent's name."""
        return f"{WORKFLOW}{self.spec.name}"


def read_run(
    workflow: str,
    variables: Mapping[str, Any] | Sequence[str],
    folder: Path,
    paths: Paths,
    environ: Mapping[str, str],
) -> tuple[RunPlan, Config]:
    """Read a workflow, by name or file, and the configuration of its run in a folder.

    The values of variables are given by name, or as texts `NAME=VALUE`.

    Raises `ConfigError` with every problem of the file, and `UsageError` for unknown variables.
    """
    from ..workflows.flow.check import Surroundings, checked_workflow
    from ..workflows.flow.variables import bind_texts, bind_values
    from ..workflows.flow.workflow_file import find_workflow

    around = Surroundings(paths=paths, folder=folder, environ=environ)
    spec, config = checked_workflow(find_workflow(workflow, paths, folder), around)
    if isinstance(variables, Mapping):
        bound = bind_values(spec, variables)
    else:
        bound = bind_texts(spec, variables)
    return RunPlan(spec=spec, variables=bound), config


def plan_of(copy: WorkflowCopy) -> RunPlan:
    """Return the plan of a journalled workflow. Raises `ConfigError` if this version rejects it."""
    from ..workflows.flow.reading import parse_workflow

    spec = replace(parse_workflow(copy.file, copy.source), folder=copy.folder)
    return RunPlan(spec=spec, variables=copy.variables)


def config_of_run(
    copy: WorkflowCopy, folder: Path, paths: Paths, environ: Mapping[str, str]
) -> Config:
    """Return the configuration with which a journalled workflow goes on. Raises `ConfigError`."""
    from ..workflows.flow.inclusion import with_included
    from ..workflows.flow.reading import settings_layer

    document, _ = parse_document(copy.file, copy.source.encode())
    layer = with_included(settings_layer(document), plan_of(copy).spec, paths)
    return load(paths, folder, environ, workflow=layer)


def included_plan(name: str, above: WorkflowSpec, task: str, paths: Paths) -> RunPlan:
    """Return the plan of a workflow that is a step of another. Raises `SteersmanError`."""
    from ..workflows.flow.inclusion import included_file
    from ..workflows.flow.reading import load_workflow
    from ..workflows.flow.variables import bind_values

    spec = load_workflow(included_file(above, name, paths))
    return RunPlan(spec=spec, variables=bind_values(spec, given_in(name, task)))


def run_profile(bare: AgentProfile, plan: RunPlan, settings: Settings) -> AgentProfile:
    """Return the profile of a run: its policy is configured, its delegation follows from the workflow.

    The agents of the run may delegate as deep as those of a chat.
    """
    included = tuple(
        f"{WORKFLOW}{step.action.name}"
        for step in plan.spec.steps
        if isinstance(step.action, WorkflowAction)
    )
    delegation = replace(
        bare.delegation,
        agents=(*bare.delegation.agents, settings.goals.judge, *included),
        max_depth=bare.delegation.max_depth + 1,
        when_full="wait",
        detached=(),
        timeout=0.0,
    )
    return replace(
        bare,
        model=None,
        system="",
        tools=(),
        policy=replace(bare.policy, is_auto_queue=False),
        delegation=delegation,
        workflow=plan.spec,
        variables=plan.variables,
        helpers=(settings.default_agent, settings.goals.judge),
    )


def start_run(client: SessionClient, workflow: str) -> None:
    """Begin a run that was opened: its first and only item is the run itself."""
    client.send_message(f"run {workflow}", "queue")


def go_on(client: SessionClient, again: Works = (), done: Works = ()) -> None:
    """Start a run that was opened, or continue it: `again` is repeated, `done` is not.

    Raises `SteersmanError` if it cannot continue, `UsageError` if the session is no run.
    """
    record = client.record()
    if record.run is None:
        raise UsageError(f"session `{record.id}` is no run", "`steersman sessions list`")
    if record.run.state != "failed" and not record.queue.items:
        start_run(client, record.run.workflow.name)
        return
    if again:
        _ask(client, m.Reopen(work=again))
    if done:
        _ask(client, m.Reopen(work=done, is_done=True))
    if record.run.state == "failed":
        _ask(client, m.TryAgain(), "start a new run when the cause is repaired")
    elif not _ask(client, m.ResumeQueue()).get("restored"):
        raise SteersmanError("the run cannot continue: nothing of it was interrupted")


def _ask(client: SessionClient, message: m.Message, hint: str = "") -> dict[str, Any]:
    answer = client.ask(message)
    if not answer.get("ok"):
        raise SteersmanError(f"the run cannot continue: {answer.get('reason')}", hint)
    return answer
