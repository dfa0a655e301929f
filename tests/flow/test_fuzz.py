"""Many broken workflow files: each is answered with sentences about the file."""

import os
import random
import re
from pathlib import Path

import pytest

from steersman.workflows.document import tell
from steersman.workflows.flow.check import Surroundings, check_file
from steersman.workflows.flow.plan import draw_plan, plan_mermaid, plan_of
from steersman.workflows.flow.workflow_file import SHIPPED_WORKFLOWS
from steersman.workflows.paths import Paths

SOURCES = [
    *sorted(SHIPPED_WORKFLOWS.glob("*.toml")) * 5,  # as likely as one with faults to begin with
    *sorted(Path(__file__).parent.glob("faults/*.toml")),
]
ODD = [
    "[]", "{}", '""', "-1", "1e400", "nan", "true", "1979-05-27", "[[]]", '["a", 1]', "{ a = {} }",
    '"{{"', '"{% if %}"', '"{{ steps }}"', '"{{ steps.find }}"', '"\\u0000"', '"{{ 9 ** 9 ** 9 }}"',
    '"{{ [[[[[[]]]]]] }}"', '"' + "(" * 400 + '"', '"steps[0][1]"', '"item"', "9223372036854775808",
    '"{{ vars[vars] }}"', '"vars.search.x.y.z"', '["{{ steps.a.output }}"]', '"../../etc/passwd"',
]  # fmt: skip
MUTANTS = 250


def mutate(text: str, chance: random.Random) -> str:
    """Break a text in one to four places."""
    for _ in range(chance.randint(1, 4)):
        lines = text.split("\n")
        at = chance.randrange(len(lines))
        match chance.randrange(7):
            case 0:
                del lines[at]
            case 1:
                lines.insert(chance.randrange(len(lines)), lines[at])
            case 2:
                lines[at] = re.sub(r"=.*", lambda _: f"= {chance.choice(ODD)}", lines[at])
            case 3:
                lines[at] = re.sub(r"\w+", lambda _: chance.choice(WORDS), lines[at], count=1)
            case 4:
                lines[at] = lines[at][: chance.randrange(len(lines[at]) + 1)]
            case 5:
                key = chance.choice(WORDS)
                lines.insert(at, f"{key} = {chance.choice(ODD)}")
            case _:
                other = chance.choice(lines)
                lines[at] = other
        text = "\n".join(lines) or "x"
    return text


TEXTS = [path.read_text("utf-8", "replace") for path in SOURCES]
WORDS = sorted({word for text in TEXTS for word in re.findall(r"\b[a-z_]{2,12}\b", text)})


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_no_file_is_answered_with_a_traceback(seed: int, tmp_path: Path) -> None:
    """Each is either sound, and then has a plan, or has faults that can be shown."""
    chance = random.Random(seed)
    around = Surroundings(
        paths=Paths.of({"STEERSMAN_HOME": str(tmp_path)}), folder=tmp_path, environ=dict(os.environ)
    )
    path = tmp_path / "job.toml"
    sound = 0
    for _ in range(MUTANTS):
        path.write_text(mutate(chance.choice(TEXTS), chance))
        checked = check_file(path, around)
        for one in (*checked.errors, *checked.warnings):
            assert one.problem.message
            assert "Traceback" not in tell(one)
        if not checked.errors:
            assert checked.spec is not None
            sound += 1
            plan = plan_of(checked.spec, checked.spec.variables)
            assert draw_plan(plan)
            assert plan_mermaid(plan)
    assert 0 < sound < MUTANTS, "both kinds have to come up"


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"\x00" * 100, b"[" * 50_000, b"a." * 5_000])
def test_no_bytes_are_answered_with_a_traceback(content: bytes, tmp_path: Path) -> None:
    """Not even what is no text at all."""
    around = Surroundings(
        paths=Paths.of({"STEERSMAN_HOME": str(tmp_path)}), folder=tmp_path, environ={}
    )
    path = tmp_path / "job.toml"
    path.write_bytes(content)
    assert all(tell(one) for one in check_file(path, around).errors)
    assert check_file(tmp_path, around).errors, "a folder is no file"
