"""Which option of a question an answer means."""

import pytest

from steersman.machines.steps import chosen


@pytest.mark.parametrize(
    ("options", "said", "meant"),
    [
        (("yes", "no"), "y", "yes"),
        (("yes", "no"), "NO ", "no"),
        (("yes", "no"), "2", "no"),
        (("merge", "message me"), "m", None),
        (("merge", "m"), "m", "m"),
        (("a", "1"), "1", "1"),
        (("yes", "no"), "", None),
        (("yes", "no"), "yeah", None),
        ((), "anything", "anything"),
    ],
)
def test_an_option_is_meant_by_text_number_or_initial(
    options: tuple[str, ...], said: str, meant: str | None
) -> None:
    """An initial counts where one option alone begins with it."""
    assert chosen(options, said) == meant
