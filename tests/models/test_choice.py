"""Which model a chat uses and why, and what is built from it."""

import pytest
from msgspec.structs import replace
from support.model_server import ModelServer, Raw
from support.ports import HeldPort

from steersman.machines.errors import ConfigError
from steersman.ports.models.anthropic import AnthropicModel
from steersman.ports.models.chat import ChatModel
from steersman.ports.models.choice import build, choose, probe_loopback
from steersman.ports.models.dialect import JsonDialect
from steersman.ports.models.provider import ModelConfig
from steersman.ports.models.scripted import ScriptedModel
from steersman.ports.models.weights import usual

MAIN = ModelConfig(name="main", provider="openai", base_url="http://127.0.0.1:9/v1", model="qwen3")
KEYS = {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "b", "OPENROUTER_API_KEY": "c"}


def chosen(agent="", flag="", environ=None, served=None):
    """Choose with these circumstances, of two models; `served` maps ports to models."""
    return choose(
        {"main": MAIN, "other": replace(MAIN, name="other")},
        agent,
        flag,
        environ or {},
        (served or {}).get,
        embedded=lambda cache: usual(16_000_000_000, 100_000_000_000),
    )


@pytest.mark.parametrize(
    ("circumstances", "name", "why"),
    [
        (
            {"flag": "main", "agent": "x", "environ": KEYS},
            "main",
            "asked for with `--model`",
        ),
        ({"agent": "main", "environ": KEYS}, "main", "the agent's `model` in the configuration"),
        ({"environ": KEYS}, "anthropic", "`ANTHROPIC_API_KEY` is set"),
        ({"environ": {"OPENAI_API_KEY": "b", "OPENROUTER_API_KEY": "c"}}, "openai", "is set"),
        ({"environ": {"OPENROUTER_API_KEY": "c"}}, "openrouter", "`OPENROUTER_API_KEY` is set"),
        (
            {"environ": {"OPENAI_API_KEY": ""}, "served": {11434: "a", 8080: "b"}},
            "ollama",
            "ollama answers on port 11434",
        ),
        ({"served": {8080: "b"}}, "llama.cpp", "llama.cpp answers on port 8080"),
        (
            {},
            "qwen2.5-coder-1.5b",
            'no agent has `model = "main"`, and no other model is running; 16 GB of memory and 100 GB '
            "of free disk are enough for it",
        ),
    ],
)
def test_first_rule_that_holds_decides(circumstances, name, why):
    """Flag, agent, key, loopback, embedded: in this order."""
    choice = chosen(**circumstances)
    assert choice.name == name
    assert why in choice.why
    assert choice.line.startswith(f"model {name}")


def test_the_only_model_is_the_default():
    """A person who configures one model means it, also where a key is set; of two, an agent names one."""
    choice = choose({"main": MAIN}, "", "", KEYS, {11434: "a"}.get)
    assert (choice.name, choice.config, choice.is_named) == ("main", MAIN, True)
    assert choice.line == (
        "model main (qwen3 at http://127.0.0.1:9/v1): the only model in the configuration"
    )


def embedded(name: str) -> ModelConfig:
    """The configuration of a model of the catalogue."""
    return ModelConfig(name=name, provider="local", model=name, tool_dialect="json")


@pytest.mark.parametrize(
    ("flag", "config"),
    [
        ("embedded", embedded("qwen2.5-coder-1.5b")),
        ("qwen2.5-coder-0.5b", embedded("qwen2.5-coder-0.5b")),
        (
            "openrouter:z/glm",
            ModelConfig(
                name="openrouter",
                provider="openai",
                base_url="https://openrouter.ai/api/v1",
                api_key_env="OPENROUTER_API_KEY",
                model="z/glm",
            ),
        ),
        (
            "ollama:qwen3:8b",
            ModelConfig(
                name="ollama:qwen3:8b",
                provider="openai",
                base_url="http://127.0.0.1:11434/v1",
                model="qwen3:8b",
            ),
        ),
    ],
)
def test_flag_may_name_what_is_not_configured(flag, config):
    """Embedded models, hosted providers and local servers need no configuration."""
    assert chosen(flag=flag).config == config


def test_unknown_name_is_refused_with_the_nearest():
    """A name that means nothing is a configuration error that suggests one."""
    with pytest.raises(ConfigError, match="no model is called `mian`") as caught:
        chosen(flag="mian")
    assert caught.value.hint == "did you mean `main`?"
    with pytest.raises(ConfigError) as caught:
        chosen(flag="claude-sonnet-4-5")
    assert "anthropic:MODEL" in caught.value.hint


def test_probe_names_the_served_model():
    """A server on loopback says which model it has."""
    with ModelServer([], model="qwen3") as server:
        assert probe_loopback(server.port) == "qwen3"


def test_probe_of_a_closed_port_is_none():
    """A refused connection is no error."""
    with HeldPort() as closed:
        assert probe_loopback(closed.number) is None


def test_model_asks_the_server_it_was_built_for(asker, tmp_path):
    """The key comes from the environment variable that the configuration names."""
    body = '{"choices": [{"message": {"content": "ok"}}]}'
    with ModelServer([Raw(body)]) as server:
        config = ModelConfig(
            name="m",
            provider="openai",
            base_url=server.base_url,
            api_key_env="MY_KEY",
            model="x",
            max_tokens=9,
        )
        asker(build(config, tmp_path, {"MY_KEY": "sk-1"}), "Hi")
        [request] = server.requests
    assert request.headers["authorization"] == "Bearer sk-1"
    assert request.body["max_tokens"] == 9


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        (MAIN, ChatModel),
        (ModelConfig(name="a", provider="anthropic", model="claude"), AnthropicModel),
        (
            ModelConfig(
                name="j", provider="openai", base_url="http://127.0.0.1:9/v1", tool_dialect="json"
            ),
            JsonDialect,
        ),
        (ModelConfig(name="small", provider="local", model="qwen2.5-coder-0.5b"), JsonDialect),
        (ModelConfig(name="mine", provider="local", model="/none/mine.gguf"), JsonDialect),
    ],
)
def test_configuration_becomes_a_model(config, kind, tmp_path):
    """Each provider and dialect has its model; nothing is connected yet."""
    model = build(config, tmp_path, {})
    while not isinstance(model, kind):
        model = getattr(model, "inner", None)
        assert model is not None
    assert model.name


def test_scripted_model_is_built_from_its_file(asker, tmp_path):
    """The script is read when the model is made."""
    path = tmp_path / "script.toml"
    path.write_text('[[answer]]\ntext = "Hello."', "utf-8")
    model = build(ModelConfig(name="s", provider="scripted", script=str(path)), tmp_path, {})
    assert isinstance(getattr(model, "inner", None), ScriptedModel)
    assert asker(model, "Hi")[0].text == "Hello."


def test_unknown_embedded_model_is_refused(tmp_path):
    """Neither in the catalogue nor a file: a configuration error that lists the catalogue."""
    with pytest.raises(ConfigError, match="neither in the catalogue nor a GGUF file") as caught:
        build(ModelConfig(name="x", provider="local", model="gpt"), tmp_path, {})
    assert "qwen2.5-coder-0.5b" in caught.value.hint
