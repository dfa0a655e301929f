"""Changing the person's own `config.toml`: one table, one key, and nothing else."""

import tomllib

import pytest

from steersman.machines.errors import ConfigError
from steersman.workflows.own_config import with_model

MODEL = {"provider": "openai", "model": "new"}
TABLE = '[models.main]\nprovider = "openai"\nmodel = "new"\n'
AGENT = '[agents.assistant]\nmodel = "main"\n'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", f"{TABLE}\n{AGENT}"),
        ("# mine", f"# mine\n\n{TABLE}\n{AGENT}"),
        ('[models.main]\nmodel = "old"\n# why', f"{TABLE}# why\n\n{AGENT}"),
        (
            '[ models . "main" ] # x\nmodel = "old"',
            f"{TABLE}\n{AGENT}".replace("[models.main]", '[ models . "main" ] # x'),
        ),
        (
            f'{AGENT}tools = []\n\n# b\n[models.b]\nprovider = "local"\n',
            f'{AGENT}tools = []\n\n# b\n[models.b]\nprovider = "local"\n\n{TABLE}',
        ),
        (
            '[agents.assistant] # a\ntools = [\n  "read",\n]\n',
            f'[agents.assistant] # a\nmodel = "main"\ntools = [\n  "read",\n]\n\n{TABLE}',
        ),
        (
            "[agents.assistant]\nmodel='b' # c\n[models.b]\nprovider='local'",
            f"{AGENT}[models.b]\nprovider='local'\n\n{TABLE}",
        ),
    ],
)
def test_one_table_and_one_key(before: str, after: str) -> None:
    """What is there is replaced in its place, what is missing is added, and comments stay."""
    assert with_model(before, "main", MODEL, "assistant") == after
    assert with_model(after, "main", MODEL, "assistant") == after


@pytest.mark.parametrize(
    "text",
    [
        'models.main.model = "old"\n',
        'models = { main = { model = "old" } }\n',
        '[models.main]\nmodel = "old"\n[models.main.price]\ninput = 1.0\n',
        'note = """\n[models.main]\n"""\n',
        '[agents]\nassistant = { model = "b" }\n',
    ],
)
def test_what_would_be_a_guess_is_refused(text: str) -> None:
    """The error has the lines to write by hand, and the text is sound as it is."""
    tomllib.loads(text)
    with pytest.raises(ConfigError) as raised:
        with_model(text, "main", MODEL, "assistant")
    assert TABLE in raised.value.hint
