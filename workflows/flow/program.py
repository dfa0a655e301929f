"""Whether the programs that a workflow runs are there."""

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..fault import Fault, Where
from .spec import AgentAction, RunAction, StepSpec, WorkflowSpec
from .template import is_template

__all__ = ["program_doubts"]


def program_doubts(spec: WorkflowSpec, folder: Path, environ: Mapping[str, str]) -> Iterator[Fault]:
    """Find programs that are not there now; something else may still bring them."""
    for step in spec.steps:
        if is_template(step.cwd):
            continue
        base = folder / step.cwd
        if step.cwd and not os.path.isdir(base):
            message, hint = f"there is no folder `{step.cwd}` now", "a step before it may make it"
            yield Fault(("step", step.number, "cwd"), message, hint)
        for where, program in _programs(step):
            if not is_template(program) and not _is_there(program, base, environ):
                place = "at this path" if "/" in program else "on the PATH"
                hint = f"it was looked for {place}; a step before it may bring it"
                yield Fault(where, f"there is no program `{program}` now", hint)


def _programs(step: StepSpec) -> Iterator[tuple[Where, str]]:
    where: Where = ("step", step.number)
    match step.action:
        case RunAction(words):
            yield (*where, "run"), words[0]
        case AgentAction(_, _, goal) if goal is not None:
            for place, words in enumerate(goal.gates):
                yield (*where, "goal", "gates", place), words[0]
        case _:
            pass


def _is_there(program: str, folder: Path, environ: Mapping[str, str]) -> bool:
    if "/" in program:
        program = str(folder / program)
    return shutil.which(program, path=environ.get("PATH")) is not None
