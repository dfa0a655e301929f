"""`steersman sessions trace`: the traces of a session that is over, or is still open."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..gateway.home.home import named_session
from ..gateway.telemetry import otlp
from ..gateway.telemetry.feed import Translations, headers_of, history
from ..gateway.wording.redaction import Redactor
from ..machines.errors import SteersmanError, UsageError
from ..workflows.config import load
from ..workflows.paths import Paths
from .output import show, show_document
from .stored import stored


def trace_session(environ: Mapping[str, str], session: str, endpoint: str, *, as_json: bool) -> int:
    """Send the spans of a session and its children, or print them. Raises `SteersmanError`.

    The configured headers are only sent to the configured collector.
    """
    config = load(Paths.of(environ), Path.cwd(), environ)
    settings = config.telemetry
    redactor = Redactor(environ, config.key_variables)
    with stored(environ) as store:
        row = named_session(store, session)
        translations = Translations(store, config, redactor)
        spans = list(history(store, row.session, translations))
    if as_json:
        show_document(otlp.as_json(spans))
        return 0
    target = endpoint or settings.endpoint
    if not target:
        raise UsageError(
            "there is no collector to send to",
            "give `--endpoint URL`, set `telemetry.endpoint`, or print with `--json`",
        )
    headers = headers_of(config, environ) if target == settings.endpoint else {}
    if otlp.Sender(target, headers).send(spans) < len(spans):
        raise SteersmanError(
            f"the collector at {redactor.line(target)} did not take the spans of {row.session}",
            "see whether it takes OTLP over HTTP there; a repetition makes the same spans",
        )
    traces = len({span.context.trace for span in spans})
    show(f"{row.session}: {len(spans)} spans in {traces} traces, sent to {redactor.line(target)}")
    return 0
