"""Chooses how a person, or a program, talks to a session."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from .chat_options import ChatInterface, ChatOptions


def interface_of(options: ChatOptions, environ: Mapping[str, str]) -> tuple[ChatInterface, bool]:
    """Choose the interface to a session, and whether questions can be answered through it."""
    if options.is_json:
        from .json_lines import talk_json

        return talk_json, True
    if options.message or not sys.stdin.isatty():
        from .plain import talk_plain

        return talk_plain, False
    is_dumb = environ.get("TERM", "").lower() in ("dumb", "unknown")
    if options.is_plain or is_dumb or not sys.stdout.isatty():
        from .dumb_terminal import talk_in_lines

        return talk_in_lines, True
    from .prompt import talk_at_prompt

    return talk_at_prompt, True
