"""Decision tables: first match, overrides, and how they read."""

import pytest

from steersman.machines.errors import MachineError
from steersman.machines.routing import Row, Table, render, when


class Outfit(Row):
    """What to wear."""

    action: str
    hat: str = ""
    doc: str = ""


WEATHER = Table(
    "weather",
    {"sky": ("sun", "rain", "snow"), "wind": ("still", "storm")},
    (
        Outfit(name="storm", when=when(wind="storm"), action="stay in", doc="Nobody goes out."),
        Outfit(name="wet", when=when(sky=("rain", "snow")), action="coat", hat="hood"),
        Outfit(name="fair", when=when(), action="shirt"),
    ),
)


@pytest.mark.parametrize(
    ("sky", "wind", "name"),
    [
        ("sun", "storm", "storm"),
        ("snow", "storm", "storm"),
        ("rain", "still", "wet"),
        ("snow", "still", "wet"),
        ("sun", "still", "fair"),
    ],
)
def test_the_first_row_that_matches_decides(sky: str, wind: str, name: str) -> None:
    """A dimension that a row leaves out matches whatever it is."""
    assert WEATHER.decide((sky, wind)).name == name


def test_an_override_is_asked_first() -> None:
    """Overriding gives a new table; the old one stays as it is."""
    changed = WEATHER.override(
        [Outfit(name="brave", when=when(sky="sun", wind="storm"), action="kite")]
    )
    assert changed.decide(("sun", "storm")).action == "kite"
    assert changed.decide(("rain", "storm")).action == "stay in"
    assert WEATHER.decide(("sun", "storm")).action == "stay in"
    assert (changed.overrides, WEATHER.overrides) == (1, 0)


def test_rows_that_never_decide_are_left_out() -> None:
    """Of a settled table and of its overrides; every decision stays."""
    calm = Outfit(name="calm", when=when(), action="swim")
    dead = Outfit(name="dead", when=when(sky="sun"), action="sleep")
    changed = WEATHER.override([calm, dead])
    settled = changed.settled()
    assert ([row.name for row in settled.rows], settled.overrides) == (["calm"], 1)
    assert all(settled.decide(key) == changed.decide(key) for key in changed.keys())


@pytest.mark.parametrize(
    ("row", "message", "hint"),
    [
        (
            Outfit(name="typo", when=when(skye="sun"), action="-"),
            "table `weather`, row `typo`: no dimension `skye`",
            "Did you mean `sky`? Known: sky, wind.",
        ),
        (
            Outfit(name="typo", when=when(sky="rein"), action="-"),
            "table `weather`, row `typo`: `sky` has no value `rein`",
            "Did you mean `rain`? Known: sun, rain, snow.",
        ),
        (
            Outfit(name="fair", when=when(), action="-"),
            "table `weather`, row `fair`: another row has this name",
            "Names must differ.",
        ),
    ],
)
def test_a_row_that_makes_no_sense_is_refused(row: Outfit, message: str, hint: str) -> None:
    """Unknown words and taken names are errors that say what is known."""
    with pytest.raises(MachineError) as caught:
        WEATHER.override([row])
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_a_hole_is_an_error_that_names_the_combination() -> None:
    """A table that was not checked says what it lacks."""
    holey = Table("weather", WEATHER.space, WEATHER.rows[:2])
    assert holey.find(("sun", "still")) is None
    with pytest.raises(MachineError, match="no row for sky sun, wind still"):
        holey.decide(("sun", "still"))


def test_a_lookup_with_an_unknown_value_says_what_is_known() -> None:
    """A misspelt value is not mistaken for a hole."""
    with pytest.raises(MachineError, match="`sky` has no value `rein`") as caught:
        WEATHER.decide(("rein", "still"))
    assert caught.value.hint == "Did you mean `rain`? Known: sun, rain, snow."


def test_a_table_reads_as_text() -> None:
    """Each row says when it matches, what it decides and why; overrides are marked."""
    changed = WEATHER.override(
        [Outfit(name="brave", when=when(sky="sun", wind="storm"), action="kite")]
    )
    assert render(changed) == (
        "weather: the first row that matches wins\n"
        "  sky: sun, rain, snow\n"
        "  wind: still, storm\n"
        "\n"
        "  1* brave  sky sun, wind storm -> kite\n"
        "  2  storm  wind storm -> stay in\n"
        "            Nobody goes out.\n"
        "  3  wet    sky rain|snow -> coat (hat hood)\n"
        "  4  fair   anything else -> shirt\n"
        "\n"
        "* overrides a shipped row\n"
    )
