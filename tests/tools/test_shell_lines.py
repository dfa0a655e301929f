"""A corpus of shell lines: what runs unasked by which rule, and what a rule that denies sees."""

import random
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import patience

from steersman.ports.tools.command_line import read_line
from steersman.ports.tools.known_words import KnownWords
from steersman.ports.tools.permission import Permissions, Rule, exact_rule, offered_pattern
from steersman.ports.tools.safe_programs import programs
from steersman.ports.tools.shell_rule import unseen

CORPUS = tomllib.loads(Path(__file__).with_name("shell_lines.toml").read_text("utf-8"))
FOLDER = Path("/work")


def verdict(command: str, *rules: Rule) -> str:
    """Return what is done with a line."""
    return Permissions(rules).decide("shell", {"command": command}, FOLDER).do


def always(command: str) -> Rule:
    """Return the rule that the answer `always` to a line makes."""
    pattern = offered_pattern("shell", {"command": command}, FOLDER)
    return (
        Rule("shell", pattern, "allow")
        if pattern
        else exact_rule("shell", {"command": command}, FOLDER)
    )


Case = tuple[tuple[Rule, ...], dict[str, str]]
"""Rules, and what they do with each line."""


def cases() -> Iterator[Case]:
    """Read the rows of the corpus."""
    for row in (*CORPUS["everyday"], *CORPUS["narrower"], *CORPUS["rule"]):
        rule = Rule("shell", row["match"], "allow") if "match" in row else always(row["first"])
        runs = [*row.get("runs", ()), *([row["first"]] if "first" in row else [])]
        yield (rule,), dict.fromkeys(runs, "allow") | dict.fromkeys(row.get("asks", ()), "ask")
    for table, do in (
        ("denied", "deny"),
        *dict.fromkeys(("hidden", "harmless", "unseen"), "allow").items(),
    ):
        for row in CORPUS[table]:
            rules = (Rule("shell", row["match"], "deny"), Rule("shell", "*", "allow"))
            yield rules, dict.fromkeys(row["lines"], do)


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: str(case[0][0]))
def test_lines(case: Case) -> None:
    """No line runs beyond what its rule says, and no everyday line is asked about again."""
    rules, verdicts = case
    assert {line: verdict(line, *rules) for line in verdicts} == verdicts


def test_the_corpus_is_large() -> None:
    """It has what people type, and attacks on it."""
    assert sum(len(verdicts) for _, verdicts in cases()) >= 700


EVERYDAY, QUESTIONS, QUESTIONS_BEFORE = 280, 74, 127
"""Lines, and what is asked about them; and what was at 57320f49, before calls were words."""


def test_no_more_is_asked_than_before_calls_were_words() -> None:
    """Of the everyday lines in order, where each question is answered with `always`; as the page says."""
    lines = [line for row in CORPUS["everyday"] for line in (row["first"], *row.get("runs", ()))]
    rules = list[Rule]()
    for line in lines:
        if verdict(line, *rules) == "ask":
            rules.append(always(line))
    assert (len(lines), len(rules)) == (EVERYDAY, QUESTIONS)
    assert len(rules) < QUESTIONS_BEFORE
    page = (Path(__file__).parents[2] / "docs" / "permissions.md").read_text("utf-8")
    assert f"{EVERYDAY} everyday lines, {QUESTIONS} are asked about" in " ".join(page.split())
    assert f"({QUESTIONS_BEFORE} before" in page


@pytest.mark.parametrize("key", CORPUS["options"])
def test_a_dangerous_option_is_never_offered(key: str) -> None:
    """Whatever its form and place, it is neither covered by the pattern for its program nor offered."""
    glue = "*" if " " in key else " *"
    rule = Rule("shell", f"{key}{glue}", "allow")
    for option in CORPUS["options"][key]:
        for words in (
            option,
            f"{option}=x",
            f"{option} x",
            f"{option}x",
            f"a {option}",
            f"'{option}' x",
        ):
            assert verdict(f"{key} {words}", rule) == "ask", words
            assert offered_pattern("shell", {"command": f"{key} {words}"}, FOLDER) == ""


READERS = """\

git add|describe|ls-files|ls-tree|merge-base|rev-parse|status|log|show|rev-list|diff|grep|branch|blame
git shortlog|cat-file|tag, git stash list|show, git remote get-url, git submodule status, printf
file, find, sort, uniq, tree, rg, fd, flake8, gofmt, systemctl status, gh pr|issue view|status|list
pip|pip3 show, python -m pip show, uv pip show, npm|pnpm ls|list, yarn list|why
npm outdated|view|info|explain, pnpm|yarn outdated, go doc|env|version, gh pr diff|checks
gh run view, docker images|logs|inspect|stats, docker container|image|network|volume ls
docker compose ps|logs, kubectl get|describe|logs|explain|api-resources|version|top"""
"""The programs of the table that only read, or whose operands name no files."""


def test_only_a_reader_has_any_operand() -> None:
    """What runs, writes or keeps files takes those of the folder, and no file with arguments."""
    readers = {
        " ".join(parts)
        for names in READERS.strip().replace("\n", ", ").split(", ")
        for parts in product(*(word.split("|") for word in names.split()))
    }
    others = {
        key
        for key, row in programs().items()
        if not row.is_any and not row.is_group and ".*" not in row.operands
    } - {"git switch"}  # its operands are revisions
    any_operand = {key for key, row in programs().items() if ".*" in row.operands}
    any_program = {key for key, row in programs().items() if row.is_any and " " in key}
    assert any_operand | any_program == readers
    for key in sorted(others):
        for word in ("@x", "/x:y", "/p:X=y", "~/x", "../x", "a/../../x", "/tmp/x.ts"):
            command = f"{key} {word}"
            for match in (f"{key}*", f"{key} *"):
                assert verdict(command, Rule("shell", match, "allow")) == "ask", command
            assert offered_pattern("shell", {"command": command}, FOLDER) == "", command


@pytest.mark.parametrize("row", CORPUS["unseen"])
def test_what_is_not_seen_is_asked_about_and_named(row: dict[str, Any]) -> None:
    """Where it is open what runs, only `*` and the line itself allow, and the reason names the word."""
    deny = Rule("shell", row["match"], "deny")
    for line in row["lines"]:
        name = read_line(line).programs[-1].words[0].text
        narrow = Rule("shell", f"{name} *", "allow")
        decision = Permissions([deny, narrow]).decide("shell", {"command": line}, FOLDER)
        assert (decision.do, f"what `{name}` runs" in decision.why) == ("ask", True), line


WORDS = st.sampled_from(
    "git status log -s --oneline -- -O./evil --output=x rm -rf x make test A=1 $X *.py 'a;b' `rm` ~ ! "
    "\"$(rm)\" bash -c sort -o ls cat {a,b} $'\\x72m' exec eval sudo src/a.py 2>&1 \\; 'rm\tx'".split(
        " "
    )
)
SIGNS = st.sampled_from(
    [";", "&&", "||", "|", "&", "\n", "|&", "; (", "$(", "`", "<(", "> x;", "&&&", ")", "{"]
)
NARROW = (
    "git status*",
    "git log*",
    "ls *",
    "cat *",
    "make test*",
    "sort *",
    "rm *",
    "foo *",
    "git *",
    "pytest *",
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(WORDS, min_size=1, max_size=4),
    SIGNS,
    st.lists(WORDS, min_size=1, max_size=4),
    st.booleans(),
)
def test_a_second_program_is_never_covered(
    first: list[str], sign: str, second: list[str], is_tight: bool
) -> None:
    """A narrow rule covers no line with an operator between words, wherever the words come from."""
    gap = "" if is_tight else " "
    line = f"{' '.join(first)}{gap}{sign}{gap}{' '.join(second)}"
    if len(read_line(line).programs) > 1:
        for match in NARROW:
            assert verdict(line, Rule("shell", match, "allow")) == "ask"


PIECES = st.sampled_from(
    [
        *"git status -s -- -n 5 rm x A=1 -o ' \" \\ $ ` ( ) { } [ ] $( ; && | & < > >> 2>&1 # !".split(),
        *">/dev/null {a,b} $X ${X} $' \\x72m 'rm' \"a\" \\; = $(( )) <<< <( --output=x src/ ..".split(),
        *[" ", "  ", "\t", "\n", "\v", "\\\n", "'rm x'", "\\2", ",", "~", "*", "?", "!!", "@("],
    ]
)
STUB = """#!/bin/sh
printf '%s\\037' "${0##*/}" "$@" >>"$LOG"; printf '\\036' >>"$LOG"
"""


@pytest.fixture
def run(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[list[str]]]:
    """Return what lets bash run a line with programs that only write down their words; which ran."""
    if not shutil.which("bash"):
        pytest.skip("needs bash")
    bin_folder, folder = tmp_path_factory.mktemp("bin"), tmp_path_factory.mktemp("work")
    for name in ("git", "ls", "cat", "make", "sort", "foo", "rm", "x"):
        (bin_folder / name).write_text(STUB)
        (bin_folder / name).chmod(0o755)
    log = bin_folder / "log"

    def run(line: str) -> list[list[str]]:
        log.write_text("")
        environ = {"PATH": str(bin_folder), "LOG": str(log), "HOME": "~", "X": ""}
        ways: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "env": environ}
        subprocess.run(["/bin/bash", "-c", line], cwd=folder, **ways, timeout=patience.seconds(60))
        for file in folder.iterdir():
            file.unlink()
        return [word.split("\37")[:-1] for word in log.read_text().split("\36")[:-1]]

    return run


def test_bash_runs_what_was_read(run: Callable[[str], list[list[str]]]) -> None:
    """Of a line that a narrow rule covers, bash runs one program, with the words that were read."""

    @settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(NARROW[:-1]), st.lists(PIECES, max_size=6))
    def hold(match: str, pieces: list[str]) -> None:
        line = f"{match.rstrip('* ')} {''.join(pieces)}"
        if verdict(line, Rule("shell", match, "allow")) == "allow":
            ran, (program,) = run(line), read_line(line.strip(" \t\n")).programs
            assert len(ran) <= 1
            if ran and all(word.is_clear for word in program.words):
                assert ran[0] == [word.text for word in program.words]

    hold()


DENIED_PIECES = """\
rm x|cat <<'cat'⏎|it's|⏎cat⏎|⏎rm x⏎|echo `|#`|`#|rm|rm x|cat|ls|foo|'|"|`|$(|)|(|{ |; }|;|⏎|<<|<<-|<<<|
'cat'|cat⏎|E⏎|<<'E'⏎|<<E⏎|<<-E⏎\tE⏎|#|# |$'|$#|${#x}|${|}|$((|))|\\|\\⏎|\\`|&&|&|a=1 |a=(| |\t|<(|>(|
2>&1|>/dev/null|case a in a)|;;| esac|if |then |fi|[[ a ]]|!|$"|1|~|*|?|[|]|$@|-|--|="""


@pytest.mark.parametrize(
    ("seed", "cases"), [(1, 2_000), pytest.param(2, 60_000, marks=pytest.mark.nightly)]
)
def test_bash_runs_nothing_that_is_denied(
    run: Callable[[str], list[list[str]]], seed: int, cases: int
) -> None:
    """Where a rule that denies lets a line pass that was read, bash does not run its program."""
    dice, rules = random.Random(seed), (Rule("shell", "rm *", "deny"), Rule("shell", "*", "allow"))
    pieces = DENIED_PIECES.replace("\n", "").replace("⏎", "\n").split("|")
    for _ in range(cases):
        line = "".join(dice.choices(pieces, k=dice.randint(2, 9)))
        if "rm" in line and verdict(line, *rules) == "allow":
            read = read_line(line)
            is_seen = not read.fault and not any(map(unseen, read.programs))
            ran = run(line) if is_seen else []  # of two at once a record may be empty
            assert not any(words[:1] == ["rm"] for words in ran), line


@settings(max_examples=300, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=6))
def test_what_is_offered_covers_the_call_and_nothing_unknown(words: list[str]) -> None:
    """An offer covers its line, and such a line has one program with none but safe words."""
    command = " ".join(words)
    pattern = offered_pattern("shell", {"command": command}, FOLDER)
    if pattern:
        assert verdict(command, Rule("shell", pattern, "allow")) == "allow"
        line = read_line(command)
        assert not line.signs
        assert [KnownWords(program.words).faults for program in line.programs] == [{}]
