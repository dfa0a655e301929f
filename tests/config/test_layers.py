"""Which layer wins, and what a configuration knows about itself."""

import sys
from collections.abc import Callable
from pathlib import Path

from support.executed import executed

from steersman.workflows.config import Config, shipped
from steersman.workflows.settings import AgentSettings, PermissionRule

Load = Callable[..., Config]


def test_nothing_set_is_the_shipped_file(load_with: Load) -> None:
    """Without any file of the user's the shipped one is in force."""
    assert load_with() == shipped()


def test_shipped_values(load_with: Load) -> None:
    """The defaults are those that the interface promises."""
    config = load_with()
    assert (config.busy_input_mode, config.interrupt_strategy) == ("steer", "keyword")
    assert (config.interrupt_at, config.steer_while_streaming) == ("now", "wait")
    assert config.auto_queue.interrupt_keywords[-3:] == ("never mind", "nvm", "no wait")
    assert (config.auto_queue.enabled, config.auto_queue.max_queue_size) == (False, 10)
    assert config.auto_queue.persistence.retention_hours == 168
    assert (config.goals.max_turns, config.goals.max_judge_failures) == (20, 3)
    assert (config.delegation.max_depth, config.delegation.max_children) == (2, 4)
    assert (config.tools.grace, config.tools.output_limit) == (0.2, 1024 * 1024)
    assert config.agents["assistant"].max_steps == 500


def test_later_layers_win_key_by_key(load_with: Load) -> None:
    """User < project < STEERSMAN_CONFIG < flags, each only for what it sets."""
    config = load_with(
        user="[auto_queue]\nmax_queue_size = 1\nenabled = true\n[goals]\nmax_turns = 1\n",
        project_file="[auto_queue]\nmax_queue_size = 2\n[goals]\nmax_turns = 2\n",
        named="[goals]\nmax_turns = 3\nmax_judge_failures = 3\n",
        flags={"goals.max_judge_failures": 4},
    )
    assert config.auto_queue.enabled
    assert config.auto_queue.max_queue_size == 2
    assert (config.goals.max_turns, config.goals.max_judge_failures) == (3, 4)


def test_sources_name_the_layer(load_with: Load, project: Path) -> None:
    """For each key it is known which file set it."""
    config = load_with(
        user="busy_input_mode = 'queue'\n",
        project_file="auto_queue.max_queue_size = 3\n",
        flags={"default_agent": "judge"},
    )
    wanted = {
        "busy_input_mode": str(project.parent / "home" / "config.toml"),
        "auto_queue.max_queue_size": str(project / "steersman.toml"),
        "default_agent": "command line",
        "auto_queue.enabled": "shipped config.toml",
    }
    assert {key: config.sources[key] for key in wanted} == wanted


def test_rules_are_put_before_earlier_ones(load_with: Load) -> None:
    """A user's permission rules come first, and the shipped ones still hold behind them."""
    config = load_with(
        user='[permissions]\nrules = [{ tool = "shell", match = "git status*", do = "allow" }]\n',
        named='[permissions]\nrules = [{ tool = "shell", do = "deny" }]\n',
    )
    assert config.permissions.rules == (
        PermissionRule(tool="shell", do="deny"),
        PermissionRule(tool="shell", match="git status*", do="allow"),
        *shipped().permissions.rules,
    )


def test_agents_add_up(load_with: Load) -> None:
    """A new agent has defaults; a known one keeps what is not set."""
    config = load_with(user='[agents.coder]\ntools = ["read"]\n[agents.judge]\nmax_steps = 2\n')
    assert config.agents["coder"] == AgentSettings(tools=("read",))
    assert config.agents["judge"] == AgentSettings(tools=(), max_steps=2)
    assert "assistant" in config.agents


def test_agent_overrides_the_general_modes(load_with: Load) -> None:
    """An agent's own modes win over the general ones, the others are filled in."""
    agent = load_with(
        user="steer_while_streaming = 'cut'\n[agents.assistant]\nbusy_input_mode = 'queue'\n"
    ).agent("assistant")
    assert (agent.busy_input_mode, agent.steer_while_streaming) == ("queue", "cut")
    assert (agent.interrupt_strategy, agent.interrupt_at) == ("keyword", "now")


def test_loading_leaves_no_trace(load_with: Load, project: Path) -> None:
    """To load creates no folder and no file."""
    load_with()
    assert sorted(path.name for path in project.parent.iterdir()) == ["project"]


def test_loading_imports_nothing_heavy() -> None:
    """To load the configuration doesn't import the libraries that models and terminals need."""
    root = Path(__file__).resolve().parents[2]
    program = (
        "import importlib.util as u, sys; from pathlib import Path;"
        f"s = u.spec_from_file_location('steersman', {str(root / '__init__.py')!r},"
        f" submodule_search_locations=[{str(root)!r}]);"
        "m = u.module_from_spec(s); sys.modules['steersman'] = m; s.loader.exec_module(m);"
        "from steersman.workflows.config import load; from steersman.workflows.paths import Paths;"
        "load(Paths.of({'STEERSMAN_HOME': '/nowhere'}), Path('/nowhere'), {});"
        "heavy = {'asyncio', 'difflib', 'httpx2', 'jinja2', 'prompt_toolkit', 'typer'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = executed([sys.executable, "-c", program])
    assert (done.stdout, done.stderr) == ("[]\n", "")
