"""The message about a mistake: its position, its line, and a suggestion."""

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from steersman.machines.errors import ConfigError
from steersman.workflows.config import Config, load
from steersman.workflows.paths import Paths
from steersman.workflows.settings import parse_size

ErrorOf = Callable[..., str]
Load = Callable[..., Config]


def test_all_faults_of_all_files_at_once(error_of: ErrorOf) -> None:
    """One error reports every mistake, in the order of the text, with line, column and source."""
    user = """\
        busy_input_mode = "steal"
        [auto_queue]
        max_size = 5  # how many
        enabled = "yes"
        """
    assert error_of(user=dedent(user), project_file="[goals]\nmax_turns = 0\n") == dedent("""\
        home/config.toml:1:19: `busy_input_mode` must be one of `interrupt`, `steer`, `queue`, not \
"steal"
             1 | busy_input_mode = "steal"
               |                   ^
               did you mean `steer`?
        home/config.toml:3:1: unknown key `auto_queue.max_size`
             3 | max_size = 5  # how many
               | ^
               did you mean `auto_queue.max_queue_size`?
        home/config.toml:4:11: `auto_queue.enabled` must be true or false, not "yes"
             4 | enabled = "yes"
               |           ^
        project/steersman.toml:2:13: `goals.max_turns` must be at least 1, not 0: \
a goal's own first message is turn 1
             2 | max_turns = 0
               |             ^""")


def test_unknown_names_and_unsafe_routes_are_found_beside_other_faults(error_of: ErrorOf) -> None:
    """What only the merged files show is reported together with the faults of each file."""
    user = """\
        [agents.coder]
        model = "gone"
        max_step = 3
        [models.big]
        model = "x"
        [[route]]
        name = "kill"
        cause = "message"
        deliver = [{ to = "children", as = "cancel" }]
        why = "to see"
        """
    named = "default_agent = 'lost'\n[agents.coder]\ntools = 3\n[agents.tester]\nmodel = 'big'\n"
    error = error_of(user=dedent(user), named=named)
    heads = [line for line in error.splitlines() if ".toml:" in line]
    assert list(dict.fromkeys(head.split(": ")[0] for head in heads)) == [
        "home/config.toml:2:9",
        "home/config.toml:3:1",
        "home/config.toml:4:1",
        "home/config.toml:7:8",
        "named.toml:1:17",
        "named.toml:3:9",
    ]
    assert heads[0].endswith("`agents.coder.model` names the model `gone`, which is not there")
    assert heads[-2].endswith("`default_agent` names the agent `lost`, which is not there")


def test_a_table_that_is_wrong_as_a_whole_hides_no_names(error_of: ErrorOf) -> None:
    """Names are not reported as unknown where the fault is that their table cannot be read."""
    for user in ("models = 3\n[agents.coder]\nmodel = 'main'\n", "agents = 'x'\n"):
        assert len([line for line in error_of(user=user).splitlines() if ".toml:" in line]) == 1
    user = "[models.main]\nprovider = 'openai'\nmodel ="
    project = "[agents.coder]\nmodel = 'main'\n"
    assert "which is not there" not in error_of(user=user, project_file=project)


def test_error_carries_the_first_place(load_with: Callable[..., Config], project: Path) -> None:
    """File, line and column of the first fault can be read by programs."""
    with pytest.raises(ConfigError) as caught:
        load_with(project_file="\n\nbusy_mode = 'steer'\n")
    error = caught.value
    assert (error.file, error.line, error.column) == (str(project / "steersman.toml"), 3, 1)
    assert error.exit_code == 2


@pytest.mark.parametrize(
    ("text", "line", "wanted"),
    [
        ("[cli]\nauto_queue = { enabled = true }", 2, "auto_queue"),
        ("[cli.auto_queue]\nenabled = true", 1, "auto_queue"),
        ("[display]\nbusy_input_mode = 'queue'", 2, "busy_input_mode"),
        ("[display]\nbusy_text_mode = 'queue'", 2, "busy_input_mode"),
        ("retention_hours = 3", 1, "auto_queue.persistence.retention_hours"),
        ("[autoqueue]\nenabled = true", 1, "auto_queue"),
        ("[models.main]\nprovider = 'openai'\napi_key = 'x'", 3, "api_key_env"),
        ("[models.main]\nprovider = 'openai'\nbaseurl = 'x'", 3, "models.main.base_url"),
        ("[agents.coder]\nmodle = 'x'", 2, "agents.coder.model"),
        ("[goals]\nmax_turn = 3", 2, "goals.max_turns"),
        ("model = 'gpt'", 1, "agents.assistant.model"),
        ("[model.main]\nprovider = 'openai'", 1, "models"),
        ("auto_resume = true", 1, "auto_queue.persistence.auto_resume"),
        ("[auto_queue]\nauto_resume = true", 2, "auto_queue.persistence.auto_resume"),
    ],
)
def test_unknown_keys_get_the_nearest(error_of: ErrorOf, text: str, line: int, wanted: str) -> None:
    """An unknown key is answered with ours, also when it is another program's spelling."""
    error = error_of(user=text)
    assert error.startswith(f"home/config.toml:{line}:")
    assert f"did you mean `{wanted}`?" in error


@pytest.mark.parametrize(
    "text",
    [
        "[commands]\nfoo = 1",
        "[commands]\ncommand = 1",
        "[commands]\ncommands = 1",
        "[models.main]\nprovider = 'openai'\nproviders = 'openai'",
    ],
)
def test_no_suggestion_names_the_table_of_the_unknown_key(error_of: ErrorOf, text: str) -> None:
    """The hint for an unknown key offers neither the key itself nor a table that it is in."""
    table = text.partition("]")[0].removeprefix("[")
    error = error_of(user=text)
    assert f"unknown key `{table}." in error
    for offered in (table, table.partition(".")[0]):
        assert f"did you mean `{offered}`?" not in error


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("auto_queue = 3", "1:14", "`auto_queue` must be a table, not 3"),
        ("[auto_queue]\nmax_queue_size = true", "2:18", "must be a whole number, not true"),
        ("[auto_queue]\nmax_queue_size = 1.5", "2:18", "must be a whole number, not 1.5"),
        ("[auto_queue]\nmax_queue_size = 0", "2:18", "must be at least 1, not 0"),
        ("[auto_queue]\nsteer_keywords = 'a'", "2:18", 'must be a list, not "a"'),
        (
            "[auto_queue]\nfiller_words = [\n 'a',\n  2]",
            "4:3",
            "`auto_queue.filler_words[1]` must be",
        ),
        ("[tools]\ngrace = nan", "2:9", "`tools.grace` must be a number, not nan"),
        ("[tools]\noutput_limit = 'much'", "2:16", "`tools.output_limit` must be a size such as"),
        (
            "[permissions]\nrules = [{ tool = 'shell' }]",
            "2:10",
            "`permissions.rules[0].do` is missing",
        ),
        ("[[permissions.rules]]\ndo = 'permit'\ntool = '*'", "2:6", "must be one of `allow`"),
        (
            "[[permissions.rules]]\ndo = 'deny'\ntool = 'shel'",
            "3:8",
            "`permissions.rules[0].tool` must be one of `read`",
        ),
        ("[models.main]\nmodel = 'x'", "1:1", "`models.main.provider` is missing"),
        ("[agents.'a b']\nmax_steps = 1", "1:1", "is not a name"),
        ("[agents.a]\ntools = ['read', 'shel']", "2:18", "must be one of `read`"),
        ("[agents.a]\nmodel = 'big'", "2:9", "names the model `big`, which is not there"),
        ("default_agent = 'nobody'", "1:17", "names the agent `nobody`, which is not there"),
    ],
)
def test_wrong_values_name_place_and_expectation(
    error_of: ErrorOf, text: str, place: str, message: str
) -> None:
    """A wrong value is reported with its position and the expected type."""
    error = error_of(user=text)
    assert error.startswith(f"home/config.toml:{place}: ")
    assert message in error.splitlines()[0]


@pytest.mark.parametrize("layer", ["user", "named"])
def test_a_rule_for_a_misspelt_tool_is_refused(error_of: ErrorOf, layer: str) -> None:
    """A rule that could never match is a mistake in each file, and the nearest name is offered."""
    error = error_of(**{layer: "[permissions]\nrules = [{ tool = 'Shel', do = 'deny' }]"})
    assert error.startswith(("home/config.toml:2:19: ", "named.toml:2:19: "))
    assert error.splitlines()[-1].strip() == "did you mean `shell`?"


@pytest.mark.parametrize(
    "tool", ["shell", "*", "sh*", "[rw]*", "rea?", "mcp__git__log", "fetch", "switch_mode"]
)
def test_a_rule_may_be_about_tools_that_come_later(load_with: Load, tool: str) -> None:
    """Patterns, the tools of servers, and the calls of external agents are no mistakes."""
    config = load_with(user=f"[permissions]\nrules = [{{ tool = '{tool}', do = 'deny' }}]")
    assert config.permissions.rules[0].tool == tool


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("[[hooks]]\non = 'turn_ended'\nrun = 'notify-send hi'", '["notify-send", "hi"]'),
        ("[[hooks]]\non = 'turn_ended'\nrun = 'say \"it is done\"'", '["say", "it is done"]'),
        ("[[hooks]]\non = 'turn_ended'\nrun = 'date >> log'", '["sh", "-c", "date >> log"]'),
        ("[goals]\ngates = 'npm test'", '[["npm", "test"]]'),
        ("[goals]\ngates = ['npm test']", '["npm", "test"]'),
        ("[auto_queue]\nsteer_keywords = 'no wait'", '["no wait"]'),
    ],
)
def test_a_text_in_place_of_a_list_is_written_as_one(
    error_of: ErrorOf, text: str, wanted: str
) -> None:
    """The hint can be copied: a command is split into its words, or given to a shell."""
    assert error_of(user=text).endswith(f"write it as a list: `{wanted}`")


def test_auto_resume_says_why(error_of: ErrorOf) -> None:
    """Asking for automatic resume is refused with the reason."""
    error = error_of(user="[auto_queue.persistence]\nauto_resume = true\n")
    assert error.startswith(
        "home/config.toml:2:15: `auto_queue.persistence.auto_resume` can only be"
    )
    assert "nothing runs automatically after a restart" in error


@pytest.mark.parametrize(
    ("text", "place"),
    [("a = = 1", "1:5"), ("a = 1\na = 2\n", "2:"), ("a = [1,\n2", "2:"), ("a = 1\n[[a]]\n", "2:")],
)
def test_syntax_faults_have_a_place(error_of: ErrorOf, text: str, place: str) -> None:
    """Invalid TOML is reported with its line."""
    error = error_of(user=text)
    assert error.startswith(f"home/config.toml:{place}")
    assert "not valid TOML: " in error


def test_a_hidden_fault_is_still_found(error_of: ErrorOf) -> None:
    """A wrong value is reported even if a later layer replaces it."""
    error = error_of(user="interrupt_at = 'never'\n", named="interrupt_at = 'now'\n")
    assert error.startswith("home/config.toml:1:16: ")


def test_flags_are_checked_too(error_of: ErrorOf) -> None:
    """A mistake on the command line is reported without a line."""
    assert error_of(flags={"busy_input_mode": "queu"}).splitlines() == [
        'command line: `busy_input_mode` must be one of `interrupt`, `steer`, `queue`, not "queu"',
        "       did you mean `queue`?",
    ]


def test_missing_named_file_is_an_error(paths: Paths, project: Path) -> None:
    """`STEERSMAN_CONFIG` must name a file that is there."""
    with pytest.raises(ConfigError, match="the file can't be read"):
        load(paths, project, {"STEERSMAN_CONFIG": str(project / "none.toml")})


def test_a_file_that_is_not_text(error_of: ErrorOf, project: Path) -> None:
    """Bytes that are not UTF-8 are reported with their position."""
    (project / "steersman.toml").write_bytes(b"interrupt_at = 'now'\n# caf\xe9\n")
    assert error_of() == "project/steersman.toml:2:6: the text is not UTF-8"


@pytest.mark.parametrize("key", ["api_key", "token", "client_secret", "password", "api_key_env"])
def test_no_secret_in_an_error(error_of: ErrorOf, key: str) -> None:
    """A value that may be a secret is not repeated, neither in the message nor in the line."""
    kind = "7134259" if key == "api_key_env" else '"s3cr3t-7134259"'
    error = error_of(user=f"[models.main]\nprovider = 'openai'\n{key} = {kind}\n")
    assert "7134259" not in error
    assert f"     3 | {key} = …" in error


def test_no_control_characters_in_an_error(error_of: ErrorOf) -> None:
    """Escape sequences in a file don't reach the terminal."""
    error = error_of(user='"\\u001b[2J" = 1\nbusy_input_mode = "\\u001b[2J"\n')
    assert "\x1b" not in error


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1 MiB", 2**20),
        ("64 kB", 64_000),
        ("1.5KiB", 1536),
        ("2g", 2 * 10**9),
        (512, 512),
        ("7", 7),
    ],
)
def test_sizes(text: str | int, size: int) -> None:
    """Sizes are read as people write them."""
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "1 TB", "lots", True, 0, -3, None, "1 i"])
def test_not_sizes(text: object) -> None:
    """What is no size, or no room at all, is refused."""
    with pytest.raises(ValueError, match=r"not a size|nothing would fit"):
        parse_size(text)
