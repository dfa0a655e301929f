"""The JSON Schemas, as an editor takes them: checked by a TOML language server, without a network."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.executed import executed
from support.nightly import daily

from steersman.workflows.config import shipped_text
from steersman.workflows.flow.workflow_file import SHIPPED_WORKFLOWS, WorkflowFile, starter
from steersman.workflows.schema import schema, workflow_schema
from steersman.workflows.typed_table import known_keys

ALL_KEYS = """\
[workflow]
name = "all"
description = "Every key that there is"
required = ["a"]
parallel = 2
timeout = 60.0
output = "{{ steps.one.output }}"
[workflow.vars]
list = [1, "a", { b = true }]
[[step]]
id = "one"
description = "x"
run = ["echo", "{{ item }}"]
for_each = ["a", "b"]
parallel = 2
retry = { max = 1, backoff = 0.5 }
timeout = 3
output = "json"
schema = { type = "array", items = { type = "string" } }
env = { A = "1" }
cwd = "."
exit_codes = [0, 1]
continue_on_error = true
idempotent = true
[[step]]
id = "two"
needs = ["one"]
redo = ["one"]
when = "steps.one.failed == 0"
agent = "assistant"
prompt = "x"
goal = { text = "x", gates = [["true"]], max_turns = 2 }
for_each = "steps.one.output"
[[step]]
id = "three"
judge = { text = "x", of = "y", agent = "judge" }
[[step]]
id = "four"
ask = { text = "x", options = ["a", "b"], default = "a", timeout = 3.0 }
[[step]]
id = "five"
workflow = "codemod"
vars = { search = "x", rewrite = "y" }
[[step]]
id = "six"
finally = true
shell = "true"
remote = { cpus = 0.5, gpus = 1, memory = "1 GiB", inputs = ["a"], outputs = ["b/{{ run.id }}"] }
[[step]]
id = "seven"
call = "package.module:function"
with = { name = "{{ vars.name }}", list = [1, { a = true }] }
[[tool]]
name = "ticket"
description = "Look up a ticket."
run = ["./ticket.sh"]
parameters = { id = { type = "string", enum = ["a"] } }
required = []
mutating = true
timeout = 3.0
[agents.coder]
tools = ["read"]
[models.main]
provider = "scripted"
[permissions]
rules = [{ tool = "shell", match = "git *", do = "allow" }]
[[hooks]]
on = "turn_ended"
run = ["true"]
[[route]]
name = "talk"
message = "converse"
when = { session = "delegating" }
deliver = [{ to = "children.active", as = "steer" }]
ack = "steered_child"
"""
WRONG = {
    "unknown-table": "[nonsense]\nx = 1\n",
    "unknown-key": '[[step]]\nid = "x"\nrnu = ["true"]\n',
    "wrong-type": '[[step]]\nid = "x"\nrun = "true"\n',
    "wrong-word": '[[step]]\nid = "x"\nrun = ["true"]\noutput = "xml"\n',
    "no-id": '[[step]]\nrun = ["true"]\n',
    "too-small": '[[step]]\nid = "x"\nrun = ["true"]\nparallel = 0\n',
    "wrong-declaration": '[[tool]]\nname = "x"\ndescription = "y"\nrun = "z"\n',
    "wrong-target": '[[route]]\nname = "x"\ndeliver = [{ to = "kids", as = "steer" }]\n',
}


def lint(folder: Path, *files: str) -> subprocess.CompletedProcess[str]:
    """Check files with the language server's own checker."""
    tombi = Path(sys.executable).with_name("tombi")
    return executed(
        [tombi, "lint", "--offline", *files], cwd=folder, env={"HOME": str(folder), "NO_COLOR": "1"}
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with both schemas."""
    (tmp_path / "workflow.json").write_text(json.dumps(workflow_schema()))
    (tmp_path / "config.json").write_text(json.dumps(schema()))
    return tmp_path


def test_what_is_right_is_right_for_an_editor(place: Path) -> None:
    """All keys, every shipped workflow, what `workflow new` writes, and the shipped configuration."""
    texts = {path.name: path.read_text() for path in SHIPPED_WORKFLOWS.glob("*.toml")}
    texts |= {"all.toml": ALL_KEYS, "new.toml": starter("new").partition("\n")[2]}
    for name, text in texts.items():
        (place / name).write_text(f"#:schema ./workflow.json\n{text}")
    (place / "config.toml").write_text(f"#:schema ./config.json\n{shipped_text()}")
    done = lint(place, *texts, "config.toml")
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
    assert f"{len(texts) + 1} files linted" in done.stderr


@pytest.mark.parametrize("name", daily("unknown-key", "wrong-type", of=WRONG))
def test_what_is_wrong_is_wrong_for_an_editor(name: str, place: Path) -> None:
    """The schema is what finds it: the same file without one is right."""
    sound = "" if "[[step]]" in WRONG[name] else '[[step]]\nid = "y"\nrun = ["true"]\n'
    text = f"[workflow]\n{sound}{WRONG[name]}"
    (place / "job.toml").write_text(f"#:schema ./workflow.json\n{text}")
    assert lint(place, "job.toml").returncode == 1
    (place / "job.toml").write_text(text)
    assert lint(place, "job.toml").returncode == 0


def test_each_key_is_explained() -> None:
    """Editors show a sentence for every key of a workflow's own."""
    whole = workflow_schema()

    def described(part: dict[str, Any], name: str) -> None:
        inner = whole["$defs"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part
        assert part.get("description") or inner.get("description"), name
        for key, one in inner.get("properties", {}).items():
            described(one, f"{name}.{key}")

    described(whole["properties"]["workflow"], "workflow")
    described(whole["$defs"]["StepLine"], "step")


def test_the_file_of_all_keys_has_them_all() -> None:
    """So nothing is left out above."""
    leaves = {str(where[-1]) for where in known_keys(WorkflowFile)} - {"*"}
    assert [
        name
        for name in sorted(leaves)
        if f"{name} = " not in ALL_KEYS
        and f"[{name}" not in ALL_KEYS
        and f".{name}]" not in ALL_KEYS
    ] == []
