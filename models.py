"""Models as objects, for programs that have no configuration of theirs.

from steersman.models import openai

model = openai("qwen3", base_url="http://127.0.0.1:8080/v1")
agent = steersman.Agent(model=model)
"""

from .ports.models.objects import anthropic, openai

__all__ = ["anthropic", "openai"]
