"""Whether a model can be used: one answer for the list, the menu, the doctor and a chat."""

from pathlib import Path

import pytest

from steersman.gateway.wording.first_run import lacking
from steersman.ports.models.availability import availability
from steersman.ports.models.choice import Choice, known_names, model_named
from steersman.ports.models.provider import ModelConfig
from steersman.ports.models.weights import catalogue, has_engine, weights_in

KEY = "SOME_API_KEY"
SERVED = ModelConfig(
    name="main", provider="openai", model="m", base_url="http://x/v1", api_key_env=KEY
)


def embedded(cache: Path, is_fetched: bool) -> ModelConfig:
    """Return a model of the catalogue, whose weights are in a cache folder or not."""
    entry = catalogue()[0]
    path = weights_in(entry, cache)
    path.parent.mkdir(parents=True)
    if is_fetched:
        with path.open("wb") as file:
            file.truncate(entry.size)
    return model_named(entry.name, {}, cache)


@pytest.mark.skipif(not has_engine(), reason="the engine is not installed")
@pytest.mark.parametrize("is_fetched", [True, False])
def test_weights_are_here_or_to_be_fetched(tmp_path: Path, is_fetched: bool) -> None:
    """What is to be fetched is told with its size, and the command that fetches it."""
    found = availability(embedded(tmp_path, is_fetched), tmp_path, {})
    name = catalogue()[0].name
    assert (found.state, found.text) == (
        ("ready", "on this machine") if is_fetched else ("to fetch", "to fetch: 0.5 GB")
    )
    assert (f"`steersman models fetch {name}`" in found.hint) is not is_fetched


def test_a_key_may_be_missing(tmp_path: Path) -> None:
    """The variable is named; with it, the model is ready."""
    assert availability(SERVED, tmp_path, {KEY: "k"}).text == "m at http://x/v1"
    found = availability(SERVED, tmp_path, {})
    assert (found.state, found.text) == ("no key", f"m at http://x/v1, {KEY} is not set")


def test_every_name_of_the_menu_has_an_answer(tmp_path: Path) -> None:
    """Also those that stand for the usual model of this machine."""
    names = [name for name in known_names({"main": SERVED}) if not name.endswith(":MODEL")]
    for name in names:
        config = model_named(name, {"main": SERVED}, tmp_path)
        assert availability(config, tmp_path, {}).state != "ready", name


@pytest.mark.parametrize(("environ", "said"), [({}, f"`{KEY}` is not set"), ({KEY: "x"}, "")])
def test_a_chat_says_at_its_start_that_a_key_is_lacking(
    tmp_path: Path, environ: dict[str, str], said: str
) -> None:
    """Otherwise a server that is not reached, or one that refuses, would be all that is heard of it."""
    notices = lacking(
        Choice(name="main", config=SERVED, why="it is the only one"), tmp_path, environ
    )
    assert " ".join(notices) == (f"main: {said}, so no key is sent" if said else "")
