"""Who answers in a session: each agent with what is known of its own model."""

from pathlib import Path

from gateway.conftest import Begin

from steersman.journal.record import SessionRecord

MORE = """
[models.dear]
provider = "openai"
base_url = "http://127.0.0.1:1/v1"
model = "dear"
context_window = 5000
price = { input = 3.0, output = 15.0 }
[agents.thinker]
model = "dear"
[agents.other]
protocol = "acp"
start = ["other", "acp"]
"""


def test_another_program_has_nothing_of_the_model_before_it(begin: Begin, tmp_path: Path) -> None:
    """Neither its price nor its window: what it takes, and what fits, is its own to know."""
    profile = begin(MORE).runtime.child_setup.profile_of
    parent = SessionRecord(agent="assistant", folder=str(tmp_path))
    thinker = profile("thinker", parent)
    assert (thinker.price is not None, thinker.compaction.window) == (True, 5000)
    for name in ("other", "assistant"):
        after = profile(name, parent)
        assert (after.price, after.compaction.window) == (None, 0), name
