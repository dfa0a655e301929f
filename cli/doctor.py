"""`steersman doctor`: what is well, what is not, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import asdict

from ..gateway.redaction import Redactor
from .checkup import check_up
from .page import show, show_document


def examine(environ: Mapping[str, str], *, as_json: bool) -> int:
    """Look at this machine and print what was found; exit 1 only if something is bad."""
    redactor = Redactor(environ)
    is_bad = False
    found: list[dict[str, str]] = []
    for finding in check_up(environ):
        is_bad = is_bad or finding.verdict == "bad"
        if as_json:
            found.append(redactor.data(asdict(finding)))
            continue
        show(f"{finding.verdict:<4}  {finding.name:<9} {redactor.text(finding.text)}")
        if finding.hint:
            show(f"{'':<16}{redactor.text(finding.hint)}")
    if as_json:
        show_document({"ok": not is_bad, "checks": found})
    return 1 if is_bad else 0
