"""Work of unknown outcome: which there is, and which of it an argument names."""

from __future__ import annotations

from collections.abc import Iterable, Set

from ..journal.run_record import RunRecord
from ..machines.errors import UsageError
from ..workflows.flow.spec import WorkflowSpec

Work = tuple[str, int]


def chosen_work(run: RunRecord, words: Iterable[str], option: str) -> tuple[Work, ...]:
    """Find the work that words name: an item, a step, `STEP:NUMBER` (from 1), or `all`.

    Raises `UsageError` for a word that names none.
    """
    unknown = run.unknown()
    found: list[Work] = []
    for word in words:
        meant = [work for work in unknown if word in _names(run, work)]
        if not meant:
            known = ", ".join(_name(run, work) for work in unknown) or "none"
            raise UsageError(
                f"`{option} {word}` names no work of unknown outcome", f"there is: {known}"
            )
        found += [work for work in meant if work not in found]
    return tuple(found)


def unknown_work(run: RunRecord, spec: WorkflowSpec, decided: Set[Work]) -> list[str]:
    """Name the work that a person has to decide about before the run can go on."""
    free = {step.id for step in spec.steps if step.idempotent}
    left = [work for work in run.unknown() if work not in decided and work[0] not in free]
    return [_name(run, work) for work in left]


def _names(run: RunRecord, work: Work) -> tuple[str, ...]:
    step, index = work
    return ("all", step, f"{step}:{index + 1}", run.steps[step].name(index))


def _name(run: RunRecord, work: Work) -> str:
    step, index = work
    record = run.steps[step]
    return f"{record.name(index)} ({step}:{index + 1})" if record.is_many else step
