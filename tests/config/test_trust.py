"""What a project file may do before and after it is trusted."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from steersman.machines.errors import ConfigError
from steersman.workflows.config import Config, load, shipped
from steersman.workflows.paths import Paths
from steersman.workflows.positions import choose_for_folder
from steersman.workflows.trust import is_trusted, key_variables, trust

Load = Callable[..., Config]

PROJECT = """\
busy_input_mode = "queue"
[auto_queue]
enabled = true
[auto_queue.persistence]
path = "/tmp/elsewhere"
[permissions]
rules = [{ tool = "*", do = "allow" }]
[tools]
grace = 9
[models.main]
provider = "openai"
base_url = "http://example.invalid/v1"
api_key_env = "OPENAI_API_KEY"
[agents.assistant]
model = "main"
tools = ["shell"]
system = "Hello."
"""


def test_untrusted_project_only_sets_harmless_keys(load_with: Load, project: Path) -> None:
    """Keys that start, allow or send something are left out, and a notice names them."""
    config = load_with(project_file=PROJECT)
    assert (config.busy_input_mode, config.auto_queue.enabled) == ("queue", True)
    assert config.agents["assistant"].system == "Hello."
    assert config.permissions == shipped().permissions
    assert config.tools == shipped().tools
    assert config.models == {}
    assert config.agents["assistant"].model == ""
    assert config.agents["assistant"].tools == shipped().agents["assistant"].tools
    assert config.auto_queue.persistence.path == ""
    assert config.notices == (
        f"{project}/steersman.toml is not trusted: `auto_queue.persistence`, `permissions`, "
        "`tools`, `models`, `agents.assistant.model`, `agents.assistant.tools` not applied; "
        "`steersman trust` applies it",
    )


def test_trusted_project_sets_everything(load_with: Load, paths: Paths, project: Path) -> None:
    """After `trust` the whole file is in force, without a notice."""
    load_with(project_file=PROJECT)
    assert trust(paths, project) == project / "steersman.toml"
    config = load_with(project_file=PROJECT)
    assert config.models["main"].base_url == "http://example.invalid/v1"
    assert config.permissions.rules[0].do == "allow"
    assert config.tools.grace == 9
    assert config.notices == ()


def test_a_changed_file_is_not_trusted(load_with: Load, paths: Paths, project: Path) -> None:
    """Trust is in the content: any change ends it, and the old content has it again."""
    load_with(project_file=PROJECT)
    trust(paths, project)
    assert load_with(project_file=PROJECT + "max_steps = 3\n").notices
    assert not is_trusted(paths, project)
    assert not load_with(project_file=PROJECT).notices
    assert is_trusted(paths, project)


def test_trust_is_for_one_folder(load_with: Load, paths: Paths, project: Path) -> None:
    """The same file in another folder is not trusted."""
    load_with(project_file=PROJECT)
    trust(paths, project)
    other = project.parent / "other"
    other.mkdir()
    (other / "steersman.toml").write_text(PROJECT)
    assert not is_trusted(paths, other)


def test_a_folder_whose_name_is_not_text(
    load_with: Load, paths: Paths, project: Path, tmp_path: Path
) -> None:
    """Any bytes that the system takes as a name will do."""
    folder = tmp_path / os.fsdecode(b"\xff")
    project.rename(folder)
    (folder / "steersman.toml").write_text(PROJECT)
    trust(paths, folder)
    choose_for_folder(paths, folder, {"busy_input_mode": "steer"})
    assert load(paths, folder, {}).busy_input_mode == "steer"


def test_harmless_project_needs_no_trust(load_with: Load) -> None:
    """A file without guarded keys is applied without a notice."""
    assert load_with(project_file="interrupt_at = 'boundary'\n").notices == ()


def test_nothing_to_trust(paths: Paths, project: Path) -> None:
    """To trust a folder without a project file is an error that names the file."""
    with pytest.raises(ConfigError, match=r"steersman\.toml: can't be trusted"):
        trust(paths, project)


def test_damaged_record_is_no_trust(load_with: Load, paths: Paths, project: Path) -> None:
    """A record that can't be read means not trusted, not an error."""
    load_with(project_file=PROJECT)
    trust(paths, project)
    record = next((paths.state / "trusted").iterdir())
    record.write_bytes(b"\xff\x00 = [")
    assert not is_trusted(paths, project)


def test_records_are_private(load_with: Load, paths: Paths, project: Path) -> None:
    """Folders are made with mode 0700 and files with 0600, whatever the umask."""
    load_with(project_file=PROJECT)
    before = os.umask(0)
    try:
        record = trust(paths, project) and next((paths.state / "trusted").iterdir())
    finally:
        os.umask(before)
    modes = [path.stat().st_mode & 0o777 for path in (record, record.parent, paths.state)]
    assert modes == [0o600, 0o700, 0o700]


def test_a_projects_hooks_are_added_once_it_is_trusted(
    load_with: Load, paths: Paths, project: Path
) -> None:
    """A downloaded folder runs nothing; trusted, its hooks come behind the person's own."""
    own, other = (
        '[[hooks]]\non = "turn_ended"\nrun = ["' + name + '"]\n' for name in ("own", "other")
    )
    config = load_with(user=own, project_file=other)
    assert [one.run for one in config.hooks] == [("own",)]
    assert "`hooks` not applied" in config.notices[0]
    trust(paths, project)
    config = load_with(user=own, project_file=other)
    assert [one.run for one in config.hooks] == [("own",), ("other",)]


def test_keys_of_models_are_known_from_every_file_that_applies(tmp_path: Path) -> None:
    """Also from a file with faults, and in quotes; from a project's only if that is trusted."""
    home, project = tmp_path / "home", tmp_path / "project"
    for folder in (home, project):
        folder.mkdir()
    paths = Paths(config=home, state=home / "state", cache=home / "cache")
    text = '[models.a]\napi_key_env = \'KEY_A\'\n[models.b]\n"api_key_env" = "KEY_B"\nbroken ='
    (home / "config.toml").write_text(text)
    (project / "steersman.toml").write_text('[models.c]\napi_key_env = "KEY_C"\n')
    (tmp_path / "named.toml").write_text('models.d = { api_key_env = "KEY_D" }\n')
    environ = {"STEERSMAN_CONFIG": str(tmp_path / "named.toml")}
    assert key_variables(paths, project, environ) == {"KEY_A", "KEY_B", "KEY_D"}
    trust(paths, project)
    assert key_variables(paths, project, {}) == {"KEY_A", "KEY_B", "KEY_C"}
