"""`steersman sessions trace`: the traces of a session that is over, or is still open."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..gateway.home import named_session
from ..gateway.redaction import Redactor
from ..machines.errors import SteersmanError, UsageError
from ..workflows.config import load
from ..workflows.paths import Paths
from ..workflows.registry import EXTENSIONS
from .output import show, show_document
from .stored import stored


def trace_session(environ: Mapping[str, str], session: str, endpoint: str, *, as_json: bool) -> int:
    """Send the spans of a session and its children, or print them. Raises `SteersmanError`."""
    config = load(Paths.of(environ), Path.cwd(), environ)
    telemetry = EXTENSIONS.load("opentelemetry")
    redactor = Redactor(environ, config.key_variables)
    with stored(environ) as store:
        row = named_session(store, session)
        spans = telemetry.stored_spans(store, row.session, config, redactor)
    if as_json:
        show_document(telemetry.as_json(spans))
        return 0
    target = endpoint or config.telemetry.endpoint
    if not target:
        raise UsageError(
            "there is no collector to send to",
            "give `--endpoint URL`, set `telemetry.endpoint`, or print with `--json`",
        )
    if not telemetry.send(spans, target, config, environ):
        raise SteersmanError(
            f"the collector at {redactor.line(target)} did not take the spans of {row.session}",
            "see whether it takes OTLP over HTTP there; a repetition makes the same spans",
        )
    traces = len({span.context.trace for span in spans})
    show(f"{row.session}: {len(spans)} spans in {traces} traces, sent to {redactor.line(target)}")
    return 0
