"""A workflow among a person's settings, other workflows, and variables given from outside."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steersman.machines.errors import ConfigError, UsageError
from steersman.workflows.config import Config, load
from steersman.workflows.document import parse_document, tell
from steersman.workflows.flow.check import Surroundings, check_file, checked_workflow
from steersman.workflows.flow.inclusion import included_file
from steersman.workflows.flow.reading import load_workflow, parse_workflow, settings_layer
from steersman.workflows.flow.spec import WorkflowSpec
from steersman.workflows.flow.variables import bind_texts
from steersman.workflows.flow.workflow_file import find_workflow, list_workflows
from steersman.workflows.paths import Paths

STEP = '[[step]]\nid = "a"\nrun = ["true"]\n'
USER = """\
busy_input_mode = "queue"
[models.mine]
provider = "scripted"
[models.other]
provider = "scripted"
[agents.assistant]
model = "mine"
"""


@pytest.fixture
def around(tmp_path: Path) -> Surroundings:
    """A person with settings of their own, in an empty folder."""
    home, folder = tmp_path / "home", tmp_path / "project"
    for path in (home, folder):
        path.mkdir()
    (home / "config.toml").write_text(USER)
    return Surroundings(
        paths=Paths.of({"STEERSMAN_HOME": str(home)}),
        folder=folder,
        environ={"PATH": "/bin:/usr/bin"},
    )


@pytest.fixture
def config_with(around: Surroundings) -> Callable[..., Config]:
    """Load the settings with those of a workflow's text."""

    def load_with(text: str, **flags: Any) -> Config:
        document, _ = parse_document("job.toml", f"[workflow]\n{text}\n{STEP}".encode())
        layer = settings_layer(document)
        return load(around.paths, around.folder, around.environ, flags, workflow=layer)

    return load_with


def test_settings_of_a_workflow_are_above_files_and_below_flags(
    config_with: Callable[..., Config],
) -> None:
    """What it says holds for its run; a flag says otherwise."""
    document, _ = parse_document(
        "job.toml", f'busy_input_mode = "steer"\n[workflow]\n{STEP}'.encode()
    )
    assert settings_layer(document).data == {"busy_input_mode": "steer"}
    assert config_with("").busy_input_mode == "queue"
    assert config_with("[goals]\nmax_turns = 3").goals.max_turns == 3
    assert config_with("[goals]\nmax_turns = 3", **{"goals.max_turns": 4}).goals.max_turns == 4


def test_agents_of_a_workflow_use_a_persons_own_model(config_with: Callable[..., Config]) -> None:
    """One that names no model has that of the default agent; the others are left alone."""
    config = config_with('[agents.a]\nsystem = "x"\n[agents.b]\nmodel = "other"')
    models = {name: agent.model for name, agent in config.agents.items()}
    assert models == {"assistant": "mine", "judge": "", "a": "mine", "b": "other"}


def test_routes_of_a_workflow_are_asked_first(config_with: Callable[..., Config]) -> None:
    """They stand before those of the files, and are checked with them."""
    text = '[[route]]\nname = "x"\nmessage = "converse"\nwhen = { session = "busy" }\n'
    text += 'deliver = [{ to = "self", as = "queue" }]\nack = "queued"'
    assert [route["name"] for route in config_with(text).route] == ["x"]


def test_only_what_is_sound_may_run(around: Surroundings) -> None:
    """One error tells all faults, those of the configuration among them; warnings stop nothing."""
    path = around.folder / "job.toml"
    path.write_text(
        f'[workflow]\n{STEP}[agents.a]\nmodel = "none"\n[[step]]\nid = "b"\nagent = "c"\nprompt = "x"\n'
    )
    with pytest.raises(ConfigError) as caught:
        checked_workflow(path, around)
    told = str(caught.value)
    assert "`agents.a.model` names the model `none`, which is not there" in told
    assert "step `b` names the agent `c`, which is not there" in told
    path.write_text(f"[workflow]\n[workflow.vars]\nx = 1\n{STEP}")
    spec, config = checked_workflow(path, around)
    assert (spec.name, config.busy_input_mode) == ("job", "queue")
    assert len(check_file(path, around).warnings) == 1


def test_a_bare_name_is_never_a_file_of_the_folder(around: Surroundings) -> None:
    """A repository cannot put itself in the place of a workflow that is shipped."""
    for workflow in list_workflows(around.paths, around.folder):
        for name in (workflow.name, f"{workflow.name}.toml"):
            (around.folder / name).write_text(STEP)
        assert find_workflow(workflow.name, around.paths, around.folder) == workflow.path
        named = find_workflow(f"./{workflow.name}", around.paths, around.folder)
        assert named == around.folder / workflow.name


def test_what_is_shipped_is_sound(around: Surroundings) -> None:
    """Every built-in workflow has no fault, no warning and a description."""
    shipped = list_workflows(around.paths, around.folder)
    assert [one.name for one in shipped] == ["codemod", "fix-tests", "research", "review"]
    for one in shipped:
        checked = check_file(one.path, around)
        assert [tell(fault) for fault in (*checked.errors, *checked.warnings)] == []
        assert checked.spec is not None
        assert checked.spec.name == one.name
        assert one.description


def test_a_spec_can_be_read_back_from_its_text(around: Surroundings) -> None:
    """A run that is taken up goes by the text it began with."""
    for workflow in list_workflows(around.paths, around.folder):
        spec = load_workflow(workflow.path)
        assert parse_workflow(spec.file, spec.source) == spec


VARIABLES = """\
[workflow]
required = ["to"]
[workflow.vars]
text = "a"
count = 1
part = 0.5
is_on = false
items = ["a"]
table = { a = 1 }
"""


@pytest.fixture
def spec() -> WorkflowSpec:
    """A workflow with a variable of each type."""
    return parse_workflow("job.toml", VARIABLES + STEP)


def test_variables_are_read_as_their_defaults_ask(spec: WorkflowSpec) -> None:
    """A text stays a text, whatever it looks like; the others are JSON."""
    given = [
        "to=1",
        "text=[2]",
        "count=3",
        "part=4",
        "is_on=true",
        'items=["b", 5]',
        'table={"b": []}',
    ]
    assert bind_texts(spec, given) == {
        "text": "[2]",
        "count": 3,
        "part": 4.0,
        "is_on": True,
        "items": ["b", 5],
        "table": {"b": []},
        "to": "1",
    }
    assert bind_texts(spec, ["to=a=b"])["to"] == "a=b"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "workflow `job` needs the variable `to`"),
        (["to"], "`--var to` has no value"),
        (["to=1", "txt=2"], "workflow `job` has no variable `txt`"),
        (["to=1", "count=x"], "`count` must be a whole number, not `x`"),
        (["to=1", "count=true"], "`count` must be a whole number, not `true`"),
        (["to=1", "part=x"], "`part` must be a number, not `x`"),
        (["to=1", "is_on=1"], "`is_on` must be true or false, not `1`"),
        (["to=1", "items=a b"], "`items` must be a JSON list, not `a b`"),
        (["to=1", "table=[]"], "`table` must be a JSON table, not `[]`"),
    ],
)
def test_a_wrong_variable_is_refused(spec: WorkflowSpec, given: list[str], message: str) -> None:
    """By name, with what was expected."""
    with pytest.raises(UsageError) as caught:
        bind_texts(spec, given)
    assert str(caught.value) == message


def test_workflows_in_workflows_are_found_beside_their_own_file(around: Surroundings) -> None:
    """A path is looked for there, a name among the names; a circle over three files is named."""
    inner = '[[step]]\nid = "next"\nworkflow = "./{}.toml"\n'
    for name, following in (("one", "two"), ("two", "three"), ("three", "one")):
        (around.folder / f"{name}.toml").write_text("[workflow]\n" + inner.format(following))
    faults = check_file(around.folder / "one.toml", around).errors
    assert [fault.problem.message for fault in faults] == [
        "workflows include each other: `one.toml` runs `two.toml` runs `three.toml` runs `one.toml`"
    ]
    (around.folder / "three.toml").write_text(f"[workflow]\n{STEP}")
    assert check_file(around.folder / "one.toml", around).errors == ()
    spec = load_workflow(around.folder / "one.toml")
    assert included_file(spec, "./two.toml", around.paths) == around.folder / "two.toml"
    assert included_file(spec, "codemod", around.paths).parent.name == "library"


def test_workflows_in_workflows_come_to_an_end(around: Surroundings) -> None:
    """Nine in each other are too many; the same one in many steps is looked at once."""
    inner = '[[step]]\nid = "s{}"\nworkflow = "./{}.toml"\n'
    for number in range(9):
        steps = "".join(inner.format(one, f"w{number + 1}") for one in range(20))
        (around.folder / f"w{number}.toml").write_text("[workflow]\n" + steps)
    (around.folder / "w9.toml").write_text(f"[workflow]\n{STEP}")
    assert check_file(around.folder / "w3.toml", around).errors == ()
    faults = check_file(around.folder / "w0.toml", around).errors
    assert {fault.problem.message for fault in faults} == {"workflows are nested more than 8 deep"}
