"""What a project file may do before and after it is trusted."""

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import asdict, replace

from steersman.machines.errors import ConfigError, UsageError
from steersman.workflows.authority import settings_by_setter
from steersman.workflows.config import Config, load, shipped, shipped_text
from steersman.workflows.paths import Paths
from steersman.workflows.positions import choose_for_folder
from steersman.workflows.problem import dotted
from steersman.workflows.schema import entries
from steersman.workflows.trust import contents_of, is_trusted, key_variables, state_of, trust
from steersman.workflows.typed_table import Setter, SettingsTable

Load = Callable[..., Config]
CHANGES = dict.fromkeys(("data", "sources", "notices"))
"""What of a configuration speaks of its files."""

PROJECT = """\
busy_input_mode = "queue"
[auto_queue]
enabled = true
max_queue_size = 3
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
    """Keys that start, allow, stop, keep or send something are left out, and a notice names them."""
    config = load_with(project_file=PROJECT)
    assert config.auto_queue.max_queue_size == 3
    harmless = replace(shipped().auto_queue, max_queue_size=3)
    assert asdict(config) | CHANGES == asdict(shipped()) | CHANGES | {"auto_queue": harmless}
    assert config.notices == (
        f"{project}/steersman.toml is not trusted: `busy_input_mode`, `auto_queue.enabled`, "
        "`permissions`, `tools`, `models`, `agents` not applied, `steersman trust` applies it; "
        "sets `auto_queue.max_queue_size`; cannot set `auto_queue.persistence`: "
        "only your own files do",
    )


def test_trusted_project_sets_everything(load_with: Load, paths: Paths, project: Path) -> None:
    """After `trust` the whole file is in force but for what is the person's; a line says what it sets."""
    load_with(project_file=PROJECT)
    assert trust(paths, project) == project / "steersman.toml"
    config = load_with(project_file=PROJECT)
    assert config.models["main"].base_url == "http://example.invalid/v1"
    assert config.permissions.rules[0].do == "allow"
    assert config.tools.grace == 9
    assert config.auto_queue.persistence.path == ""
    assert config.notices == (
        f"{project}/steersman.toml sets `busy_input_mode`, `auto_queue.enabled`, "
        "`auto_queue.max_queue_size`, `permissions`, `tools`, `models`, `agents`; "
        "cannot set `auto_queue.persistence`: only your own files do",
    )


def test_a_changed_file_is_not_trusted(load_with: Load, paths: Paths, project: Path) -> None:
    """Trust is in the content: any change ends it, and the old content has it again."""
    load_with(project_file=PROJECT)
    trust(paths, project)
    (notice,) = load_with(project_file=PROJECT + "max_steps = 3\n").notices
    assert "has changed since it was trusted: `busy_input_mode`" in notice
    assert not is_trusted(paths, project)
    assert load_with(project_file=PROJECT).tools.grace == 9
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
    """A file with harmless keys only is applied, and what it sets is said."""
    (notice,) = load_with(project_file="auto_queue.show_queue_on_input = false\n").notices
    assert notice.endswith("/steersman.toml sets `auto_queue.show_queue_on_input`")


def test_prompts_that_do_not_count_are_named(load_with: Load, paths: Paths, project: Path) -> None:
    """Before the folder is trusted, and after a change; a folder without any has no notice."""
    assert load_with().notices == ()
    file = project / ".steersman" / "prompts" / "fix.md"
    file.parent.mkdir(parents=True)
    file.write_text("Fix it.")
    rest = "its prompts, skills and workflows are not used, `steersman trust` uses them"
    assert load_with().notices == (f"{project}/.steersman is not trusted: {rest}",)
    trust(paths, project)
    assert load_with().notices == ()
    file.write_text("Fix it at once.")
    told = f"{project}/.steersman has changed since it was trusted: {rest}"
    assert load_with().notices == (told,)


def test_nothing_to_trust(paths: Paths, project: Path) -> None:
    """To trust a folder that brings nothing is an error that names what it could bring."""
    with pytest.raises(
        UsageError, match=r"nothing to trust in .*: no `steersman\.toml`, no `\.mcp"
    ):
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
    assert [hook.run for hook in config.hooks] == [("own",)]
    assert "`hooks` not applied" in config.notices[0]
    trust(paths, project)
    config = load_with(user=own, project_file=other)
    assert [hook.run for hook in config.hooks] == [("own",), ("other",)]


def test_keys_of_models_are_known_from_every_file_that_applies(
    paths: Paths, project: Path, tmp_path: Path
) -> None:
    """Also from a file with faults, and in quotes; from a project's only if that is trusted."""
    paths.config.mkdir()
    text = '[models.a]\napi_key_env = \'KEY_A\'\n[models.b]\n"api_key_env" = "KEY_B"\nbroken ='
    paths.config_file.write_text(text)
    (project / "steersman.toml").write_text('[models.c]\napi_key_env = "KEY_C"\n')
    (tmp_path / "named.toml").write_text('models.d = { api_key_env = "KEY_D" }\n')
    environ = {"STEERSMAN_CONFIG": str(tmp_path / "named.toml")}
    assert key_variables(paths, project, environ) == {"KEY_A", "KEY_B", "KEY_D"}
    trust(paths, project)
    assert key_variables(paths, project, {}) == {"KEY_A", "KEY_B", "KEY_C"}


@pytest.mark.parametrize(
    "changed",
    [
        "steersman.toml",
        "hook.sh",
        ".steersman/prompts/fix.md",
        ".steersman/workflows/w.toml",
        "w.py",
    ],
)
def test_trust_is_of_everything_that_is_named(paths: Paths, project: Path, changed: str) -> None:
    """A file that a hook, a workflow or a name stands for may not change after the yes."""
    files = {
        "steersman.toml": 'goals.gates = [["sh", "-c", "./hook.sh >notes.txt"]]',
        "hook.sh": "echo hook",
        ".steersman/prompts/fix.md": "Fix it.",
        ".steersman/workflows/w.toml": '[[step]]\nid = "a"\nrun = ["python3", "w.py"]\n',
        "w.py": "print(1)",
        "notes.txt": "written by the hook",
    }
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    trust(paths, project)
    assert contents_of(project).keys() == files.keys() - {"notes.txt"}
    (project / "notes.txt").write_text("changed")
    assert is_trusted(paths, project)
    (project / changed).write_text(files[changed] + "\n# changed\n")
    assert not is_trusted(paths, project)
    (project / changed).unlink()
    assert not is_trusted(paths, project)


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ('["bash", "-euo", "pipefail", "-c", "cd s; ./x.sh"]', "s/x.sh"),
        ('["bash", "-euo", "pipefail", "check"]', "check"),
        ('["python3", "-W", "ignore", "x"]', "x"),
        ('["python3", "s"]', "s/__main__.py"),
        ('["python3", "-m", "mod"]', "mod.py"),
        ('["python3", "-c", "import mod"]', "mod.py"),
        ('["python3", "-Bm", "mod"]', "mod.py"),
        ('["node", "--require", "./a.js", "b.js"]', "a.js"),
        ('["env", "-C", "s", "./y"]', "s/y"),
        ('["timeout", "5", "sh", "-c", "cd s && ./y"]', "s/y"),
        ('["awk", "-f", "x.awk"]', "x.awk"),
        ('["sed", "-fx.sed"]', "x.sed"),
        ('["make", "-f", "rules"]', "rules"),
        ('["make", "--file=rules"]', "rules"),
        ('["go", "run", "x.go"]', "x.go"),
        ('["java", "-jar", "x.jar"]', "x.jar"),
        ('["npx", "-y", "."]', "index.js"),
        ('["npx", "-y", "tsx", "."]', "index.ts"),
        ('["uvx", "--from", "./s", "server"]', "s/server.py"),
        ('["git", "-c", "core.hooksPath=hooks", "commit"]', "hooks/pre-commit"),
        ('["sh", "-c", "BASH_ENV=./e bash -c true"]', "e"),
        ('["sh", "-c", "\'./my hook\'"]', "my hook"),
        ("['sh', '-c', './my\\ hook']", "my hook"),
        ('["sh", "-c", "./*.sh"]', "z.sh"),
        ('["sh", "-c", "$PWD/x"]', "x"),
        ('["sh", "-c", "`echo ./x`"]', "x"),
        ('["sh", "-c", "./{x,y}"]', "x"),
        ('["sh", "-c", "printf x | sh"]', "x"),
        ('["sh", "-c", "eval \'a=.; b=x\'"]', "x"),
        ('["sh", "-c", "PATH=. x"]', "x"),
        ('["sh", "-c", "sh -c \'cd s; ./y\'"]', "s/y"),
        ('["sh", "-c", "true\\n./x"]', "x"),
        ('["sh", "-c", "true # \'\\n./x"]', "x"),
        ('["./x", "data"]', "data"),
    ],
)
def test_what_a_command_runs_does_not_change_unasked(
    paths: Paths, project: Path, command: str, file: str
) -> None:
    """Whatever its form: what it names is part of the trust, or all files are."""
    (project / file).parent.mkdir(exist_ok=True)
    (project / file).write_text("before")
    (project / "steersman.toml").write_text(f"[[hooks]]\non = 'turn_ended'\nrun = {command}\n")
    trust(paths, project)
    assert is_trusted(paths, project)
    (project / file).write_text("after")
    assert not is_trusted(paths, project)


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ('routing.table = "t.toml"', "t.toml"),
        ('mcp.x.env.LD_PRELOAD = "./x.so:./y.so"', "y.so"),
        ('[[step]]\nid = "a"\ncwd = "s"\nrun = ["./y"]', "s/y"),
        ('[[step]]\nid = "a"\ncwd = "{place}"\nrun = ["./y"]', "s/y"),
    ],
)
def test_a_file_that_a_setting_names_is_trusted_with_it(
    paths: Paths, project: Path, text: str, file: str
) -> None:
    """Also one that is read, or loaded by a program, or run in another folder."""
    (project / file).parent.mkdir(exist_ok=True)
    (project / file).write_text("before")
    (project / "steersman.toml").write_text(text)
    trust(paths, project)
    (project / file).write_text("after")
    assert not is_trusted(paths, project)


@pytest.mark.parametrize(
    "command",
    [
        '["pytest", "-q", "."]',
        '["make", "test"]',
        '["sh", "-c", "ruff check . && npm test"]',
        '["npx", "-y", "@modelcontextprotocol/server-filesystem@2025.8.21", "."]',
        '["uvx", "mcp-server-git", "--repository", "."]',
        f'["{sys.executable}", "-u", "{pytest.__file__}"]',
    ],
)
def test_everyday_checks_leave_the_folder_free_to_change(
    paths: Paths, project: Path, command: str
) -> None:
    """Of a program that is installed only what its words name is trusted; what it looks at may change."""
    (project / "steersman.toml").write_text(f"goals.gates = [{command}]")
    trust(paths, project)
    (project / "code.py").write_text("new")
    assert is_trusted(paths, project)


@pytest.mark.parametrize(
    "command", ['["touch", "done.log"]', '["sh", "-c", "cat done.log > copy.log"]']
)
def test_data_of_a_command_may_come_and_change(paths: Paths, project: Path, command: str) -> None:
    """A file that a command only makes or reads asks nobody anew; one that it runs would."""
    (project / "steersman.toml").write_text(f"goals.gates = [{command}]")
    trust(paths, project)
    (project / "done.log").write_text("new")
    (project / "copy.log").write_text("new")
    assert is_trusted(paths, project)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ("steersman.toml", "has changed since it was trusted"),
        ("code.py", "is trusted no more, since `code.py` has changed"),
    ],
)
def test_what_has_changed_is_named(paths: Paths, project: Path, changed: str, said: str) -> None:
    """Where all files count it is rarely the file that says so."""
    (project / "code.py").write_text("old")
    (project / "steersman.toml").write_text('goals.gates = [["python3", "-m", "x"]]')
    trust(paths, project)
    with (project / changed).open("a") as file:
        file.write("\n")
    assert state_of(paths, project, "steersman.toml") == said


def test_a_folder_that_is_trusted_whole_is_bounded(paths: Paths, project: Path) -> None:
    """Where all files count, there may not be any number of them; the error says what to do."""
    (project / "steersman.toml").write_text('goals.gates = [["python3", "-m", "x"]]')
    for number in range(5001):
        (project / str(number)).touch()
    with pytest.raises(ConfigError, match="more than 5000 files: name a script by its path"):
        trust(paths, project)


def test_a_program_that_comes_later_was_not_trusted(paths: Paths, project: Path) -> None:
    """A command that named nothing at the time of the yes does not become that of a new file."""
    (project / "steersman.toml").write_text('[goals]\ngates = [["./check"]]\n')
    trust(paths, project)
    assert is_trusted(paths, project)
    (project / "check").write_text("echo")
    assert not is_trusted(paths, project)


def test_what_a_link_leads_to_is_trusted_with_it(paths: Paths, project: Path) -> None:
    """A skill behind a link may not change either; a word that is no path is no file."""
    (project / "steersman.toml").write_text('goals.gates = [["a\\u0000b", "./x"]]\n')
    hidden = project / ".steersman" / "hidden"
    hidden.mkdir(parents=True)
    (hidden / "SKILL.md").write_text("---\ndescription: x\n---\n")
    (project / ".steersman" / "skills").mkdir()
    (project / ".steersman" / "skills" / "one").symlink_to("../hidden")
    trust(paths, project)
    assert is_trusted(paths, project)
    (hidden / "SKILL.md").write_text("---\ndescription: y\n---\n")
    assert not is_trusted(paths, project)


def test_what_cannot_be_read_cannot_be_trusted(paths: Paths, project: Path) -> None:
    """A device among the files, or more than a person would read, is an error that says so."""
    (project / "steersman.toml").write_text("")
    (project / ".steersman" / "skills").mkdir(parents=True)
    (project / ".steersman" / "skills" / "endless").symlink_to("/dev/zero")
    with pytest.raises(ConfigError, match="it is not a regular file"):
        trust(paths, project)
    (project / ".steersman" / "skills" / "endless").unlink()
    (project / "steersman.toml").write_text(f"x = '{'a' * 70_000}'")
    with pytest.raises(ConfigError, match="larger than 64 KiB"):
        trust(paths, project)


def test_each_key_says_who_sets_it() -> None:
    """No table can be made that does not declare it; what any project may set is this list."""
    with pytest.raises(TypeError, match="set_by"):
        type(SettingsTable)("Silent", (SettingsTable,), {})
    harmless = [name for name, setter in settings_by_setter() if setter is Setter.ANY_PROJECT]
    assert harmless == ["auto_queue.max_queue_size", "auto_queue.show_queue_on_input"]


def test_of_all_keys_a_project_sets_only_those_of_its_kind(
    load_with: Load, paths: Paths, project: Path
) -> None:
    """A file with every key there is, examples too: what counts before trust, after it, and never."""
    file, setters = project / "steersman.toml", dict(settings_by_setter())
    text = re.sub(r"^#(?=[^ #\n])", "", shipped_text(), flags=re.MULTILINE)
    every = [dotted(entry.where) for entry in entries() if entry.value]

    def setter_of(key: str) -> Setter:
        return next(setter for name, setter in setters.items() if f"{key}.".startswith(f"{name}."))

    def applied() -> set[str]:
        sources = load_with(project_file=text).sources
        servers = {key: ".".join(key.split(".")[:2]) for key in every if key.startswith("mcp.")}
        return {key for key in every if sources.get(servers.get(key, key)) == str(file)}

    assert len(every) > 100
    assert applied() == {key for key in every if setter_of(key) is Setter.ANY_PROJECT}
    trust(paths, project)
    assert applied() == {key for key in every if setter_of(key) is not Setter.PERSON}
