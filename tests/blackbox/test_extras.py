"""What is installed without any extra: the chat is whole, and each other part names its extra."""

import sys

import pytest
from support.driver import Place
from support.model_server import Text

EXTRAS = (
    *(
        "acp",
        "aiohttp",
        "anyio",
        "cronsim",
        "httpx",
        "httpx2",
        "irctokens",
        "markdown_it",
        "mcp",
        "nio",
    ),
    *(
        "opentelemetry",
        "psycopg",
        "ray",
        "ruamel",
        "segno",
        "sse_starlette",
        "starlette",
        "telegram",
    ),
    *("uvicorn", "xllamacpp"),
)
"""The modules of all packages that only extras have."""
WITHOUT = (
    "import sys; sys.modules.update(dict.fromkeys({}));"
    "from steersman.cli.main import main; sys.exit(main())"
)


@pytest.fixture
def bare(place: Place) -> Place:
    """A place whose program finds none of these."""
    place.command = (sys.executable, "-c", WITHOUT.format(EXTRAS))
    return place


def test_a_chat_needs_no_extra(bare: Place, serve) -> None:
    """A message, its answer, the list of sessions, a run: with the hard dependencies alone."""
    serve(Text("Good day.", times=0))
    ran = bare.run("chat", "hello")
    assert (ran.returncode, "Good day." in ran.stdout) == (0, True), ran.stderr
    chat = bare.chat()
    chat.completes("hello")
    assert chat.close() == 0
    assert bare.run("sessions", "show", "last").returncode == 0
    (bare.folder / "job.toml").write_text(
        '[workflow]\nname = "job"\n[[step]]\nid = "greet"\nagent = "assistant"\nprompt = "Hi."\n'
    )
    assert bare.run("run", "job.toml").returncode == 0


@pytest.mark.parametrize(
    ("command", "extra", "code"),
    [
        ("hooks install hermes", "hooks", 2),
        ("models fetch", "local", 1),
        ("serve --foreground", "web", 2),
    ],
)
def test_a_command_names_its_extra(bare: Place, command: str, extra: str, code: int) -> None:
    """What is missing is said in a sentence, with the command that installs it."""
    hermes = bare.home.parent / ".hermes"
    hermes.mkdir()
    (hermes / "config.yaml").write_text("model: x\n")
    ran = bare.run(*command.split())
    assert ran.returncode == code, ran.stderr
    assert f"[{extra}]" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_other_agents_have_their_hooks(bare: Place) -> None:
    """The list says of the one agent what it cannot read, and others are installed as ever."""
    for folder in (".claude", ".hermes"):
        (bare.home.parent / folder).mkdir()
    (bare.home.parent / ".hermes" / "config.yaml").write_text("model: x\n")
    assert bare.run("hooks", "install", "claude").returncode == 0
    states = {row["agent"]: row["state"] for row in bare.data("hooks", "list")["hooks"]}
    assert (states["claude"], states["hermes"]) == ("installed", "not understood")
