"""What is sound in a file that has faults, so that the rest of it can be checked as well."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from ..document import is_list, is_table
from ..fault import Where
from .workflow_file import StepLine, WorkflowFile, WorkflowLine


@dataclass(frozen=True, slots=True)
class Salvaged:
    """The sound part of a file; `numbers` are the places of its steps, counted from 0.

    `broken` are the ids of the steps that were left out.
    """

    file: WorkflowFile
    numbers: tuple[int, ...]
    broken: frozenset[str] = frozenset()


def whole(file: WorkflowFile) -> Salvaged:
    """Return a file in which nothing is wrong."""
    return Salvaged(file, tuple(range(len(file.step))))


def salvage(data: Mapping[str, Any], wrong: Iterable[Where]) -> Salvaged:
    """Take what is sound out of the data of a file, in which these paths are wrong."""
    faulty = {where[1] for where in wrong if where[:1] == ("step",) and len(where) > 1}
    lines: list[StepLine] = []
    numbers: list[int] = []
    broken: set[str] = set()
    steps = data.get("step")
    for number, raw in enumerate(steps if is_list(steps) else ()):
        if number not in faulty and is_table(raw):
            lines.append(StepLine.model_validate(raw))
            numbers.append(number)
        elif is_table(raw) and isinstance(name := raw.get("id"), str):
            broken.add(name)
    file = WorkflowFile.model_construct(workflow=_head(data.get("workflow")), step=tuple(lines))
    return Salvaged(file, tuple(numbers), frozenset(broken))


def _head(raw: object) -> WorkflowLine:
    try:
        return WorkflowLine.model_validate(raw)
    except ValidationError:
        variables = raw.get("vars") if is_table(raw) else None
        required = raw.get("required") if is_table(raw) else None
        names = [name for name in required if isinstance(name, str)] if is_list(required) else []
        return WorkflowLine.model_construct(
            vars=variables if is_table(variables) else {}, required=tuple(names)
        )
