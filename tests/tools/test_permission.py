"""Which calls are allowed, asked about, denied."""

import pytest

from steersman.ports.tools.permission import (
    Allowances,
    PermissionDecision,
    Permissions,
    Rule,
    exact_rule,
    rule_mismatch,
    wider_rule,
)
from steersman.workflows.config import shipped

SHIPPED = [Rule(one.tool, one.match, one.do) for one in shipped().permissions.rules]
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
        ([GIT], "git status '; rm x'", "ask"),
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
        ([NO_RM], "ls && rm x", "deny"),
        ([NO_RM], "ls\nrm x", "deny"),
        ([NO_RM], "echo $(rm x)", "deny"),
        ([NO_RM], "echo `rm x`", "deny"),
        ([NO_RM], "(rm x)", "deny"),
        ([NO_RM], "{ rm x; }", "deny"),
        ([NO_RM], "sudo rm x", "deny"),
        ([NO_RM], "sudo -n rm x", "deny"),
        ([NO_RM], "A=1 B=2 rm x", "deny"),
        ([NO_RM], "env A=1 rm x", "deny"),
        ([NO_RM], "find . | xargs rm x", "deny"),
        ([NO_RM], "/bin/rm x", "deny"),
        ([NO_RM], "\\rm x", "deny"),
        ([NO_RM], "rm   x", "deny"),
        ([NO_RM], "if true; then rm x; fi", "deny"),
        ([NO_RM], "bash -c 'rm x'", "deny"),
        ([NO_RM], 'eval "rm x"', "deny"),
        ([NO_RM], "rmdir x", "ask"),
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
    allowed = Allowances([exact_rule(tool, arguments, tmp_path)])

    def decided(call):
        return Permissions().decide(tool, call, tmp_path, allowed).do

    assert decided(arguments) == "allow"
    assert [decided(other) for other in others] == ["ask"] * len(others)


def test_always_by_a_pattern_turns_no_no_into_a_yes(tmp_path):
    """What was allowed for a session answers questions, never what a rule denies; it can go again."""
    permissions, allowed = Permissions([NO_RM, ASK_PUSH]), Allowances()
    wide = wider_rule("shell", "*")
    allowed.add(wide)
    below = Allowances(above=allowed)

    def decided(command, by=allowed):
        return permissions.decide("shell", {"command": command}, tmp_path, by).do

    calls = ("ls", "git push", "rm x", "ls; rm x")
    assert [decided(one) for one in calls] == ["allow", "allow", "deny", "deny"]
    assert decided("ls", below) == "allow"
    allowed.remove(wide)
    assert [decided(one) for one in calls] == ["ask", "ask", "deny", "deny"]
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
