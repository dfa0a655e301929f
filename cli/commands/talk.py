"""`steersman chat` and `attach`: how they are typed. What they do is used without Typer, too."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from ...machines.errors import UsageError
from ..options import Agent, Folder, JsonLines, Model, Session, Yes, argument, flag, option


def chat(
    message: Annotated[
        str | None,
        argument(
            "MESSAGE",
            "Send this message, print the answer, exit. Piped input is added to it; with --json its "
            "lines are further messages.",
        ),
    ] = None,
    agent: Agent = "",
    model: Model = "",
    resume_newest: Annotated[
        bool, flag("--continue", "Resume this folder's newest session.")
    ] = False,
    resume: Annotated[str, option("[ID]", "Resume this session; without an ID, choose one.")] = "",
    cwd: Folder = None,
    as_json: JsonLines = False,
    plain: Annotated[bool, flag("--plain", "Print only; each piped line is a message.")] = False,
    yes: Yes = False,
    mode: Annotated[str, option("MODE", "Permission mode: ask, edits, plan or all.")] = "",
    debug: Annotated[bool, flag("--debug", "Log everything, without secrets.")] = False,
) -> int:
    """Talk to an agent.

    Example: steersman chat --continue
    """
    from ..chat import chat as start
    from ..chat_options import ChatOptions

    if message is not None and not message.strip():
        raise UsageError("the message is empty", "leave it out to type messages, or pipe them in")
    options = ChatOptions(
        message=message or "",
        agent=agent,
        model=model,
        is_newest=resume_newest,
        resume=resume,
        folder=cwd or Path.cwd(),
        is_json=as_json,
        is_plain=plain,
        is_yes=yes,
        mode=mode,
        is_debug=debug,
    )
    return start(options, os.environ)


def attach(
    session: Session = "last",
    user: Annotated[str, option("NAME", "Your name; if left out, your login name.")] = "",
    as_json: JsonLines = False,
    plain: Annotated[bool, flag("--plain", "No prompt.")] = False,
) -> int:
    """Follow a session that runs in another terminal, and type into it; leaving leaves it running.

    Example: steersman attach last
    """
    from ..attach import attach as follow

    return follow(os.environ, session, user, is_json=as_json, is_plain=plain)
