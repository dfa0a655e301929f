"""A step's work in a run: the values of its templates, the effect that begins it, and its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ...journal.child_record import ChildRecord
from ...journal.entries import WorkResult
from ...journal.record import SessionRecord
from ...journal.run_record import StepRecord
from ...machines import protocol as m
from ...machines.errors import TemplateError
from ...machines.json_shape import parse_json, schema_mismatch
from ...machines.steps import ENDED, WORKFLOW, included
from ...machines.verdict import Unusable, read_verdict
from ...workflows.flow.spec import (
    FIELDS,
    AgentAction,
    CallAction,
    JudgeAction,
    Kind,
    Output,
    RemoteNeeds,
    RunAction,
    ShellAction,
    StepSpec,
    WorkflowAction,
    WorkflowSpec,
    inner_path,
)
from ...workflows.flow.template import render, render_value, render_words

if TYPE_CHECKING:
    from ..environment import Environment

COMMAND = "command"
"""The tool by which a step's commands run; no model has it."""
JUDGING = """Judge whether this holds:
{text}
{of}
Answer with one JSON object and nothing else: {{"verdict": "done" or "continue", "reason": "why, in a \
sentence"}}. `done` means that it holds, `continue` that it does not."""
COMMANDS = (Kind.RUN, Kind.SHELL, Kind.CALL)
"""The kinds of steps that are a process."""

Outcome = tuple[str, WorkResult]
"""How an attempt ended: ok or failed, and its result."""

# Values of templates ------------------------------------------------------------------------------


class Values:
    """What the templates of one workflow find: variables, and the results of steps that have ended.

    The result of a step's record is worked out once.
    """

    def __init__(self, spec: WorkflowSpec) -> None:
        self._spec = spec
        self._known: dict[str, tuple[StepRecord, dict[str, Any]]] = {}

    def of(self, record: SessionRecord) -> dict[str, Any]:
        """Return all that a template finds in a session that is a run, apart from an item."""
        run = record.run
        assert run is not None, "a run without a workflow"
        return {
            "vars": {**self._spec.variables, **run.workflow.variables},
            "run": {"id": record.id, "folder": record.folder},
            "workflow": {"name": self._spec.name, "folder": run.workflow.folder},
            "steps": {
                step.id: self._of_step(step, known)
                for step in self._spec.steps
                if (known := run.steps.get(step.id)) is not None and known.state in ENDED
            },
        }

    def _of_step(self, step: StepSpec, record: StepRecord) -> dict[str, Any]:
        known = self._known.get(step.id)
        if known is None or known[0] is not record:
            known = self._known[step.id] = record, _of_step(step, record)
        return known[1]


def with_item(values: dict[str, Any], record: StepRecord, index: int) -> dict[str, Any]:
    """Add an item of a step with several to what a template finds."""
    return {**values, "item": record.items[index], "index": index} if record.is_many else values


def read_output(output: Output, text: str) -> Any:
    """Read a step's output as its declaration asks. Raises `ValueError` where it is no JSON."""
    match output.form:
        case "lines":
            return [line for line in text.splitlines() if line.strip()]
        case "json":
            return parse_json(text)
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
    if "exit_code" in FIELDS[step.kind]:
        codes = (item["exit_code"] for item in items if item["status"] == "failed")
        first = next(codes, next(iter(step.exit_codes), 0))
    return {
        **dict.fromkeys(FIELDS[step.kind]),
        "status": status,
        "error": record.reason,
        "output": [item["output"] for item in items],
        **({"exit_code": first} if "exit_code" in FIELDS[step.kind] else {}),
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
    process = {"exit_code": found.exit_code, "stderr": found.errors}
    fields |= {name: process[name] for name in process if name in FIELDS[step.kind]}
    more = {name: found.more.get(name, "") for name in FIELDS[step.kind] if name not in fields}
    return {**fields, **more}


def _output(output: Output, text: str) -> Any:
    """Read an output; none where it cannot be read, since the step failed."""
    try:
        return read_output(output, text)
    except ValueError:
        return None


# Effects ------------------------------------------------------------------------------------------


def command(
    step: StepSpec, values: Mapping[str, Any], turn: str, epoch: int, call: str
) -> m.RunTool:
    """Return the effect that runs a step's command or function. Raises `TemplateError`."""
    arguments: dict[str, Any]
    match step.action:
        case RunAction(words=words):
            arguments = {"argv": list(render_words(words, values))}
        case ShellAction(text=text):
            arguments = {"argv": ["/bin/sh", "-c", text]}
        case CallAction(place=place, arguments=given):
            given = render_value(dict(given), values)
            folder = values["workflow"]["folder"]
            arguments = {"call": place, "with": given, "folder": folder}
        case _:
            raise AssertionError(step.action)
    if step.env:
        arguments["env"] = {name: render(value, values) for name, value in step.env.items()}
    if step.cwd:
        arguments["cwd"] = render(step.cwd, values)
    if step.timeout:
        arguments["timeout"] = step.timeout
    if step.remote is not None:
        arguments["remote"] = _remote(step.remote, values)
    return m.RunTool(
        turn=turn, epoch=epoch, call=call, tool=COMMAND, arguments=arguments, step=step.id
    )


def _remote(remote: RemoteNeeds, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a command needs where it runs, its paths filled in. Raises `TemplateError`."""
    filled: dict[str, Any] = {
        "cpus": remote.cpus,
        "gpus": remote.gpus,
        "memory": remote.memory or 0,
    }
    for name, texts in (("inputs", remote.inputs), ("outputs", remote.outputs)):
        try:
            paths = [inner_path(path) for path in render_words(texts, values)]
        except ValueError as error:
            raise TemplateError(f"`remote.{name}` {error}") from error
        filled[name] = list(dict.fromkeys(paths))
    return filled


def delegation(
    step: StepSpec,
    values: Mapping[str, Any],
    call: m.Delegate,
    said: str,
    environment: Environment,
) -> m.Delegate:
    """Return the effect that starts a session for a step; `call` has all but its arguments.

    `said` are the steers for the session that starts next. What is filled into its task is as long as a
    tool's result may be. Raises `TemplateError`.
    """
    helpers, longest = environment.helpers, environment.result_limits.of(COMMAND)
    arguments: dict[str, Any] = {}
    match step.action:
        case AgentAction(prompt=prompt, agent=agent, goal=goal):
            given = prompt or (goal.text if goal else "")
            text = render(given, values, longest)
            arguments = {
                "task": "\n\n".join(filter(None, (text, said))),
                "agent": agent or helpers[0],
            }
            if goal is not None:
                arguments["goal"] = {
                    "text": render(goal.text, values, longest),
                    "gates": [list(render_words(gate, values)) for gate in goal.gates],
                    "max_turns": goal.max_turns or 0,
                }
        case JudgeAction(text=text, of=of, agent=agent):
            about = f"\nThis is what it is about:\n{render(of, values, longest)}\n" if of else ""
            task = JUDGING.format(text=render(text, values, longest), of=about)
            arguments = {"task": task, "agent": agent or helpers[1]}
        case WorkflowAction(name=name, variables=variables):
            given = render_value(dict(variables), values)
            arguments = {"task": included(name, given), "agent": f"{WORKFLOW}{name}"}
        case _:
            raise AssertionError(step.action)
    if not arguments["task"].strip():
        raise TemplateError("is empty when it is filled in")
    return replace(call, arguments={**call.arguments, **arguments})


# Outcomes -----------------------------------------------------------------------------------------


def of_command(step: StepSpec, ended: m.ToolResult) -> Outcome:
    """Return the outcome of a command."""
    code = ended.exit_code
    result = WorkResult(output=ended.text, errors=ended.errors, exit_code=code)
    if ended.status == "timed_out":
        return "failed", _because(result, f"it took longer than {step.timeout:g} s")
    if code is None:
        why = ended.text.strip().strip("[]") or "it could not be started"
        return "failed", WorkResult(output="", errors=ended.errors, exit_code=None, reason=why)
    if step.kind is Kind.CALL:
        return _of_call(step, ended)
    if code not in step.exit_codes:
        said = (ended.errors.strip() or ended.text.strip()).splitlines()[-1:]
        signal = f", ended by signal {-code}" if code < 0 else ""
        return "failed", _because(result, ": ".join([f"exit code {code}{signal}", *said]))
    return _checked(step, result, ended)


def _of_call(step: StepSpec, ended: m.ToolResult) -> Outcome:
    """Return the outcome of a function: its result, or the reason why there is none."""
    if ended.exit_code == 0 and ended.text:
        return _checked(step, WorkResult(output=ended.text, errors=ended.errors), ended)
    code = ended.exit_code or 0
    how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
    reason = ended.text or f"its process ended {how} before the function returned"
    return "failed", WorkResult(errors=ended.errors, reason=reason)


def _checked(step: StepSpec, result: WorkResult, ended: m.ToolResult) -> Outcome:
    """Fail where a file is missing, or the output cannot be read as the step declares it."""
    if ended.missing:
        names = ", ".join(f"`{name}`" for name in ended.missing)
        return "failed", _because(result, f"it did not make {names}, of its `outputs`")
    if ended.is_cut and step.output.form != "text":
        reason = "its output exceeds `tools.output_limit`, which is too long to be read"
        return "failed", _because(result, reason)
    return _readable(step, result)


def _readable(step: StepSpec, result: WorkResult) -> Outcome:
    try:
        found = read_output(step.output, result.output)
    except ValueError as error:
        return "failed", _because(result, f"its output is no JSON: {error}")
    fault = schema_mismatch(found, step.output.schema) if step.output.schema else ""
    return ("failed", _because(result, fault)) if fault else ("ok", result)


def _because(result: WorkResult, reason: str) -> WorkResult:
    return WorkResult(
        output=result.output,
        errors=result.errors,
        exit_code=result.exit_code,
        reason=reason,
        more=result.more,
    )


def of_child(step: StepSpec, child: ChildRecord) -> Outcome:
    """Return the outcome of a session."""
    if child.state != "completed":
        reason = child.reason or f"its session was {child.state}"
        return "failed", WorkResult(output=child.text, reason=reason)
    match step.action:
        case JudgeAction():
            return _judged(child.text)
        case WorkflowAction():
            return "ok", WorkResult(output=child.text, more={"run": child.session})
        case _:
            goal = "achieved" if child.goal else ""
            more = {"turns": child.steps, "goal": goal, "reason": child.reason}
            return _readable(step, WorkResult(output=child.text, more=more))


def _judged(text: str) -> Outcome:
    verdict = read_verdict(text)
    if isinstance(verdict, Unusable):
        return "failed", WorkResult(output=text, reason=f"no verdict: {verdict.why}")
    more = {"verdict": verdict.kind, "reason": verdict.reason}
    return "ok", WorkResult(output=verdict.kind, more=more)
