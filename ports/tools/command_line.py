"""Shell command lines, as permission rules read them. Pure.

Rules that allow and rules that deny need opposite readings of the same line. To **allow**, `operators`
lists every sign that could begin a second command, wherever it stands, also inside quotes: a harmless
command may look like two, which costs a question; two never look like one.

To **deny**, `command_forms` lists the commands that a line could run, each without what introduces it.
It unites two readings. The first cuts the line at every operator, quote and brace. The second follows
the shell: it joins quoted parts to words, drops redirections, descends into substitutions, and reads
a quoted word that contains a line of its own (`bash -c "…"`) again. Whatever may stand before a command
is then skipped: assignments, keywords, and programs that run another one (`sudo -u root`, `timeout 5`).
Where an option may or may not have a value, both are assumed.

Nothing is expanded: names made of variables, globs or braces, aliases, and the contents of scripts stay
unknown. The reading takes time proportional to the line, and is bounded; `may_hold` is what can be said
of a line that is too large.
"""

import re
from collections.abc import Iterator

from msgspec import Struct, field

from ...machines.pattern import lazy_pattern
from ...machines.value import Value

MAX_LENGTH = 64 * 1024
"""Characters of a line that is read; a longer one cannot be allowed by a pattern."""
MAX_FORMS = 8 * MAX_LENGTH
"""Characters of all forms of a line together."""
_MAX_DEPTH = 4  # lines in quotes in lines in quotes …

_OPERATOR = lazy_pattern(r"&&|\|\||;;|>>|<<|\$\(|\$\{|[;&|<>()`\n\r\0]")
_CUT = lazy_pattern(rf"{_OPERATOR.pattern}|[\"'{{}}]")
_LINE = lazy_pattern(rf"{_CUT.pattern}|[\s\\]")  # what a word has that may be a line of its own
_ASSIGNMENT = lazy_pattern(r"[A-Za-z_]\w*\+?=\S*$")
_DESCRIPTOR = lazy_pattern(r"\d+$|\{\w+\}$")
_KEYWORDS = frozenset("! { coproc do elif else if then until while".split())
_INTRODUCERS = frozenset("{ -exec -execdir -ok -okdir --exec --exec-batch".split())
"""Words after which a command begins, wherever they stand."""
_WRAPPERS = dict.fromkeys(
    "ash bash builtin busybox caffeinate command dash doas env eval exec fakeroot firejail ionice "
    "ksh ltrace nice nohup nsenter parallel pkexec prlimit runuser script setarch setpriv setsid sh "
    "strace stdbuf sudo systemd-inhibit systemd-run time torsocks toybox unbuffer unshare watch "
    "xargs zsh".split(),
    0,
) | dict.fromkeys("chroot chrt flock gosu gtimeout ssh su su-exec taskset timeout".split(), 1)
"""Programs that run the command in their arguments, and how many arguments come before it."""

# The shell's grammar, as far as it is followed: outside and inside double quotes.
_BARE = lazy_pattern(
    r"""(?P<joined>\\\n) | \\(?P<escaped>.) | \$?'(?P<single>[^']*)'? | (?P<double>\$?")
    | (?P<comment>(?<![^\s;&|()])\#[^\n]*)
    | (?P<redirect>(?:&>>?|>[>|&]?|<<<|<<-?|<[>&]?)(?!\())
    | (?P<open>[$<>]?\(|`) | (?P<close>\)) | (?P<end>[;&|\n\r\0]+) | (?P<space>[ \t\f\v]+)
    | (?P<text>[^\\'"$&<>()`;|\s\0]+|.)""",
    re.DOTALL | re.VERBOSE,
)
_QUOTED = lazy_pattern(
    r"""(?P<joined>\\\n) | \\(?P<escaped>["\\$`]) | (?P<double>") | (?P<open>\$\(|`)
    | (?P<text>[^"\\$`]+|.)""",
    re.DOTALL | re.VERBOSE,
)


class CommandForms(Value):
    """The commands that a line could run; `is_complete` unless the line is too large to be read."""

    texts: frozenset[str]
    is_complete: bool


def is_wrapper(program: str) -> bool:
    """Whether a program runs the command in its arguments."""
    return program in _WRAPPERS


def operators(command: str) -> tuple[str, ...]:
    """List the control operators, substitutions and redirections, in order."""
    return tuple(_OPERATOR.findall(command.strip()))


def command_forms(command: str) -> CommandForms:
    """Return every text that could be a command of the line, without what introduces it."""
    if len(command) > MAX_LENGTH:
        return CommandForms(texts=frozenset(), is_complete=False)
    left, texts = MAX_FORMS, set[str]()
    for words in _commands(command):
        size = sum(map(len, words)) + len(words) - 1
        passed = at = 0
        for start in _starts(words):
            passed += sum(len(word) + 1 for word in words[at:start])
            at = start
            left -= size - passed
            if left < 0:
                return CommandForms(texts=frozenset(texts), is_complete=False)
            text = " ".join(words[start:])
            texts.update((text, _plain(words[start]) + text[len(words[start]) :]))
    return CommandForms(texts=frozenset(texts - {""}), is_complete=True)


def may_hold(command: str, pattern: str) -> bool:
    """Whether a line, of any size, has a word like the first one of a pattern."""
    first = re.split(r"[*?\[\s]", pattern.strip(), maxsplit=1)[0]
    joined = re.sub(r"\\\n|[\"'\\]", "", command)
    word = re.compile(rf"(?<!\w){re.escape(first)}")
    return bool(word.search(joined) or word.search(command))


def _commands(line: str) -> Iterator[list[str]]:
    """Return the words of each command, in both readings; the line as it is comes first."""
    yield line.split()
    yield from (piece.split() for piece in _CUT.split(line))
    lines = [line]
    for _ in range(_MAX_DEPTH):
        readers = [_Reader(inner) for inner in lines]
        for reader in readers:
            yield from reader.commands
        lines = [inner for reader in readers for inner in reader.lines]


def _starts(words: list[str]) -> Iterator[int]:
    """Return where a command may begin: the first word, and those after words that introduce one."""
    if words:
        yield 0
    reached = {0: 0}  # position: how many arguments of a wrapper may still come there

    def reach(at: int, arguments: int) -> None:
        reached[at] = max(arguments, reached.get(at, 0))

    for at, word in enumerate(words):
        if at and words[at - 1] in _INTRODUCERS:
            reach(at, 0)
        if at not in reached:
            continue
        arguments = reached.pop(at)
        if word.startswith("-"):
            reach(at + 1, arguments)
            if "=" not in word and word != "--":
                reach(at + 2, arguments)  # the next word may be its value
            continue
        if at:
            yield at
        if _ASSIGNMENT.match(word) or word in _KEYWORDS:
            reach(at + 1, arguments)
        elif (name := _plain(word)) in _WRAPPERS:
            reach(at + 1, _WRAPPERS[name])
        elif arguments:
            reach(at + 1, arguments - 1)


def _plain(word: str) -> str:
    """Return a program's name without its folder and without backslashes."""
    return word.rpartition("/")[2].replace("\\", "") or word


class _Open(Struct):
    """A command that is being read; `closer` ends the substitution that it belongs to."""

    closer: str = ""
    words: list[str] = field(default_factory=list[str])
    word: list[str] | None = None  # parts
    is_line: bool = False  # whether the word may contain a line of its own
    is_target: bool = False  # whether the word belongs to a redirection
    in_quotes: bool = False


class _Reader:
    """Splits one line: `commands` are lists of words without quotes, `lines` the quoted words."""

    def __init__(self, line: str) -> None:
        self.commands: list[list[str]] = []
        self.lines: list[str] = []
        self._stack = [_Open()]
        at = 0
        while at < len(line):
            found = (_QUOTED if self._stack[-1].in_quotes else _BARE).match(line, at)
            assert found is not None, "every character begins a token"
            assert found.lastgroup is not None, "every token has a kind"
            self._take(found.lastgroup, found[found.lastgroup])
            at = found.end()
        while self._stack:
            self._end_command()
            self._stack.pop()

    def _take(self, kind: str, text: str) -> None:
        top = self._stack[-1]
        match kind:
            case "text":
                self._add(text, is_quoted=top.in_quotes)
            case "escaped" | "single":
                self._add(text, is_quoted=True)
            case "double":
                top.in_quotes = not top.in_quotes
                self._add("", is_quoted=True)
            case "space":
                self._end_word()
            case "redirect":
                if _DESCRIPTOR.match("".join(top.word or ())):
                    top.word = None
                self._end_word()
                top.is_target = True
            case "open":
                self._open(text)
            case "close":
                self._end_command()
                if top.closer == text:
                    self._stack.pop()
            case "end":
                self._end_command()
            case "joined" | "comment":
                return
            case _:
                raise AssertionError(kind)

    def _open(self, text: str) -> None:
        """Begin a substitution, which is a part of its word, or a subshell, which is not."""
        if text == "`" == self._stack[-1].closer and not self._stack[-1].in_quotes:
            self._end_command()
            self._stack.pop()
            return
        if text == "(":
            self._end_command()
        else:
            self._add(text)
        self._stack.append(_Open(closer="`" if text == "`" else ")"))

    def _add(self, text: str, is_quoted: bool = False) -> None:
        top = self._stack[-1]
        top.word = [] if top.word is None else top.word
        top.word.append(text)
        top.is_line = top.is_line or (is_quoted and bool(_LINE.search(text)))

    def _end_word(self) -> None:
        top = self._stack[-1]
        if top.word is not None:
            word = "".join(top.word)
            if top.is_line:
                self.lines.append(word)
            if not top.is_target:
                top.words.append(word)
            top.is_target = False
        top.word, top.is_line = None, False

    def _end_command(self) -> None:
        top = self._stack[-1]
        self._end_word()
        if top.words:
            self.commands.append(top.words)
        top.words, top.is_target = [], False
