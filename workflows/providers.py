"""The providers of models: what `provider` in a `[models.NAME]` table may be.

To add a provider, say `acme`:

1. `ports/models/acme.py`: its model (see `ports/models/model.py`) and, as `PROVIDER`, an object with
   the methods of `Provider` (`ports/models/provider.py`). For a server with an HTTP API, derive the
   model from `ServedModel` and write `PROVIDER = ServedProvider(AcmeModel, "https://…")`.
2. Here: a row in `PROVIDERS`; and one in `SERVICES`, if a chat shall use it when `ACME_API_KEY` is
   set.
3. `docs/models.md`: an example with `provider = "acme"`.

And its tests, in `tests/models/test_acme.py`. `tests/house/test_registries.py` fails until the
module, the page and the tests are there.
"""

import re

from ..machines.value import Value
from .plugins import PREFIX, EntryPoints
from .registry import Part, Registry


class ProviderPart(Part):
    """A provider; `is_small`: its models read slowly, and are not trusted with a verdict."""

    is_small: bool = False


def _name_fault(name: str) -> str:
    """Say why no plug-in may have a name."""
    taken = (*PROVIDERS.built_in, *(service.name for service in SERVICES), *SERVERS, "embedded")
    if name in taken:
        return "the name is that of a built-in provider"
    return "" if re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name) else "this is no name of a provider"


PROVIDERS = Registry(
    "provider",
    {
        "openai": ProviderPart(place="steersman.ports.models.chat:PROVIDER"),
        "anthropic": ProviderPart(place="steersman.ports.models.anthropic:PROVIDER"),
        "local": ProviderPart(place="steersman.extensions.embedded.model:PROVIDER", is_small=True),
        "scripted": ProviderPart(place="steersman.ports.models.scripted:PROVIDER"),
    },
    EntryPoints(f"{PREFIX}models", "provider", called_with=("config",), check_name=_name_fault),
)


def is_small(provider: str) -> bool:
    """Whether the models of a provider read slowly, and are not trusted with a verdict."""
    return provider in PROVIDERS.built_in and PROVIDERS[provider].is_small


SERVERS = {"ollama": 11434, "llama.cpp": 8080}
"""The servers that are looked for on loopback, with their ports."""

EMBEDDED = "local"
"""The provider that a chat uses when it finds no other model: it needs neither key nor network."""


class Service(Value):
    """A hosted service that a chat can use without configuration, by its name.

    Its key is in the environment variable `api_key_env`; `model` is the model that is asked for when
    a person names none.
    """

    name: str
    provider: str
    base_url: str
    model: str

    @property
    def api_key_env(self) -> str:
        """The environment variable that holds the key."""
        return f"{self.name.upper()}_API_KEY"


SERVICES = (
    Service(
        name="anthropic",
        provider="anthropic",
        base_url="https://api.anthropic.com",
        model="claude-sonnet-4-5",
    ),
    Service(
        name="openai", provider="openai", base_url="https://api.openai.com/v1", model="gpt-5-mini"
    ),
    Service(
        name="openrouter",
        provider="openai",
        base_url="https://openrouter.ai/api/v1",
        model="openrouter/auto",
    ),
)
"""The hosted services, in the order in which their keys are looked for."""
