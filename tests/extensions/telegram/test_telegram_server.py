"""The server of the Bot API that the tests use, as a client library of other people sees it."""

import base64
import json
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from support.patience import seconds
from support.telegram_server import TOKEN, TelegramServer

pytest.importorskip("telebot", reason="pyTelegramBotAPI is not installed")

import requests
from telebot import TeleBot, apihelper, types
from telebot.apihelper import ApiTelegramException

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


def refusal(error: pytest.ExceptionInfo[ApiTelegramException]) -> tuple[int, str]:
    """Return what an error says."""
    return error.value.error_code, error.value.description


def test_updates(server: TelegramServer, bot: TeleBot) -> None:
    """They come in order until they are confirmed by an offset, and of the kinds that were asked for."""
    assert bot.get_me().username == "steersman_bot"
    for text in ("one", "two"):
        server.act("say", chat=GROUP, user=ANN, text=text)
    found = updates(bot)
    assert [one.message.text for one in found] == ["one", "two"]
    assert found[0].message.from_user.full_name == "Ann"
    assert [update.message.text for update in updates(bot)] == ["one", "two"]
    assert [update.message.text for update in updates(bot, offset=found[1].update_id)] == ["two"]
    assert [update.message.text for update in updates(bot)] == ["two"]
    assert updates(bot, offset=found[1].update_id + 1) == []
    server.act("edit", chat=GROUP, message=1, text="uno")
    server.act("react", chat=GROUP, message=1, user=ANN, emoji=["👍"])  # nobody asked for it
    server.act("say", chat=GROUP, user=ANN, text="three", to=1)
    edit, third = updates(bot)
    assert (edit.edited_message.text, third.message.reply_to_message.text) == ("uno", "uno")
    updates(bot, offset=third.update_id + 1, allowed_updates=["message_reaction"])
    server.act("react", chat=GROUP, message=1, user=ANN, emoji=["👎"])
    server.act("say", chat=GROUP, user=ANN, text="nobody asked for it")
    (reaction,) = updates(bot)
    assert [one.emoji for one in reaction.message_reaction.new_reaction] == ["👎"]


def test_long_polling(server: TelegramServer, bot: TeleBot) -> None:
    """A request waits for an update; a second one ends it; a webhook forbids both."""
    found: list[Any] = []

    def poll() -> None:
        try:
            found.append([update.message.text for update in updates(bot, long_polling_timeout=20)])
        except ApiTelegramException as error:
            found.append(error.error_code)

    for more in ("say", "poll"):
        before = server.act("polling")
        waiting = threading.Thread(target=poll)
        waiting.start()
        while server.act("polling") == before:
            pass
        if more == "say":
            server.act("say", chat=GROUP, user=ANN, text="wakes it")
        else:
            offset = updates(bot)[0].update_id + 1 if server.act("pending") else 0
            assert updates(bot, offset=offset) == []
        waiting.join(seconds(20))
        if more == "say":
            (update,) = updates(bot)
            updates(bot, offset=update.update_id + 1, limit=1)
    assert found == [["wakes it"], 409]
    bot.set_webhook("https://example.org")
    with pytest.raises(ApiTelegramException) as conflict:
        updates(bot)
    assert refusal(conflict)[0] == 409
    bot.delete_webhook()
    assert updates(bot) == []


def test_messages(server: TelegramServer, bot: TeleBot) -> None:
    """Lengths count after parsing, in UTF-16; entities and answers are checked."""
    sent = bot.send_message(GROUP, "<b>" + "😀" * 2048 + "</b>", parse_mode="HTML")
    assert [(entity.type, entity.offset, entity.length) for entity in sent.entities] == [
        ("bold", 0, 4096)
    ]
    for text, words in (
        ("😀" * 2048 + "x", "message is too long"),
        (" \n", "message text is empty"),
    ):
        with pytest.raises(ApiTelegramException) as refused:
            bot.send_message(GROUP, text)
        assert refusal(refused) == (400, f"Bad Request: {words}")
    entity = types.MessageEntity("code", 3, 4)
    plain = bot.send_message(GROUP, "😀 @ann @ben", entities=[entity])
    assert [(entity.type, entity.offset, entity.length) for entity in plain.entities] == [
        ("code", 3, 4),
        ("mention", 8, 4),
    ]
    with pytest.raises(ApiTelegramException, match="UTF-16 symbol"):
        bot.send_message(GROUP, "😀x", entities=[types.MessageEntity("bold", 1, 2)])
    with pytest.raises(ApiTelegramException, match="can't parse entities"):
        bot.send_message(GROUP, "<b>x", parse_mode="HTML")
    answer = bot.reply_to(plain, "yes")
    assert answer.reply_to_message.message_id == plain.message_id
    with pytest.raises(ApiTelegramException, match="message to be replied not found"):
        bot.send_message(GROUP, "x", reply_parameters=types.ReplyParameters(999))
    with pytest.raises(ApiTelegramException, match="chat not found"):
        bot.send_message(-1, "x")
    assert bot.edit_message_text("no", GROUP, answer.message_id).text == "no"
    with pytest.raises(ApiTelegramException, match="message is not modified"):
        bot.edit_message_text("no", GROUP, answer.message_id)
    assert bot.delete_message(GROUP, answer.message_id)
    with pytest.raises(ApiTelegramException, match="message to edit not found"):
        bot.edit_message_text("x", GROUP, answer.message_id)
    assert bot.set_message_reaction(GROUP, plain.message_id, [types.ReactionTypeEmoji("👍")])
    assert bot.send_chat_action(GROUP, "typing")


def test_buttons(server: TelegramServer, bot: TeleBot) -> None:
    """A press carries its data and the message; it can be answered once."""
    keyboard = types.InlineKeyboardMarkup([[types.InlineKeyboardButton("Yes", callback_data="y")]])
    sent = bot.send_message(GROUP, "?", reply_markup=keyboard)
    server.act("press", chat=GROUP, message=sent.message_id, user=ANN)
    (update,) = updates(bot)
    query = update.callback_query
    assert (query.data, query.from_user.id, query.message.message_id) == ("y", ANN, sent.message_id)
    assert bot.answer_callback_query(query.id)
    with pytest.raises(ApiTelegramException, match="query is too old"):
        bot.answer_callback_query(query.id)
    long = types.InlineKeyboardMarkup([[types.InlineKeyboardButton("x", callback_data="x" * 65)]])
    with pytest.raises(ApiTelegramException, match="BUTTON_DATA_INVALID"):
        bot.send_message(GROUP, "?", reply_markup=long)


def test_files_and_chats(server: TelegramServer, bot: TeleBot) -> None:
    """A document is fetched by its path; a chat tells who is in it."""
    document = {"name": "a.txt", "content": base64.b64encode(b"text").decode()}
    server.act("say", chat=GROUP, user=ANN, text="see", document=document)
    (update,) = updates(bot)
    file = bot.get_file(update.message.document.file_id)
    assert bot.download_file(file.file_path) == b"text"
    assert bot.get_chat(GROUP).title == "Crew"
    assert bot.get_chat_member(GROUP, ANN).status == "member"
    assert [administrator.user.id for administrator in bot.get_chat_administrators(GROUP)] == [ANN]


def test_refusals(server: TelegramServer, bot: TeleBot) -> None:
    """Errors have their code, their words, and the parameters that say what to do."""
    server.act("put", name="rate", value=[1, 30])
    bot.send_message(GROUP, "one")
    with pytest.raises(ApiTelegramException) as flooded:
        bot.send_message(GROUP, "two")
    assert flooded.value.error_code == 429
    assert 25 <= flooded.value.result_json["parameters"]["retry_after"] <= 30
    server.act("put", name="rate", value=[0, 1])
    server.act("migrate", old=GROUP, new=-100999)
    with pytest.raises(ApiTelegramException) as moved:
        bot.send_message(GROUP, "x")
    assert moved.value.result_json["parameters"] == {"migrate_to_chat_id": -100999}
    server.act("remove", chat=-100999, reason="bot was kicked from the supergroup chat")
    with pytest.raises(ApiTelegramException, match="Forbidden: bot was kicked"):
        bot.send_message(-100999, "x")
    with pytest.raises(ApiTelegramException) as wrong:
        TeleBot("1:wrong").get_me()
    assert refusal(wrong) == (401, "Unauthorized")
    server.act("put", name="breaks", value={"getMe": 1})
    with pytest.raises(requests.exceptions.RequestException):
        bot.get_me()
    assert bot.get_me().id == 700001


def test_it_keeps_its_state(server: TelegramServer, bot: TeleBot) -> None:
    """A server that was killed has everything again."""
    server.act("say", chat=GROUP, user=ANN, text="before")
    bot.send_message(GROUP, "answer")
    server.kill()
    server.start()
    assert [event["text"] for event in server.act("messages", chat=GROUP)] == ["before", "answer"]
    assert [update.message.text for update in updates(bot)] == ["before"]


@pytest.mark.parametrize("kind", ["query", "form", "json", "multipart"])
def test_each_form_of_a_request(server: TelegramServer, kind: str) -> None:
    """Parameters may be in the address, a form, JSON, or parts; names of methods ignore case."""
    address, head, body = f"{server.url}/bot{TOKEN}/SENDmessage", "", b""
    if kind == "query":
        address += f"?chat_id={GROUP}&text=%C3%BC"
    elif kind == "form":
        head, body = "application/x-www-form-urlencoded", f"chat_id={GROUP}&text=%C3%BC".encode()
    elif kind == "json":
        head, body = "application/json", json.dumps({"chat_id": GROUP, "text": "ü"}).encode()
    else:
        head = "multipart/form-data; boundary=x"
        part = '--x\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
        body = (part.format("chat_id", GROUP) + part.format("text", "ü") + "--x--\r\n").encode()
    with urlopen(
        Request(address, body or None, {"Content-Type": head}), timeout=seconds(10)
    ) as answer:
        assert json.load(answer)["result"]["text"] == "ü"
    with pytest.raises(HTTPError) as refused:
        urlopen(f"{server.url}/bot{TOKEN}/noSuchMethod", timeout=seconds(10))
    with refused.value as error:
        assert (error.code, json.load(error)["ok"]) == (404, False)
