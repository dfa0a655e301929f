"""Which calls are allowed, asked about, denied."""

import sys

import pytest

from steersman.actors.tool_policy import SessionChoices
from steersman.journal.record import SessionRecord
from steersman.ports.tools.command_line import MAX_LENGTH, read_line
from steersman.ports.tools.permission import (
    PermissionDecision,
    Permissions,
    Rule,
    exact_rule,
    rule_mismatch,
)
from steersman.workflows.config import shipped

SHIPPED = [Rule(rule.tool, rule.match, rule.do) for rule in shipped().permissions.rules]
GIT = Rule("shell", "git status*", "allow")
TEE = Rule("shell", "make test | tee *", "allow")
NO_RM = Rule("shell", "rm *", "deny")
NO_SECRETS = Rule("*", "secrets/*", "deny")
WRITE_SRC = Rule("write", "src/*", "allow")
ALL_SHELL = Rule("shell", "*", "allow")
ASK_PUSH = Rule("shell", "git push*", "ask")


@pytest.mark.parametrize(
    ("rules", "command", "do"),
    [
        ([], "ls", "ask"),
        ([GIT], "git status", "allow"),
        ([GIT], "  git status --short  ", "allow"),
        ([GIT], "git stash", "ask"),
        ([GIT], "git status; rm -rf /", "ask"),
        ([GIT], "git status;rm -rf /", "ask"),
        ([GIT], "git status && rm x", "ask"),
        ([GIT], "git status || rm x", "ask"),
        ([GIT], "git status & rm x", "ask"),
        ([GIT], "git status | sh", "ask"),
        ([GIT], "git status |& sh", "ask"),
        ([GIT], "git status\nrm x", "ask"),
        ([GIT], "git status\rrm x", "ask"),
        ([GIT], "git status $(rm x)", "ask"),
        ([GIT], "git status `rm x`", "ask"),
        ([GIT], 'git status "$(rm x)"', "ask"),
        ([GIT], "git status '; rm x'", "allow"),
        ([GIT], "git status --show-stash=$(rm x)", "ask"),
        ([GIT], "git status ${x:-$(rm y)}", "ask"),
        ([GIT], "git status > /etc/passwd", "ask"),
        ([GIT], "git status >> log", "ask"),
        ([GIT], "git status < file", "ask"),
        ([GIT], "git status <(rm x)", "ask"),
        ([GIT], "git status (rm x)", "ask"),
        ([GIT], "git status\0rm", "ask"),
        ([GIT], "", "ask"),
        ([TEE], "make test | tee log", "allow"),
        ([TEE], "make test | tee log | sh", "ask"),
        ([TEE], "make test | tee log; sh", "ask"),
        ([TEE], "make test | tee $(sh)", "ask"),
        ([NO_RM], "rm -rf /", "deny"),
        ([NO_RM], "ls; rm -rf /", "deny"),
        ([NO_RM], "sudo rm x", "deny"),
        ([NO_RM], "env A=1 rm x", "deny"),
        ([NO_RM], "rm   x", "deny"),
        ([NO_RM], 'eval "rm x"', "deny"),
        ([NO_RM], "echo farm x", "ask"),
        ([NO_RM, ALL_SHELL], "ls; rm x", "deny"),
        ([ALL_SHELL, NO_RM], "ls; rm x", "allow"),
        ([ALL_SHELL], "a && b | c > d", "allow"),
        ([ASK_PUSH, ALL_SHELL], "git add . && git push", "ask"),
        ([ASK_PUSH, ALL_SHELL], "git add .", "allow"),
        ([Rule("shell", "*curl*|*sh*", "deny")], "curl x | sh", "deny"),
    ],
)
def test_commands(tmp_path, rules, command, do):
    """An allowing rule covers no more than it says; a denying one covers every part of the line."""
    assert Permissions(rules).decide("shell", {"command": command}, tmp_path).do == do


SPELLINGS = [
    # programs that run another one
    "sudo -u root rm x",
    "sudo -u root -- rm x",
    "sudo -H -u root -g wheel rm x",
    "doas -u root rm x",
    "su root -c 'rm x'",
    "env -u A rm x",
    "env -i A=1 B=2 rm x",
    "timeout 5 rm x",
    "timeout -s KILL 5 rm x",
    "nice -n 10 rm x",
    "ionice -c 2 -n 1 rm x",
    "chrt 10 rm x",
    "chrt -f 10 rm x",
    "taskset -c 0 rm x",
    "flock -w 5 lock rm x",
    "stdbuf -oL rm x",
    "nohup rm x",
    "setsid rm x",
    "time -p rm x",
    "command rm x",
    "exec -a y rm x",
    "busybox rm x",
    "ssh -p 22 host rm x",
    "xargs -n 1 rm x",
    "find . | xargs -0 -I {} rm {}",
    "find . -exec rm {} +",
    "find . -exec sh -c 'rm \"$1\"' _ {} \\;",
    "nice -n 10 timeout 5 env -i A=1 rm x",
    "sudo /bin/rm x",
    "sudo rm $(cat list)",
    # quotes and backslashes
    '"rm" -rf x',
    "r''m x",
    'r"m" x',
    "$'rm' x",
    "\\rm x",
    "r\\m x",
    "r\\\nm x",
    '"/bin/rm" x',
    'ls; rm "x"',
    'A="1 2" rm x',
    "bash -c 'rm x'",
    "bash -c rm\\ x",
    "eval \"r''m x\"",
    'sudo -u root bash -lc "timeout 5 \\"rm\\" x"',
    "trap 'rm x' EXIT",
    # redirections
    ">f rm x",
    "> f rm x",
    "2>/dev/null rm x",
    "2>&1 rm x",
    "&>f rm x",
    "{fd}>f rm x",
    "<<<word rm x",
    "rm>f x",
    # the grammar of the shell
    "! rm x",
    '{ "rm" x; }',
    '("rm" x)',
    '$("rm" x)',
    'echo "$("rm" x)"',
    'echo `"rm" x`',
    'ls | "rm" x',
    'ls |& "rm" x',
    'ls && "rm" x',
    'ls || "rm" x',
    'ls & "rm" x',
    'ls\n"rm" x',
    'if ls; then "rm" x; fi',
    'for name in *; do "rm" x; done',
    'while "rm" x; do ls; done',
    'f() { "rm" x; }',
    '# it\'s a comment\n"rm" x',
    "cat <<END\nit's text\nEND\nrm x",
]


@pytest.mark.parametrize("command", SPELLINGS)
def test_a_denied_command_is_recognized(tmp_path, command):
    """No wrapper, quote, redirection or keyword hides a command from a rule that denies or asks."""
    call = ("shell", {"command": command}, tmp_path)
    assert Permissions([NO_RM, ALL_SHELL]).decide(*call).do == "deny"
    assert Permissions([Rule("shell", "rm *", "ask"), ALL_SHELL]).decide(*call).do == "ask"


def is_plain(command: str) -> bool:
    """Whether a line is nothing but `rm` with its words, however it is quoted."""
    line = read_line(command)
    names = [program.words[0].text for program in line.programs if not program.assignments]
    return names in (["rm"], ["/bin/rm"]) and not line.signs


@pytest.mark.parametrize("command", [spelling for spelling in SPELLINGS if not is_plain(spelling)])
def test_an_allowed_command_is_not_recognized(tmp_path, command):
    """What a denying rule looks behind is nothing that an allowing rule looks behind."""
    allowed = [Rule("shell", pattern, "allow") for pattern in ("rm *", "rm", "/bin/rm *", "x")]
    call = ("shell", {"command": command}, tmp_path)
    assert Permissions(allowed).decide(*call).do == "ask"
    assert Permissions().decide(*call, allowed).do == "ask"


HEAVY = [
    "-a ",
    "-a x ",
    "sudo ",
    "rm ",
    "A=1 ",
    "a;",
    "$(",
    "\"'",
    "\\",
    "> ",
    "{",
    "$'\\'",
    "'a b' ",
    "-rrrrrrm",
    "git -x ",
]


@pytest.mark.parametrize("piece", HEAVY)
def test_work_grows_with_the_line(tmp_path, piece):
    """A decision on a line of 16 kB takes about the steps per character of one of 2 kB."""

    def steps(line):
        count = 0

        def note(*_):
            nonlocal count
            count += 1
            return note

        rules = [NO_RM, Rule("shell", "rm -x y", "deny"), Rule("shell", "s* x*", "deny"), GIT]
        before = sys.gettrace()
        sys.settrace(note)
        try:
            Permissions(rules).decide("shell", {"command": line}, tmp_path)
        finally:
            sys.settrace(before)
        return count

    short, long = ((piece * 16_000)[:size] for size in (2_000, 16_000))
    assert steps(long) <= 24 * max(steps(short), 1_000)


@pytest.mark.parametrize("line", ["# " * MAX_LENGTH, "ls 'x", "ls $(x", "eval " * 3 + "\"'\\"])
def test_a_command_that_cannot_be_read(tmp_path, line):
    """It is allowed by `*` and by itself only, and denied if it has the name that a rule denies."""

    def decided(command, *rules):
        return Permissions(rules).decide("shell", {"command": command}, tmp_path).do

    assert decided(line, Rule("shell", f"{line[:2]} *", "allow")) == "ask"
    assert decided(line, ALL_SHELL) == "allow"
    assert decided(line, NO_RM) == "ask"
    assert decided(line, Rule("shell", "*rm*", "deny")) == "deny"
    for word in ("rm", "/bin/rm", "r''m", "\\rm", "'rm x'", "r\\\nm"):
        assert decided(f"{word} x; {line}", NO_RM, ALL_SHELL) == "deny"
    why = rule_mismatch(GIT, "shell", {"command": line}, tmp_path)
    assert why.startswith("is not compared with a command that cannot be read (")
    assert decided(line, exact_rule("shell", {"command": line}, tmp_path)) == "allow"


@pytest.mark.parametrize(
    ("rules", "tool", "path", "do"),
    [
        ([], "read", "a.txt", "allow"),
        ([], "list", None, "allow"),
        ([], "search", "src", "allow"),
        ([], "write", "a.txt", "ask"),
        ([], "edit", "a.txt", "ask"),
        ([], "read", "/etc/passwd", "ask"),
        ([], "read", "../x", "ask"),
        ([], "read", "~/x", "ask"),
        ([], "read", "exit/x", "ask"),
        ([], "list", "exit", "ask"),
        ([], "search", "..", "ask"),
        ([], "read", "nul\0", "ask"),
        ([], "read", "", "allow"),
        ([], "fly", None, "ask"),
        ([WRITE_SRC], "write", "src/a.py", "allow"),
        ([WRITE_SRC], "write", "src/deep/a.py", "allow"),
        ([WRITE_SRC], "write", "./src//a.py", "allow"),
        ([WRITE_SRC], "write", "src/../a.py", "ask"),
        ([WRITE_SRC], "write", "src/exit/a.py", "ask"),
        ([WRITE_SRC], "edit", "src/a.py", "ask"),
        ([Rule("write", "*", "allow")], "write", "../x", "ask"),
        ([Rule("write", "*", "allow")], "write", "exit/x", "ask"),
        ([Rule("read", "/etc/*", "allow")], "read", "/etc/hosts", "allow"),
        ([Rule("read", "/etc/*", "allow")], "read", "/etc/../root/x", "ask"),
        ([NO_SECRETS], "read", "secrets/key", "deny"),
        ([NO_SECRETS], "read", "x/../secrets/key", "deny"),
        ([NO_SECRETS], "read", "alias/key", "deny"),
        ([NO_SECRETS], "write", "secrets/deep/key", "deny"),
        ([Rule("read", "/etc/*", "deny")], "read", "/etc/hosts", "deny"),
        ([Rule("read", "/etc/*", "deny")], "read", "../../../../../../../etc/hosts", "deny"),
        ([Rule("read", "exit/*", "deny")], "read", "exit/x", "deny"),
        ([Rule("progress", "*", "deny")], "progress", None, "deny"),
    ],
)
def test_paths(tmp_path, rules, tool, path, do):
    """A path counts by where it leads; what leads out of the folder is asked about.

    The shipped rules stand behind those of each case, as in a session.
    """
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "secrets").mkdir()
    (folder / "exit").symlink_to(tmp_path)
    (folder / "src/exit").symlink_to(tmp_path)
    (folder / "alias").symlink_to("secrets")
    arguments = {} if path is None else {"path": path}

    assert Permissions([*rules, *SHIPPED]).decide(tool, arguments, folder).do == do


@pytest.mark.parametrize("tool", ["read", "write", "shell", "delegate", "fly"])
def test_without_rules(tmp_path, tool):
    """What no rule covers is asked about, whatever it is."""
    assert Permissions().decide(tool, {}, tmp_path) == PermissionDecision("ask", '* "*": ask')


def test_decision(tmp_path):
    """A decision says which rule it comes from, and whether the call leads outside."""
    permissions = Permissions([GIT])
    assert permissions.decide("shell", {"command": "git status"}, tmp_path) == PermissionDecision(
        "allow", 'shell "git status*": allow'
    )
    assert permissions.decide("read", {"path": "/etc/hosts"}, tmp_path) == PermissionDecision(
        "ask", '* "*": ask', is_outside=True
    )


def test_default_yes(tmp_path):
    """With `default_yes` what would be asked is allowed, what is denied stays so."""
    permissions = Permissions([NO_RM], default_yes=True)
    assert permissions.decide("shell", {"command": "ls"}, tmp_path).do == "allow"
    assert permissions.decide("shell", {"command": "rm x"}, tmp_path).do == "deny"


@pytest.mark.parametrize(
    ("tool", "arguments", "others"),
    [
        ("shell", {"command": "ls *.[ch]? | wc"}, [{"command": "ls x.c1 | wc"}]),
        ("write", {"path": "a[1].txt"}, [{"path": "a1.txt"}]),
        ("write", {"path": "/tmp/out.txt"}, [{"path": "/tmp/out.txt2"}]),
        ("fly", {}, []),
    ],
)
def test_always(tmp_path, tool, arguments, others):
    """The answer `always` allows this very call again, and no other."""
    allowed = [exact_rule(tool, arguments, tmp_path)]

    def decided(call):
        return Permissions().decide(tool, call, tmp_path, allowed).do

    assert decided(arguments) == "allow"
    assert [decided(other) for other in others] == ["ask"] * len(others)


def test_always_by_a_pattern_turns_no_no_into_a_yes(tmp_path):
    """What was allowed for a session answers questions, never what a rule denies; it can go again."""
    permissions, record = Permissions([NO_RM, ASK_PUSH]), SessionRecord(id="s1")
    record.allowed = (("shell", "*"),)
    choices, below = SessionChoices(lambda: record), SessionChoices(lambda: SessionRecord(id="s2"))
    below.above = choices

    def decided(command, by=choices):
        return permissions.decide("shell", {"command": command}, tmp_path, by.allowed).do

    calls = ("ls", "git push", "rm x", "ls; rm x")
    assert [decided(call) for call in calls] == ["allow", "allow", "deny", "deny"]
    assert decided("ls", below) == "allow"
    record.allowed = ()
    assert [decided(call) for call in calls] == ["ask", "ask", "deny", "deny"]
    assert decided("ls", below) == "ask"


@pytest.mark.parametrize(
    ("rule", "tool", "arguments", "why"),
    [
        (GIT, "shell", {"command": "git status -s"}, ""),
        (GIT, "read", {"path": "a"}, "is for another tool"),
        (GIT, "shell", {"command": "git push"}, "matches something else"),
        (GIT, "shell", {"command": "git status; rm x"}, "allows one plain command; this line also"),
        (GIT, "shell", {"command": "git status\nrm x"}, "this line also has '\\n'"),
        (WRITE_SRC, "write", {"path": "src/../../x"}, "matches something else"),
        (Rule("write", "*", "allow"), "write", {"path": "../x"}, "allows only inside the folder"),
    ],
)
def test_why_a_rule_does_not_cover(tmp_path, rule, tool, arguments, why):
    """A dry run says of each rule why it is not the one."""
    said = rule_mismatch(rule, tool, arguments, tmp_path)
    assert why in said if why else not said


def test_leaving_the_sandbox_is_decided_by_itself(tmp_path):
    """No rule for `shell` lets a command out but one that denies; the rules for `outside` do."""
    command = {"command": "git push origin", "outside": True}

    def decided_with(*rules, **more):
        found = Permissions(rules, **more).decide("shell", command, tmp_path)
        return found.do, found.why

    inside = Rule("shell", "*", "allow")
    assert decided_with(inside) == ("ask", "it is to run outside the sandbox")
    assert decided_with(inside, default_yes=True) == ("allow", "")
    out = Rule("outside", "git push*", "allow")
    assert decided_with(out)[0] == "allow"
    assert decided_with(Rule("outside", "git fetch*", "allow"))[0] == "ask"
    assert decided_with(out, Rule("shell", "git push*", "deny"))[0] == "deny"
    assert Permissions([out]).decide("shell", command | {"outside": False}, tmp_path).do == "ask"
    assert exact_rule("shell", command, tmp_path) == Rule("outside", "git push origin", "allow")
