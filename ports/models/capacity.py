"""The context window of a model, as its server reports it or as it is published.

vLLM, OpenRouter, LM Studio and newer llama.cpp report it in `/v1/models`, llama.cpp in `/props`, ollama
in `/api/ps` for loaded models. OpenAI and Anthropic only document it.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from .loose_json import count, table, tables

Get = Callable[[str], Awaitable[Any]]
"""Fetches the JSON at an address; none on any failure."""

_FIELDS = (
    "max_model_len",
    "loaded_context_length",
    "context_length",
    "context_window",
    "max_context_length",
    "n_ctx",
)
_PUBLISHED = (
    ("claude-", 200_000),
    ("gpt-5", 272_000),
    ("gpt-4.1", 1_000_000),
    ("gpt-4o", 128_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
)


def published_window(model: str) -> int:
    """Return the published window of a hosted model, 0 for an unknown model."""
    return next((window for start, window in _PUBLISHED if model.startswith(start)), 0)


async def asked_window(get: Get, base_url: str, model: str, *, is_near: bool) -> int:
    """Ask a server for a model's window; 0 if it does not report it.

    `is_near`: addresses beside the API may be asked, too.
    """
    listed = tables(table(await get(f"{base_url}/models")).get("data"))
    for entry in listed:
        if entry.get("id") == model or len(listed) == 1:
            if found := _window_in(entry):
                return found
    if not is_near:
        return 0
    root = base_url.removesuffix("/v1")
    props = table(await get(f"{root}/props"))
    if found := count(props, "default_generation_settings", "n_ctx"):
        return found
    for entry in tables(table(await get(f"{root}/api/ps")).get("models")):
        if entry.get("name") == model and (found := count(entry, "context_length")):
            return found
    return 0


def _window_in(entry: dict[str, Any]) -> int:
    places = (entry, table(entry.get("meta")), table(entry.get("top_provider")))
    return next((found for place in places for name in _FIELDS if (found := count(place, name))), 0)
