"""What the templates of a run can use: variables, and what the steps that have ended came to."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ...journal.run_entries import WorkResult
from ...journal.run_record import RunRecord, StepRecord
from ...machines.workflow_step import ENDED
from ...workflows.flow.spec import FIELDS, Kind, Output, StepSpec, WorkflowSpec

_COMMANDS = (Kind.RUN, Kind.SHELL)


class Values:
    """One run's values; what a step came to is worked out once, when it has ended.

    `run_of` returns the run as it is at that moment.
    """

    def __init__(
        self, spec: WorkflowSpec, run_of: Callable[[], RunRecord], session: str, folder: str
    ) -> None:
        self._spec, self._run_of = spec, run_of
        run = run_of()
        self._session = session
        self._steps: dict[str, dict[str, Any]] = {}
        self._fixed = {
            "vars": {**spec.variables, **run.workflow.variables},
            "run": {"id": session, "folder": folder},
            "workflow": {"name": spec.name, "folder": run.workflow.folder},
        }

    def now(self) -> dict[str, Any]:
        """Return all that a template finds now, apart from an item."""
        steps = self._run_of().steps
        for step in self._spec.steps:
            record = steps.get(step.id)
            if step.id not in self._steps and record is not None and record.state in ENDED:
                self._steps[step.id] = _of_step(step, record)
        return {**self._fixed, "steps": self._steps}

    def of_item(self, values: Mapping[str, Any], record: StepRecord, index: int) -> dict[str, Any]:
        """Add an item to what a template finds."""
        if not record.is_many:
            return dict(values)
        return {**values, "item": record.items[index], "index": index}


def read_output(output: Output, text: str) -> Any:
    """Read what a step said as its declaration asks. Raises `ValueError` where it is no JSON."""
    match output.form:
        case "lines":
            return [line for line in text.splitlines() if line.strip()]
        case "json":
            return json.loads(text)
        case _:
            return text.removesuffix("\n")


def _of_step(step: StepSpec, record: StepRecord) -> dict[str, Any]:
    status = record.state
    if step.for_each is None:
        result = record.result(0) if record.total else WorkResult()
        fields = _of_result(step, status, result)
        return {**fields, "error": record.reason or fields["error"]}
    items = [
        {**_of_work(step, record, index), "item": item, "index": index}
        for index, item in enumerate(record.items)
    ]
    first = None
    if step.kind in _COMMANDS:
        codes = (one["exit_code"] for one in items if one["status"] == "failed")
        first = next(codes, next(iter(step.exit_codes), 0))
    return {
        **dict.fromkeys(FIELDS[step.kind]),
        "status": status,
        "error": record.reason,
        "output": [one["output"] for one in items],
        **({"exit_code": first} if step.kind in _COMMANDS else {}),
        "items": items,
        "done": record.count("done"),
        "failed": record.count("failed"),
        "total": record.total,
    }


def _of_work(step: StepSpec, record: StepRecord, index: int) -> dict[str, Any]:
    state = record.state_of(index)
    return _of_result(step, state, record.result(index) if state in ("done", "failed") else None)


def _of_result(step: StepSpec, status: str, result: WorkResult | None) -> dict[str, Any]:
    found = result or WorkResult()
    fields: dict[str, Any] = {"status": status, "error": found.reason}
    fields["output"] = _output(step.output, found.output)
    if step.kind in _COMMANDS:
        fields |= {"exit_code": found.exit_code, "stderr": found.errors}
    more = {name: found.more.get(name, "") for name in FIELDS[step.kind] if name not in fields}
    return {**fields, **more}


def _output(output: Output, text: str) -> Any:
    """Read what was said; of what failed only as far as it can be read."""
    try:
        return read_output(output, text)
    except ValueError:
        return None
