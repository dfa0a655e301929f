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
from ..fault import Fault, faults_of
from ..spelling import suggest
from .graph import order_faults
from .items import item_faults
from .scope import Slot, TemplateUse, handled, read_templates, slots_of, use_faults
from .shape import misfits, step_spec
from .spec import WorkflowSpec
from .workflow_file import WorkflowFile

__all__ = ["Reading", "load_workflow", "parse_workflow", "read_workflow", "settings_layer"]

_OWN = ("workflow", "step")


def load_workflow(path: Path) -> WorkflowSpec:
    """Read a workflow's file. Raises one `ConfigError` that tells every fault of it."""
    document, complaints = read_document(path)
    return _whole(document, complaints)


def parse_workflow(file: str, source: str) -> WorkflowSpec:
    """Read a workflow from its text; `file` is where that came from. Raises as `load_workflow`."""
    return _whole(*parse_document(file, source.encode()))


def _whole(document: Document, complaints: list[Complaint]) -> WorkflowSpec:
    reading = None if complaints else read_workflow(document)
    if reading is None or reading.spec is None or reading.complaints:
        raise config_error(reading.complaints if reading else complaints)
    return reading.spec


@dataclass(frozen=True, slots=True)
class Reading:
    """What a file says: a spec with what its templates use, as far as it has one; what is wrong."""

    spec: WorkflowSpec | None
    uses: list[TemplateUse]
    complaints: list[Complaint]


def read_workflow(document: Document) -> Reading:
    """Make a spec of a parsed file, or say all that is wrong in it."""
    known = tuple(known_keys(WorkflowFile))
    layer = settings_layer(document)
    complaints = check_layer(layer, known)
    own = {key: value for key, value in document.data.items() if key in _OWN}
    try:
        declared = WorkflowFile.model_validate(own)
    except ValidationError as error:
        faults = [one for fault in faults_of(error) for one in suggest(_told(fault), known)]
        return Reading(None, [], _sorted([*complaints, *complain(document, faults)]))
    spec = _spec(document, declared, layer)
    uses = _template_uses(spec)
    faults = list(_faults_together(spec, uses))
    faults += [one for number, line in enumerate(declared.step) for one in misfits(line, number)]
    found = _sorted([*complaints, *complain(document, faults)])
    return Reading(_with_handles(spec, uses), uses, found)


def settings_layer(document: Document) -> Document:
    """Return what a file says for the configuration."""
    data = {key: value for key, value in document.data.items() if key not in _OWN}
    return replace(document, data=data)


def _sorted(complaints: list[Complaint]) -> list[Complaint]:
    return sorted(complaints, key=lambda one: (one.line, one.column))


def _told(fault: Fault) -> Fault:
    """Say what a whole file has to begin with, where that is what is missing."""
    begins = {
        "`workflow` is missing": 'add a table `[workflow]`, with `name = "…"`',
        "`step` is missing": "add a table `[[step]]` for each thing to do",
    }
    return replace(fault, hint=begins.get(fault.message, fault.hint))


def _spec(document: Document, declared: WorkflowFile, layer: Document) -> WorkflowSpec:
    head, path = declared.workflow, Path(document.file)
    name = head.name or re.sub(r"[^A-Za-z0-9_.-]+", "-", path.stem).strip("-.")[:64] or "workflow"
    steps = tuple(step_spec(line, number) for number, line in enumerate(declared.step))
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


def _faults_together(spec: WorkflowSpec, uses: Sequence[TemplateUse]) -> Iterator[Fault]:
    """Look at the steps together: their order, and what their templates use."""
    yield from _head_faults(spec)
    yield from order_faults(spec.steps)
    yield from use_faults(uses, spec.steps, (*spec.variables, *spec.required))
    yield from item_faults(spec)


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
