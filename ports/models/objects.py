"""Models as objects, for programs that have no configuration of theirs."""

import os
from pathlib import Path

from msgspec.structs import replace

from .model import Model, WrappedModel
from .provider import ModelConfig, provider_of, takes_pictures


def openai(
    model: str,
    *,
    base_url: str = "https://api.openai.com/v1",
    key: str | None = None,
    temperature: float | None = None,
    max_tokens: int | None = None,
    images: bool | None = None,
) -> Model:
    """Return a model behind an API like OpenAI's.

    `key`: if it is left out, OPENAI_API_KEY of the environment, and only for OpenAI's own server.
    `images`: whether it takes pictures; none goes by the server.
    """
    is_own = base_url.startswith("https://api.openai.com")
    config = ModelConfig(
        name="",
        provider="openai",
        base_url=base_url,
        model=model,
        api_key_env="OPENAI_API_KEY" if is_own else "",
        temperature=temperature,
        max_tokens=max_tokens,
        images=images,
    )
    return _ModelObject(config, key)


def anthropic(
    model: str,
    *,
    base_url: str = "https://api.anthropic.com",
    key: str | None = None,
    temperature: float | None = None,
    max_tokens: int | None = None,
) -> Model:
    """Return a model of Anthropic; `key`: if it is left out, ANTHROPIC_API_KEY of the environment."""
    config = ModelConfig(
        name="",
        provider="anthropic",
        base_url=base_url,
        model=model,
        api_key_env="ANTHROPIC_API_KEY",
        temperature=temperature,
        max_tokens=max_tokens,
    )
    return _ModelObject(config, key)


class _ModelObject(WrappedModel):
    """A model that says whether it takes pictures; without a `key` the environment may have one."""

    def __init__(self, config: ModelConfig, key: str | None) -> None:
        if key is None:
            key = os.environ.get(config.api_key_env, "")
        elif not config.api_key_env:
            config = replace(config, api_key_env="KEY" if key else "")
        super().__init__(provider_of(config).build(config, Path(), {config.api_key_env: key}))
        self.takes_pictures = takes_pictures(config)
