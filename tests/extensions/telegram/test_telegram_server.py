"""The server of the Bot API that the tests use, as a client library of other people sees it."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from support.telegram_server import TOKEN, TelegramServer

pytest.importorskip("telebot", reason="pyTelegramBotAPI is not installed")

import requests
from telebot import TeleBot, apihelper, types

GROUP, ANN = -100200300, 42


@pytest.fixture
def server(tmp_path: Path) -> Generator[TelegramServer]:
    """Start a server with a person in a group."""
    with TelegramServer(tmp_path) as started:
        started.act("person", id=ANN, first_name="Ann", username="ann")
        started.act("chat", id=GROUP, type="supergroup", title="Crew", managers=[ANN])
        yield started


@pytest.fixture
def bot(server: TelegramServer, monkeypatch: pytest.MonkeyPatch) -> Generator[TeleBot]:
    """Make a bot of the other library."""
    session = requests.Session()
    monkeypatch.setattr(apihelper, "session", session)
    monkeypatch.setattr(apihelper, "SESSION_TIME_TO_LIVE", None)
    monkeypatch.setattr(apihelper, "_get_req_session", lambda reset=False: session)
    monkeypatch.setattr(apihelper, "API_URL", server.url + "/bot{0}/{1}")
    monkeypatch.setattr(apihelper, "FILE_URL", server.url + "/file/bot{0}/{1}")
    yield TeleBot(TOKEN, threaded=False)
    session.close()


def updates(bot: TeleBot, long_polling_timeout: int = 1, **given: Any) -> list[types.Update]:
    """Ask for updates; the library waits for 20 seconds unless told otherwise."""
    return bot.get_updates(long_polling_timeout=long_polling_timeout, **given)


def test_it_keeps_its_state(server: TelegramServer, bot: TeleBot) -> None:
    """A server that was killed has everything again."""
    server.act("say", chat=GROUP, user=ANN, text="before")
    bot.send_message(GROUP, "answer")
    server.kill()
    server.start()
    assert [event["text"] for event in server.act("messages", chat=GROUP)] == ["before", "answer"]
    assert [update.message.text for update in updates(bot)] == ["before"]
