"""All that is wrong with a workflow before it runs, here and now: in its file, and around it.

Faults stop a run; warnings are about what is probably not meant.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from ..config import Config, try_load
from ..document import Complaint, Document, complain, config_error, read_document
from ..fault import Fault
from ..paths import Paths
from .doubt import crowd_doubts, doubts
from .inclusion import inclusion_faults, with_included
from .program import program_doubts
from .reading import read_workflow, settings_layer
from .spec import AgentAction, JudgeAction, StepSpec, WorkflowSpec

__all__ = ["Checked", "Surroundings", "check_file", "checked_workflow"]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where a workflow is to run: whose configuration, which folder, which environment."""

    paths: Paths
    folder: Path
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found; `spec` and `config` are there as far as they could be made."""

    document: Document
    spec: WorkflowSpec | None
    config: Config | None
    faults: tuple[Complaint, ...]
    warnings: tuple[Complaint, ...]


def check_file(path: Path, around: Surroundings) -> Checked:
    """Check a workflow's file with all it needs; nothing is raised, nothing runs."""
    document, unreadable = read_document(path)
    if unreadable:
        return Checked(document, None, None, tuple(unreadable), ())
    reading = read_workflow(document)
    spec, complaints = reading.spec, [*reading.complaints]
    layer = with_included(settings_layer(document), spec, around.paths)
    config, of_config = try_load(around.paths, around.folder, around.environ, workflow=layer)
    complaints += of_config
    faults = [*_agent_faults(spec, config), *inclusion_faults(spec, around.paths)]
    complaints += complain(document, faults)
    warnings = [*program_doubts(spec, around.folder, around.environ)]
    warnings += crowd_doubts(spec, config.delegation.max_children) if config is not None else ()
    if not complaints:  # otherwise what is not used may well be what is misspelt
        warnings += doubts(spec, reading.uses)
    found = _unique(complaints, document.file)
    return Checked(document, spec, config, found, tuple(complain(document, warnings)))


def checked_workflow(path: Path, around: Surroundings) -> tuple[WorkflowSpec, Config]:
    """Return a workflow that may run, and the configuration it runs with.

    Raises one `ConfigError` that tells every fault.
    """
    checked = check_file(path, around)
    if checked.faults or checked.spec is None or checked.config is None:
        raise config_error(list(checked.faults))
    return checked.spec, checked.config


def _unique(complaints: list[Complaint], file: str) -> tuple[Complaint, ...]:
    """Tell each fault once, those of the workflow itself first, in the order of the text."""
    found: dict[tuple[str, int, int, str], Complaint] = {}
    for one in complaints:
        found.setdefault((one.document.file, one.line, one.column, one.fault.message), one)
    return tuple(
        sorted(found.values(), key=lambda one: (one.document.file != file, one.line, one.column))
    )


def _agent_faults(spec: WorkflowSpec, config: Config | None) -> Iterator[Fault]:
    """Find agents that nobody has declared."""
    if config is None:
        return  # its own faults are told
    for step in spec.steps:
        name, key = _agent_of(step)
        if name and name not in config.agents:
            near = get_close_matches(name, config.agents, 1)
            hint = f"did you mean `{near[0]}`?" if near else ""
            hint = hint or f"add a table `[agents.{name}]`; known: {', '.join(config.agents)}"
            message = f"step `{step.id}` names the agent `{name}`, which is not there"
            yield Fault(("step", step.number, *key), message, hint)


def _agent_of(step: StepSpec) -> tuple[str, tuple[str, ...]]:
    match step.action:
        case AgentAction(_, agent):
            return agent, ("agent",)
        case JudgeAction(_, _, agent):
            return agent, ("judge", "agent")
        case _:
            return "", ()
