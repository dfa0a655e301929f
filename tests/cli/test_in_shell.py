"""What a text for a chat names is a command of a shell there."""

import pytest
from support.echo import walk

from steersman.cli.commands.session_command import in_shell
from steersman.gateway.commands.command import DECLARED


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "No goal. /goal TEXT sets one.",
            "No goal. `steersman goal set TEXT --session 5f` sets one.",
        ),
        ("2 in line: /goal resume begins the next.", None),
        ("`/queue resume 1` goes on.", "`steersman queue resume 1 --session 5f` goes on."),
        (
            "opens it, and `/queue resume` there runs it",
            "opens it, and `/queue resume` there runs it",
        ),
        ("`/queue restore 3255d35a` brings it", "`/queue restore 3255d35a` brings it"),
        ("`/queue resume ID` continues it", "`steersman queue resume ID` continues it"),
        ("`/queue resume 3255d35a`.", "`steersman queue resume 3255d35a`."),
        ("/permissions shows", "/permissions shows"),
        ("/stop stops, /mode changes it", "/stop stops, /mode changes it"),
        ("`/mode` changes it", "`steersman sessions mode 5f` changes it"),
        (
            "`/answer q-t1.w1 ANSWER` answers it; `/steer TEXT` does not",
            "`steersman sessions answer 5f q-t1.w1 ANSWER` answers it; "
            "`steersman send 5f TEXT --as steer` does not",
        ),
        ("Or: `/goal next TEXT`.", "Or: `steersman goal set --next TEXT --session 5f`."),
        (
            "`/queue steer 2` hands #2 over",
            "`steersman queue steer 2 --session 5f` hands #2 over",
        ),
        ("`/stop` ends it", "`steersman stop 5f` ends it"),
        ("`/revert` brings all back", "`steersman sessions revert 5f` brings all back"),
        ("see /queue/resume, a/goal, ./goal and /goals", None),
        (
            "  #5: say what `/queue resume` and /goal TEXT do",
            "  #5: say what `/queue resume` and /goal TEXT do",
        ),
        (
            "#2 [STEERING] → turn t4 from bo: /queue clear",
            "#2 [STEERING] → turn t4 from bo: /queue clear",
        ),
        ("#2 reads now: /goal status", "#2 reads now: /goal status"),
        (
            "#1 [SUPERSEDED]: /queue list (`/queue resume 1` goes on with it)",
            "#1 [SUPERSEDED]: /queue list (`steersman queue resume 1 --session 5f` goes on with it)",
        ),
        (
            "#3 was interrupted: `/queue resume` runs it",
            "#3 was interrupted: `steersman queue resume --session 5f` runs it",
        ),
    ],
)
def test_commands_of_families_are_named_as_the_shell_has_them(text: str, shown: str | None) -> None:
    """What has another form there, or needs an id, stays; so do the words of people."""
    if shown is None:
        shown = text.replace("/goal resume", "`steersman goal resume --session 5f`")
    assert in_shell(text, "5f") == shown


@pytest.mark.parametrize("name", [name for name in DECLARED if " " in name])
def test_what_is_named_is_there(name: str) -> None:
    """Each verb is one of the command line, or stays as it is."""
    shown = in_shell(f"/{name}", "5f").replace(" --session 5f", "")
    there = {f"`steersman {command}`" for command, _ in walk()}
    assert shown in {f"/{name}", *there}
