"""From a workflow's file to its spec, or to all that is wrong in it at once.

Here is what the file alone can tell. Whether its agents, models, programs and other workflows are
there is another question (`check.py`), and one that every machine answers for itself.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from ..config import check_layer
from ..declaration import known_keys
from ..document import Complaint, Document, complain, config_error, parse_document, read_document
from ..fault import Fault, dotted, faults_of
from ..spelling import suggest
from .graph import order_faults
from .habit import translated
from .items import item_faults
from .output_schema import schema_faults
from .salvage import Salvaged, salvage, whole
from .scope import Slot, TemplateUse, handled, read_templates, slots_of, use_faults
from .shape import misfits, step_spec
from .spec import WorkflowSpec
from .workflow_file import WorkflowFile

__all__ = ["Reading", "load_workflow", "parse_workflow", "read_workflow", "settings_layer"]

_OWN = ("workflow", "step")
_KNOWN = tuple(known_keys(WorkflowFile))
_ABSENT = {
    "machine": "machines are the same in every run; what a step may take is said by its `timeout`, "
    "`retry` and `parallel`, a run's by those of `[workflow]`",
}
"""Tables that one might look for."""


def load_workflow(path: Path) -> WorkflowSpec:
    """Read a workflow's file. Raises one `ConfigError` that tells every fault of it."""
    document, complaints = read_document(path)
    return _whole(document, complaints)


def parse_workflow(file: str, source: str) -> WorkflowSpec:
    """Read a workflow from its text; `file` is where that came from. Raises as `load_workflow`."""
    return _whole(*parse_document(file, source.encode()))


def _whole(document: Document, complaints: list[Complaint]) -> WorkflowSpec:
    if complaints:
        raise config_error(complaints)
    reading = read_workflow(document)
    if reading.complaints:
        raise config_error(reading.complaints)
    return reading.spec


@dataclass(frozen=True, slots=True)
class Reading:
    """What a file says: a spec, of what is sound in it, what its templates use, and what is wrong."""

    spec: WorkflowSpec
    uses: list[TemplateUse]
    complaints: list[Complaint]


def read_workflow(document: Document) -> Reading:
    """Make a spec of a parsed file, as far as it is sound, and say all that is wrong in it."""
    layer = settings_layer(document)
    declared, faults = _declared(document)
    spec = _spec(document, declared, layer)
    uses = _template_uses(spec)
    faults += _faults_together(spec, uses, declared.broken)
    for line, number in zip(declared.file.step, declared.numbers, strict=True):
        faults += misfits(line, number)
    complaints = [_with_reason(one) for one in check_layer(layer, _KNOWN)]
    complaints += complain(document, faults)
    found = sorted(complaints, key=lambda one: (one.line, one.column))
    return Reading(_with_handles(spec, uses), uses, found)


def _declared(document: Document) -> tuple[Salvaged, list[Fault]]:
    """Validate what is a workflow's own; what is wrong is left out."""
    own = {key: value for key, value in document.data.items() if key in _OWN}
    try:
        return whole(WorkflowFile.model_validate(own)), []
    except ValidationError as error:
        wrong = [one["loc"] for one in error.errors(include_url=False)]
        faults = [one for fault in faults_of(error) for one in suggest(_told(fault), _KNOWN)]
        return salvage(own, wrong), [translated(one) for one in faults]


def _with_reason(complaint: Complaint) -> Complaint:
    """Say why a table of another kind is not there, to those who look for it."""
    hint = _ABSENT.get(dotted(complaint.fault.where), "")
    if not (hint and complaint.fault.is_unknown):
        return complaint
    return replace(complaint, fault=replace(complaint.fault, hint=hint))


def settings_layer(document: Document) -> Document:
    """Return what a file says for the configuration."""
    data = {key: value for key, value in document.data.items() if key not in _OWN}
    return replace(document, data=data)


def _told(fault: Fault) -> Fault:
    """Say what a whole file has to begin with, where that is what is missing."""
    begins = {
        "`workflow` is missing": 'add a table `[workflow]`, with `name = "…"`',
        "`step` is missing": "add a table `[[step]]` for each thing to do",
    }
    return replace(fault, hint=begins.get(fault.message, fault.hint))


def _spec(document: Document, declared: Salvaged, layer: Document) -> WorkflowSpec:
    head, path = declared.file.workflow, Path(document.file)
    name = head.name or re.sub(r"[^A-Za-z0-9_.-]+", "-", path.stem).strip("-.")[:64] or "workflow"
    lines = zip(declared.file.step, declared.numbers, strict=True)
    steps = tuple(step_spec(line, number) for line, number in lines)
    return WorkflowSpec(
        name,
        document.file,
        str(path.parent.resolve()),
        document.text,
        steps,
        head.description,
        head.vars,
        head.required,
        head.parallel,
        head.timeout,
        head.output,
        layer.data,
    )


def _faults_together(
    spec: WorkflowSpec, uses: Sequence[TemplateUse], broken: frozenset[str]
) -> Iterator[Fault]:
    """Look at the steps together: their order, and what their templates use."""
    yield from _head_faults(spec)
    yield from order_faults(spec.steps, broken)
    yield from use_faults(uses, spec.steps, (*spec.variables, *spec.required), broken)
    yield from item_faults(spec)
    for step in spec.steps:
        yield from schema_faults(step)


def _with_handles(spec: WorkflowSpec, uses: Sequence[TemplateUse]) -> WorkflowSpec:
    looked = {use.slot.where: handled(use) for use in uses}
    steps = tuple(
        replace(
            step, handles=looked.get(("step", step.number, "when"), frozenset()) & {*step.needs}
        )
        for step in spec.steps
    )
    return replace(spec, steps=steps)


def _template_uses(spec: WorkflowSpec) -> list[TemplateUse]:
    """List all templates of a workflow with what they refer to."""
    slots = [slot for step in spec.steps for slot in slots_of(step)]
    if spec.output:
        slots.append(Slot(("workflow", "output"), spec.output, None))
    return list(read_templates(slots))


def _head_faults(spec: WorkflowSpec) -> Iterator[Fault]:
    for number, name in enumerate(spec.required):
        if name in spec.variables:
            message = f"`{name}` is required and has a default"
            yield Fault(("workflow", "required", number), message, "take one of the two away")
