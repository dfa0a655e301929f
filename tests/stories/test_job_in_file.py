"""Story 11: a job in a file."""

from collections import Counter

import pytest

from .stage import Stage

COUNT, HALT = 50, 22
FILE = """\
[workflow]
name = "codemod"
output = "{{ steps.rewrite.done }} files use zod now"

[[step]]
id = "find"
run = ["sh", "-c", "grep -l yup *.ts"]
output = "lines"

[[step]]
id = "rewrite"
needs = ["find"]
for_each = "steps.find.output"
run = ["sh", "rewrite.sh", "{{ item }}"]
"""
REWRITE = f"""\
if test "$1" = schema{HALT}.ts; then
    {{command}}
fi
echo "$1" >> ../rewritten
sed -i s/yup/zod/g "$1"
"""
DONE = HALT - 1


def a_job_in_a_file(stage: Stage) -> None:
    """Checked, run, stopped with Ctrl-C at item 22 of 50, gone on with there, and taken back."""
    files = stage.files(COUNT)
    before = [file.read_bytes() for file in files]
    stage.place.folder.joinpath("codemod.toml").write_text(FILE, "utf-8")
    stage.place.folder.joinpath("rewrite.sh").write_text(
        REWRITE.format(command=stage.gate.command), "utf-8"
    )
    assert stage.runs("workflow", "check", "codemod.toml") == "ok: 2 steps\n"

    job = stage.begins("codemod.toml")
    stage.gate.wait()
    job.counts("rewrite", DONE, COUNT)
    job.presses_control_c()
    job.shows("Stopping; Ctrl-C again ends it at once.", notice={"text": "Stopping after rewrite"})
    job.shows(f"rewrite interrupted ({DONE} of {COUNT})", run_ended={"status": "interrupted"})
    job.shows("continues where it stopped.")
    assert job.ended() == 130
    assert times_rewritten(stage) == dict.fromkeys([file.name for file in files[:DONE]], 1)

    again = stage.begins("--resume", "last")
    stage.gate.wait()
    again.counts("rewrite", DONE, COUNT)
    stage.gate.open()
    again.shows(
        f"rewrite done ({COUNT} of {COUNT})",
        f"{COUNT} files use zod now",
        run_ended={"status": "succeeded", "output": f"{COUNT} files use zod now"},
    )
    assert again.ended() == 0
    assert times_rewritten(stage) == dict.fromkeys([file.name for file in files], 1)
    assert not any(b"yup" in file.read_bytes() for file in files)

    taken_back = stage.runs("sessions", "revert", "last")
    assert f"Reverted {COUNT} files. Original state restored." in taken_back
    assert [file.read_bytes() for file in files] == before


def times_rewritten(stage: Stage) -> dict[str, int]:
    """Return how often each file was rewritten, by what the commands wrote down."""
    text = stage.place.folder.parent.joinpath("rewritten").read_text("utf-8")
    return dict(Counter(text.split()))


@pytest.mark.parametrize(
    "stage", ["json", pytest.param("screen", marks=pytest.mark.nightly)], indirect=True
)
def test_a_job_in_a_file(stage: Stage) -> None:
    """Every file is rewritten once, over a stop, and comes back; nothing is left running."""
    a_job_in_a_file(stage)
    assert stage.place.left() == []
