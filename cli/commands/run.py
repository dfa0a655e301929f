"""`steersman run`: starts, resumes or only plans a workflow's run."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

from ...gateway.client import SessionClient
from ...gateway.home.home import find_session
from ...gateway.host.host import Host
from ...gateway.launch_options import LaunchOptions
from ...gateway.reach import server_of
from ...gateway.running import RunPlan, Works, config_of_run, go_on, plan_of
from ...journal.entries import WorkflowCopy
from ...journal.record import SessionRecord, apply
from ...journal.recovery import is_cut_off, load_record, recovered
from ...journal.revert_record import OVER, was_taken_back
from ...journal.run_record import RunRecord
from ...machines.errors import SteersmanError, StoreBusy, UsageError
from ...machines.lifecycles import RUN
from ...machines.value import Value
from ...workflows.config import Config
from ...workflows.flow.plan import draw_plan, plan_data, plan_mermaid
from ...workflows.flow.plan import plan_of as planned_steps
from ...workflows.flow.spec import WorkflowSpec
from ...workflows.foreign_file import read_text
from ...workflows.paths import Paths
from ...workflows.registry import EXTENSIONS
from ..chat_options import work_folder
from ..options import Folder, JsonLines, Yes, argument, flag, option, taking
from ..output import show, show_document
from ..signals import until_signal
from ..stored import stored
from ..streams import is_in_background


class RunOptions(Value):
    """The command line of `steersman run`; `again` and `done` name work of unknown outcome.

    `on` is where remote steps run; empty: here.
    """

    file: Annotated[str, argument("[FILE]", "A workflow's file, or the name of one.")] = ""
    var: Annotated[list[str] | None, option("NAME=VALUE", "Set a variable; may be repeated.")] = (
        None
    )
    resume: Annotated[str, option("RUN", "Resume this run, or the `last`.")] = ""
    again: Annotated[list[str] | None, option("ITEM", "Repeat this work of unknown outcome.")] = (
        None
    )
    done: Annotated[list[str] | None, option("ITEM", "Treat this work as done.")] = None
    dry_run: Annotated[bool, flag("--dry-run", "Only show what would be done.")] = False
    on: Annotated[
        str,
        option("CLUSTER", "Where remote steps run: `ray`, `ray:HOST:PORT` or `ray://HOST:PORT`."),
    ] = ""
    cwd: Folder = None
    model: Annotated[str, option("NAME", "A model for all agents.")] = ""
    as_json: JsonLines = False
    yes: Yes = False


RunInterface = Callable[[Host, Callable[[], SessionClient]], int]
"""Opens the run, shows it until its end, and returns the exit code. May raise `SignalExit`."""


def show_plan(run: RunPlan, *, as_json: bool) -> int:
    """Print the steps of a run in their order, as text and as a diagram; nothing runs."""
    plan = planned_steps(run.spec, run.variables)
    if as_json:
        show_document({**plan_data(plan), "variables": dict(run.variables)})
        return 0
    lines = [run.spec.description] if run.spec.description else []
    lines += [f"  {name} = {value}" for name, value in run.variables.items()]
    show("\n".join([*lines, "", draw_plan(plan), "", plan_mermaid(plan)]))
    return 0


Work = tuple[str, int]
"""A step, and the number of an item in it, from 0."""


def chosen_work(run: RunRecord, words: Iterable[str], option: str) -> tuple[Work, ...]:
    """Find the work of unknown outcome that words name: an item, a step, `STEP:NUMBER` or `all`.

    `NUMBER` counts from 1. Raises `UsageError` for a word that names none.
    """
    unknown = run.unknown()
    found: list[Work] = []
    for word in words:
        named = [
            (step, index)
            for step, index in unknown
            if word in ("all", step, f"{step}:{index + 1}", run.steps[step].name(index))
        ]
        if not named:
            known = ", ".join(_name(run, work) for work in unknown) or "none"
            raise UsageError(
                f"`{option} {word}` names no work of unknown outcome", f"there is: {known}"
            )
        found += [work for work in named if work not in found]
    return tuple(found)


def unknown_work(run: RunRecord, spec: WorkflowSpec, decided: Set[Work]) -> list[str]:
    """Name the work that a person has to decide about before the run can continue."""
    free = {step.id for step in spec.steps if step.idempotent}
    left = [work for work in run.unknown() if work not in decided and work[0] not in free]
    return [_name(run, work) for work in left]


def _name(run: RunRecord, work: Work) -> str:
    step, index = work
    record = run.steps[step]
    return f"{record.name(index)} ({step}:{index + 1})" if record.is_many else step


@taking(RunOptions)
def run(options: RunOptions) -> int:
    """Run a workflow; Ctrl-C interrupts it, and --resume continues it.

    Example: steersman run fix-tests --var test='make test'
    """
    _require_sense(options)
    if options.on:
        EXTENSIONS.load("ray").require(options.on)
    folder = work_folder(options.cwd or Path.cwd())
    paths = Paths.of(os.environ)
    if options.resume:
        return _resume(options, paths, folder)
    plan, config = _read(options, paths, folder)
    if options.dry_run:
        return show_plan(plan, as_json=options.as_json)

    def begin(host: Host) -> SessionClient:
        if options.on and not any(step.remote for step in plan.spec.steps):
            host.notices.append(f"no step of {plan.spec.file} has `remote`: all of it runs here")
        conversation = host.begin(folder, plan)
        go_on(conversation)
        return conversation

    variables = dict(plan.variables)
    wanted = {"workflow": plan.spec.file, "variables": variables, "folder": str(folder)}
    return _show(options, paths, config, begin, wanted)


def _require_sense(options: RunOptions) -> None:
    """Refuse options that exclude each other."""
    if options.resume and (options.var or options.dry_run):
        raise UsageError(
            "`--resume` continues a run with its own variables",
            "leave out `--var` and `--dry-run`, or leave out `--resume` to start a new run",
        )
    if not (options.resume or options.file):
        raise UsageError(
            "there is nothing to run", "give a FILE or the name of a workflow, or `--resume last`"
        )
    if (options.again or options.done) and not options.resume:
        raise UsageError(
            "`--again` and `--done` go with `--resume`", "`--resume last --again ITEM`"
        )


def _read(options: RunOptions, paths: Paths, folder: Path) -> tuple[RunPlan, Config]:
    from ...workflows.flow.check import Surroundings, checked_workflow
    from ...workflows.flow.variables import bind_texts
    from ...workflows.flow.workflow_file import find_workflow

    path = find_workflow(options.file, paths, folder)
    spec, config = checked_workflow(
        path, Surroundings(paths=paths, folder=folder, environ=os.environ)
    )
    return RunPlan(spec=spec, variables=bind_texts(spec, options.var or ())), config


def _resume(options: RunOptions, paths: Paths, folder: Path) -> int:
    record, run, older = _find(options.resume, folder, Path(options.file).stem)
    known = {run.workflow.name, Path(run.workflow.file).stem}
    if options.file and Path(options.file).stem not in known:
        raise UsageError(
            f"run `{record.id}` is one of `{run.workflow.name}`, not of `{options.file}`",
            f"`steersman run --resume {record.id}` resumes it",
        )
    plan = plan_of(run.workflow)
    start = f"`{_start_command(plan)}` starts a new run"
    if older:
        start += f"; `steersman run --resume {older}` continues one that did not end"
    if was_taken_back(record.reverts):
        raise SteersmanError(
            f"run `{record.id}` was reverted and cannot be resumed",
            f"`steersman sessions revert {record.id} undo` gives it its changes back; {start}",
        )
    if run.state in RUN.final:
        raise SteersmanError(f"run `{record.id}` has {run.state} already", start)
    work = {
        "again": chosen_work(run, options.again or (), "--again"),
        "done": chosen_work(run, options.done or (), "--done"),
    }
    left = unknown_work(run, plan.spec, {*work["again"], *work["done"]})
    if left:
        raise SteersmanError(
            f"outcome unknown: {', '.join(left)}",
            f"check, then `steersman run --resume {record.id}` with `--again ITEM` to repeat it, "
            "or `--done ITEM` if it was done",
        )
    config = config_of_run(run.workflow, Path(record.folder), paths, os.environ)

    def resume(host: Host) -> SessionClient:
        conversation = host.resume(record.id)
        if _has_changed(run.workflow):
            file = run.workflow.file
            host.notices.append(
                f"{file} was changed since: the run continues with the version that it began with"
            )
        go_on(conversation, work["again"], work["done"])
        return conversation

    return _show(options, paths, config, resume, {"resume_run": record.id}, work)


def _has_changed(copy: WorkflowCopy) -> bool:
    """Whether the workflow's file was changed since the run started."""
    try:
        return read_text(Path(copy.file)) != copy.source
    except (OSError, ValueError):
        return False


def _start_command(plan: RunPlan) -> str:
    """Write the command that starts the same workflow again, with the same variables."""
    usual = plan.spec.variables
    changed = {name: value for name, value in plan.variables.items() if usual.get(name) != value}
    given = [
        f"--var={name}={value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in changed.items()
    ]
    return shlex.join(["steersman", "run", plan.spec.file, *given])


def _find(name: str, folder: Path, workflow: str) -> tuple[SessionRecord, RunRecord, str]:
    """Find a run: the newest of this folder, if there is one of this workflow, or by its id.

    With the newest comes the id of the next newest that can be continued, if there is one.
    """
    older = ""
    with stored(os.environ) as store:
        rows = [row for row in store.sessions() if row.workflow and not row.parent]
        if name == "last":
            rows = [row for row in rows if row.folder == str(folder)]
            rows = [row for row in rows if row.workflow == workflow] or rows
            older = next((row.session for row in rows[1:] if row.run not in OVER), "")
        if not rows:
            where = f" in `{folder}`" if name == "last" else ""
            raise UsageError(f"there is no run{where}", "`steersman run FILE` begins one")
        row = find_session(rows, name)
        if store.is_owned(row.session):
            raise StoreBusy(
                f"run `{row.session}` is open in another program",
                f"leave it there first, or `steersman attach {row.session}` follows it",
            )
        record = load_record(store, row.session)
    if is_cut_off(record):  # show the state that its next owner will find
        apply(record, recovered(record), record.seq + 1, record.updated)
    if record.run is None:
        raise UsageError(f"session `{row.session}` is no run", "`steersman sessions list`")
    return record, record.run, older


def _show(
    options: RunOptions,
    paths: Paths,
    config: Config,
    open_it: Callable[[Host], SessionClient],
    wanted: Mapping[str, Any],
    work: Mapping[str, Works] | None = None,
) -> int:
    """Have the run here, or where the home is served if a person at a keyboard started it.

    `wanted` is the request that opens it at the server, `work` the one that continues it.
    """
    interface, can_ask = _interface(options)
    launch = LaunchOptions(
        model=options.model, is_yes=options.yes, can_ask=can_ask, cluster=options.on
    )
    may_leave = can_ask and not (options.on or options.as_json)
    if may_leave and config.auto_queue.persistence.enabled:
        server = server_of(paths.state)
        if server is not None:
            from ..attach import run_there

            given = {**wanted, "model": options.model, "is_yes": options.yes}
            return run_there(paths, config, server, given, work or {}, os.environ)
    with closing(Host(paths, config, os.environ, launch)) as host:
        return until_signal(lambda: interface(host, lambda: open_it(host)))


def _interface(options: RunOptions) -> tuple[RunInterface, bool]:
    if options.as_json:
        from ..runs.watch import run_json

        return run_json, True
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty() and not is_in_background()
    if is_terminal and os.environ.get("TERM", "").lower() not in ("", "dumb", "unknown"):
        from ..runs.prompt import run_at_prompt

        return run_at_prompt, True
    from ..runs.watch import run_plain

    return run_plain, False
