"""The server of the Bot API that the tests use, as a client library of other people sees it."""

from pathlib import Path

import pytest
from support.telegram_server import TOKEN, TelegramServer

pytest.importorskip("telebot", reason="pyTelegramBotAPI is not installed")

import requests
from telebot import TeleBot, apihelper

GROUP, ANN = -100200300, 42


def test_it_keeps_its_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that was killed has everything again."""
    with TelegramServer(tmp_path) as server, requests.Session() as session:
        monkeypatch.setattr(apihelper, "session", session)
        monkeypatch.setattr(apihelper, "SESSION_TIME_TO_LIVE", None)
        monkeypatch.setattr(apihelper, "_get_req_session", lambda reset=False: session)
        monkeypatch.setattr(apihelper, "API_URL", server.url + "/bot{0}/{1}")
        server.act("person", id=ANN, first_name="Ann", username="ann")
        server.act("chat", id=GROUP, type="supergroup", title="Crew", managers=[ANN])
        bot = TeleBot(TOKEN, threaded=False)
        server.act("say", chat=GROUP, user=ANN, text="before")
        bot.send_message(GROUP, "answer")
        server.kill()
        server.start()
        assert [row["text"] for row in server.act("messages", chat=GROUP)] == ["before", "answer"]
        (update,) = bot.get_updates(long_polling_timeout=1)
        assert update.message.text == "before"
