"""The words of a message, as people type them."""

# ruff: noqa: RUF001 -- letters and marks that look alike are the point here

import re
import time
import tomllib
from pathlib import Path

import pytest

from steersman.machines import classification
from steersman.machines.classification import Classification, Keywords, classify, tokens
from steersman.machines.disposition import Intent

CONFIG = Path(__file__).parents[2] / "config.toml"
WORDS = Keywords()
STEERING = Keywords(steer=("actually", "instead", "wait", "correction:"))
COMMANDS = frozenset({"stop", "queue", "steer", "goal", "new"})


def intent(text: str, words: Keywords = WORDS) -> Intent:
    """Classify by the words alone."""
    return classify(text, words, commands=COMMANDS).intent


@pytest.mark.parametrize(
    "text",
    [
        *("stop", "cancel", "abort", "quit", "exit", "halt", "nevermind"),
        *("scratch that", "no wait"),
        *("Stop", "STOP", "sToP", "STOP!!!", "stop.", "stop...", "stop?!", "stop;", "stop,"),
        *("(stop)",),
        *("[stop]", "*stop*", "**STOP**", "- stop", "* stop"),
        *("...stop", "… stop", "stop…", "stop -", "stop-", "-- stop --", "stop~", "stop~~~"),
        *("just stop", "stop please", "please stop", "please cancel this", "please just stop"),
        *("please just stop this now", "now stop", "ok stop", "hey, stop", "stop it", "stop that"),
        *("stop everything", "abort all", "stop it all", "stop right now", "stop immediately"),
        *("can you stop", "could you please stop?", "you can stop now", "actually, stop"),
        *("wait, stop", "stop, wait", "no, stop", "no no no stop", "stop the", "stop and wait"),
        *("stop stop stop", "stop! cancel! abort!", "stop and quit", "quit and exit"),
        *("no, wait", "No... wait!", "no wait wait", "NO WAIT", "no\nwait", "scratch, that"),
        *("  stop  ", "\tstop\n", "stop\n\n\n", "\r\nstop\r\n", "please\nstop\nnow"),
        *("please--stop", "stop—now", "stop–now", "stop: now", "stop : now", "stop & wait"),
        *("stop 🛑", "🛑 stop", "⏹️ stop", "stop!!"),
        *("please...stop...now", "ok.stop", "stop.now", "Ok.Stop", "no.stop.", "please..stop"),
        *("please…stop…now", "no.wait", "ok.Stop!", "stop.it"),
        *("1. stop", "2) stop", "1.stop", "pls stop", "plz stop", "stop plz", "omg stop"),
        *("would you please stop", "will you stop", "will you please stop now?", "stop them"),
        *("stop the agents", "stop all agents", "stop what you're doing", "stop working"),
        *("stop what you’re doing", "stop what you are doing", "never mind", "Never mind!", "nvm"),
        *("ok, nvm", "no, never mind that", "stop, don't revert", "why not just stop"),
        *("why don't you stop", "great, now stop", "got it, stop", "stop, thank you"),
    ],
)
def test_nothing_but_interrupt_words_and_filler_is_a_bare_interrupt(text: str) -> None:
    """An interrupt word counts whatever its case, punctuation and position."""
    got = classify(text, WORDS)
    assert (got.intent, got.says_more, got.revert) == (Intent.INTERRUPT_BARE, False, "")


@pytest.mark.parametrize(
    "text",
    [
        *("¡stop!", "¿stop?", "¡Stop, please!"),
        *(
            "stop！",
            "stop。",
            "ｓｔｏｐ",
            "ＳＴＯＰ！！",
            "stop、now",
            "、stop。",
            "stop，now",
            "stop；",
        ),
        *("（stop）", "【stop】", "stop・now", "ｓｔｏｐ　ｎｏｗ"),
        *("stop؟", "stop،", "stop۔", "stop।", "stop՜", "stop‽", "stop·", "stop¶"),
        *("\ufeffstop", "st\u00adop", "stop\u200b", "stop\u00a0now", "stop\u2003now", "stop\u2028"),
        *("ﬆop", "𝐬𝐭𝐨𝐩", "ⓢⓣⓞⓟ", "ſtop"),
        *("“stop", "stop”", "’stop", "stop’"),
    ],
)
def test_punctuation_and_letter_forms_of_any_language_make_no_difference(text: str) -> None:
    """Words are compared after compatibility folding; a lone quotation mark quotes nothing."""
    assert intent(text) is Intent.INTERRUPT_BARE


@pytest.mark.parametrize(
    ("text", "matched"),
    [
        ("stop, use zod instead", "stop"),
        ("stop,use zod", "stop"),
        ("Stop: use zod", "stop"),
        ("use zod instead. stop!", "stop"),
        ("make the exit code 2 instead", "exit"),
        ("the cancel button is broken", "cancel"),
        ("implement undo support", "undo"),
        ("no wait, take the other file", "no wait"),
        ("no, wait: the other one", "no wait"),
        ("nevermind the tests", "nevermind"),
        ("scratch that, write it in rust", "scratch that"),
        ("can't you abort the build?", "abort"),
        ("Stop.Use zod", "stop"),
        ("STOP.USE ZOD", "stop"),
        ("please stop.Then use zod", "stop"),
        ("use zod...stop", "stop"),
        ("stop.(use zod)", "stop"),
        ("never mind, use yup", "never mind"),
        ("nvm the tests", "nvm"),
        ("don't do that, stop", "stop"),
        ("don't! stop!", "stop"),
        ("not now. stop.", "stop"),
        ("do not, stop", "stop"),
        ("don't ... stop", "stop"),
        ("not that stop", "stop"),
        ("stop and continue", "stop"),
        ("undo that and go on", "undo"),
        ("I said stop already", "stop"),
        ("first file.\nthen quit the loop", "quit"),
        ("stop 5", "stop"),
        ("stop (use zod)", "stop"),
        ("stop. `use zod`", "stop"),
        ('stop "that"', "stop"),
        ("stop src/main.py", "stop"),
        ("stop https://example.com", "stop"),
        ("what's wrong? stop that 'thing'", "stop"),
        ("stop & halt & go", "stop"),
        ("halt, then stop", "halt"),
        ("请 stop", "stop"),
        ("请stop一下", "stop"),
        ("stopください", "stop"),
        ('5" stop 6"', "stop"),
        ("the users' stop button isn't the admins' one", "stop"),
        ("rock 'n' roll must stop", "stop"),
        ('he said "go and then stop', "stop"),
        ("it's a `half open mark, stop", "stop"),
        ('"a"\nstop\n"b"', "stop"),
        ("say 'a', then stop, then 'b'", "stop"),
        ("«a» stop «b»", "stop"),
        ("»a« stop »b«", "stop"),
        ("```\ncode\n```\nstop that", "stop"),
        ("> quoted line\nstop", "stop"),
        ("a < b, stop, c > d", "stop"),
    ],
)
def test_an_interrupt_word_in_a_message_that_says_more(text: str, matched: str) -> None:
    """It interrupts, and there is something left to run; the first word found is named."""
    got = classify(text, WORDS)
    assert got == Classification(intent=Intent.INTERRUPT_MORE, matched=matched)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "\n", "...", "?!", "🛑", "-", "--", "'", '"', "`", "```", "/", "#", "@", "="),
        *(":",),
        *("what's the zod syntax for optional again?", "make it focus on ownership specifically"),
        *("please", "wait", "no", "actually wait", "please wait", "just this", "scratch", "no. go"),
        *("stopwatch timer", "nonstop", "stopping", "stopped", "stops", "stoppp", "unstoppable"),
        *("cancellation", "cancelled", "exits", "exited", "undone", "reverted", "halting"),
        *("quitter",),
        *("abortion", "existing", "exit2", "stop2", "2stop", "wait, no"),
        *("no we wait",),
        *("stop's", "exit's code", "stop’s"),
        *("stop\u0301", "stóp", "stopp\u0308e", "ßtop", "стоп", "stоp"),
    ],
)
def test_other_words_say_nothing_of_stopping(text: str) -> None:
    """Only whole words and whole phrases of the list count."""
    assert classify(text, WORDS).intent is Intent.CONVERSE


@pytest.mark.parametrize(
    "text",
    [
        *("the build did not stop", "it doesn't stop at the end", "don't stop until it is green"),
        *(
            "do not revert the commit",
            "never exit with 1",
            "the server won't stop",
            "try not to quit",
        ),
        *("don't revert the last file", "don't cancel or abort the build", "make it not halt"),
    ],
)
def test_negated_words_do_not_count(text: str) -> None:
    """An interrupt word directly behind a negation is talk."""
    assert classify(text, STEERING).intent is Intent.CONVERSE


@pytest.mark.parametrize(
    "text",
    [
        *(
            "ok",
            "OK!",
            "okay",
            "thanks",
            "Thank you.",
            "great",
            "got it",
            "ok, thanks!",
            "Great 👍",
        ),
        *("ok thanks, got it", "keep going", "please continue", "sounds good, keep going"),
        *(
            "don't stop",
            "do not revert",
            "never stop",
            "keep going, don't stop",
            "please don't stop",
        ),
        *("Don’t stop!", "DO NOT STOP", "don't stop now", "no, don't stop", "never ever quit"),
        *(
            "keep going, never stop",
            "don't stop or revert",
            "ok, don't cancel it",
            "no need to stop",
        ),
    ],
)
def test_a_message_that_asks_for_nothing_is_an_acknowledgement(text: str) -> None:
    """Nothing but words of that list, or negated interrupt words beside filler."""
    assert classify(text, WORDS) == Classification(intent=Intent.ACKNOWLEDGEMENT)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ok, use zod", Intent.CONVERSE),
        ("ok, wait", Intent.CONVERSE),
        ("`ok`", Intent.CONVERSE),
        ("thanks, now run the tests", Intent.CONVERSE),
        ("ok stop", Intent.INTERRUPT_BARE),
        ("don't stop, but use zod", Intent.CONVERSE),
        ("don't stop, abort", Intent.INTERRUPT_BARE),
    ],
)
def test_an_acknowledgement_that_says_more_is_none(text: str, expected: Intent) -> None:
    """Any other word makes it an ordinary message again."""
    assert intent(text) is expected


def test_a_steer_word_beside_an_acknowledgement_steers() -> None:
    """Only a message of nothing else waits."""
    assert intent("ok, actually", STEERING) is Intent.STEER_WORD


def test_a_chosen_interrupt_runs_what_it_says() -> None:
    """To continue is something to run; thanks is not."""
    assert classify("keep going", WORDS, "interrupt").says_more
    assert not classify("thanks", WORDS, "interrupt").says_more


@pytest.mark.parametrize(
    "text",
    [
        *("`stop`", "what does `exit(1)` do", "run `git revert HEAD`", "`` a`stop `` x"),
        *("use `no wait`",),
        *("```stop```", "```\nstop\n```", "```py\nexit(1)\n```\nfix it", "look: ```\nexit"),
        *("~~~\nstop\n~~~",),
        *('"stop"', 'the label says "stop"', 'say "please stop now" twice', 'print("stop")'),
        *("“stop”", "„stop“", "”stop”", "‘stop’", "'stop'", "the 'stop' button", "'don't stop'"),
        *(
            "«stop»",
            "« stop »",
            "»stop«",
            "‹stop›",
            "「stop」",
            "『stop』",
            "「a『stop』b」",
            "《stop》",
        ),
        *("他说“stop”了", '他说"stop"了', '"a\nstop\nb"', "> please stop", "a\n> stop\nb"),
        *("undo.py has a bug", "exit(1)", "sys.exit(1)", "stop()", "stop(now, please)", "stop[0]"),
        *("stop.sh", "stop.py fails", "Stop.cs", "see undo.test.ts", "this.stop", "agents.stop"),
        *("timer.Stop", "Timer.Stop", "Process.Exit", "Stop.UseZod", "exit.code", "www.stop.com"),
        *("ok.stop()", "a/ok.stop", "ok.stop_all", "ok.stop@x.io", "v1.stop"),
        *("obj.stop", "obj?.stop()", "ptr->stop", "Timer::stop", ".stop { }"),
        *("stop_words", "_stop_", "stop_", "STOP_LOSS", "__exit__", "stopAll", "onCancel", "$stop"),
        *("the non-stop train", "e-stop", "stop-gap", "stop‑gap", "pre-exit hook", "stop-and-go"),
        *("src/stop/x", "/usr/bin/stop", "./stop", "../exit", "~/undo", "stop/", "stop/cancel"),
        *("C:\\stop\\x",),
        *("https://example.com/stop", "see http://x.io/?stop&exit=1", "x://stop"),
        *("stop@example.com",),
        *("--abort", "git rebase --abort", "-stop", "--on-exit", "x=stop", "stop=1", "#stop"),
        *("@stop",),
        *("<stop>", "<stop/>", "</exit>", '<a href="x">', "<button cancel>"),
    ],
)
def test_words_that_are_shown_do_not_count(text: str) -> None:
    """Code, quotes, paths, names, hyphenated words, addresses, flags and tags are not said."""
    assert classify(text, WORDS).intent is Intent.CONVERSE


@pytest.mark.parametrize(
    "text",
    [
        *("revert", "undo", "Revert!", "revert this", "undo that", "undo it", "please undo"),
        *("undo?",),
        *("stop and revert", "actually stop and revert", "stop, revert everything"),
        *("no, undo that",),
        *("revert and stop", "abort & revert", "can you undo this?", "no wait, undo it"),
        *("undo undo",),
    ],
)
def test_beyond_doubt_the_turn_is_reverted(text: str) -> None:
    """Nothing but filler beside interrupt words of which one is revert or undo."""
    got = classify(text, WORDS)
    assert (got.intent, got.revert, got.says_more) == (Intent.REVERT, "turn", False)


@pytest.mark.parametrize(
    "text",
    [
        *("revert the last file", "undo the last change", "revert last file", "undo last change"),
        *("stop and revert the last file", "please undo just the last change!"),
        *("Revert The Last File.",),
        *("revert the last file change", "undo that last change"),
        *("stop. undo the last file, please", "undo and revert the last change"),
    ],
)
def test_the_last_file_alone_is_reverted(text: str) -> None:
    """Revert or undo with "the last file" or "change" undoes that one, and only that."""
    got = classify(text, WORDS)
    assert (got.intent, got.revert, got.says_more) == (Intent.REVERT, "last", False)


@pytest.mark.parametrize(
    "text",
    [
        *("implement undo support", "revert the commit"),
        *("undo the last three files",),
        *("revert the last file and use zod", "revert last", "undo the last migration"),
        *("revert to v2",),
        *("add an undo button", "stop and revert to the old API", "revert `that`"),
        *("undo, then use zod",),
    ],
)
def test_where_the_words_leave_doubt_nothing_is_reverted(text: str) -> None:
    """The word list interrupts, but no file is restored."""
    got = classify(text, WORDS)
    assert (got.intent, got.revert) == (Intent.INTERRUPT_MORE, "")


@pytest.mark.parametrize(
    ("text", "matched"),
    [
        ("actually, use yup", "actually"),
        ("use yup instead", "instead"),
        ("Wait - the other file", "wait"),
        ("correction: the other file", "correction:"),
        ("Correction： the other file", "correction:"),
        ("wait", "wait"),
    ],
)
def test_steer_words_steer(text: str, matched: str) -> None:
    """A configured steer word is found like an interrupt word."""
    assert classify(text, STEERING) == Classification(intent=Intent.STEER_WORD, matched=matched)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("actually stop and revert", Intent.REVERT),
        ("actually stop", Intent.INTERRUPT_BARE),
        ("no wait", Intent.INTERRUPT_BARE),
        ("stop, use zod instead", Intent.INTERRUPT_MORE),
        ("a correction is due", Intent.CONVERSE),
        ("the word `wait` is a keyword", Intent.CONVERSE),
        ("waiting", Intent.CONVERSE),
        ("no, actually", Intent.STEER_WORD),
    ],
)
def test_an_interrupt_word_beats_a_steer_word(text: str, expected: Intent) -> None:
    """Steer words are filler beside interrupt words, and the longest phrase wins."""
    assert intent(text, STEERING) is expected


@pytest.mark.parametrize(
    ("text", "command", "argument"),
    [
        ("/stop", "stop", ""),
        ("  /stop", "stop", ""),
        ("/STOP!", "stop", ""),
        ("／stop", "stop", ""),
        ("/queue list", "queue", "list"),
        ("/queue edit 2 stop the `timer` ", "queue", "edit 2 stop the `timer`"),
        ("/goal all tests pass\nand lint", "goal", "all tests pass\nand lint"),
        ("/goal\nall tests pass", "goal", "all tests pass"),
        ("/steer @kid prefer the parser", "steer", "@kid prefer the parser"),
    ],
)
def test_slash_commands(text: str, command: str, argument: str) -> None:
    """A known name behind a slash at the beginning is a command; the rest is its argument."""
    got = classify(text, WORDS, commands=COMMANDS)
    assert got == Classification(intent=Intent.COMMAND, command=command, argument=argument)


@pytest.mark.parametrize(
    "text",
    [
        *("/usr/bin/x fails", "/stop/x", "/unknown", "/tmp is full", "/stop.py", "/ stop_"),
        *("//stop",),
        *("see /stop", "/2", "/stop_words", "/stop's", "/queue2 list"),
    ],
)
def test_what_only_looks_like_a_command(text: str) -> None:
    """Paths, unknown names and slashes elsewhere are ordinary text."""
    assert intent(text) is Intent.CONVERSE


@pytest.mark.parametrize(
    ("text", "explicit", "expected"),
    [
        ("stop", "queue", Classification(intent=Intent.EXPLICIT_QUEUE)),
        ("stop", "steer", Classification(intent=Intent.EXPLICIT_STEER)),
        ("/queue list", "steer", Classification(intent=Intent.EXPLICIT_STEER)),
        ("use zod", "interrupt", Classification(intent=Intent.EXPLICIT_INTERRUPT)),
        (
            "please stop",
            "interrupt",
            Classification(intent=Intent.EXPLICIT_INTERRUPT, says_more=False),
        ),
        ("", "interrupt", Classification(intent=Intent.EXPLICIT_INTERRUPT, says_more=False)),
        (
            "stop and revert",
            "interrupt",
            Classification(intent=Intent.EXPLICIT_INTERRUPT, says_more=False, revert="turn"),
        ),
        ("revert", "queue", Classification(intent=Intent.EXPLICIT_QUEUE)),
        (
            "stop",
            "auto",
            Classification(intent=Intent.INTERRUPT_BARE, matched="stop", says_more=False),
        ),
    ],
)
def test_an_explicit_choice_decides(text: str, explicit: str, expected: Classification) -> None:
    """An explicit mode of a message overrides its words."""
    assert classify(text, WORDS, explicit, COMMANDS) == expected


@pytest.mark.parametrize(
    ("words", "text", "expected"),
    [
        (
            Keywords(interrupt=("停止", "やめて"), filler=("请", "現在")),
            "停止",
            Intent.INTERRUPT_BARE,
        ),
        (Keywords(interrupt=("停止", "やめて"), filler=("请",)), "请停止！", Intent.INTERRUPT_BARE),
        (Keywords(interrupt=("停止",), filler=("请",)), "请停止测试", Intent.INTERRUPT_MORE),
        (Keywords(interrupt=("停止",), filler=()), "他说「停止」", Intent.CONVERSE),
        (
            Keywords(interrupt=("やめて",), filler=("もう",)),
            "もう、やめて。",
            Intent.INTERRUPT_BARE,
        ),
        (Keywords(interrupt=("停",), filler=("请",)), "请停（现在）", Intent.INTERRUPT_MORE),
        (Keywords(interrupt=("стоп",)), "СТОП!", Intent.INTERRUPT_BARE),
        (Keywords(interrupt=("停",), negation=("别",)), "别停", Intent.ACKNOWLEDGEMENT),
        (Keywords(interrupt=("стоп",), negation=("не",)), "не стоп", Intent.ACKNOWLEDGEMENT),
        (Keywords(negation=()), "don't stop", Intent.INTERRUPT_MORE),
        (Keywords(acknowledgement=("merci",)), "Merci !", Intent.ACKNOWLEDGEMENT),
        (Keywords(acknowledgement=()), "thanks", Intent.CONVERSE),
        (Keywords(interrupt=("arrête",)), "Arre\u0302te !", Intent.INTERRUPT_BARE),
        (Keywords(interrupt=("arrête",)), "arrete", Intent.CONVERSE),
        (Keywords(interrupt=("STRASSE",)), "straße", Intent.INTERRUPT_BARE),
        (Keywords(interrupt=("रुको",)), "रुको।", Intent.INTERRUPT_BARE),
        (Keywords(interrupt=("रुको",)), "रुकोगे", Intent.CONVERSE),
        (Keywords(interrupt=("توقف",)), "توقف؟", Intent.INTERRUPT_BARE),
        (Keywords(interrupt=("หยุด",), filler=("ครับ",)), "หยุดครับ", Intent.INTERRUPT_BARE),
        (Keywords(interrupt=("멈춰",)), "멈춰!", Intent.INTERRUPT_BARE),
        (
            Keywords(interrupt=("s'il te plaît arrête",)),
            "S’il te plaît, arrête",
            Intent.INTERRUPT_BARE,
        ),
        (Keywords(interrupt=("non-stop",)), "non-stop", Intent.INTERRUPT_BARE),
        (Keywords(interrupt=()), "stop", Intent.CONVERSE),
        (Keywords(interrupt=("", "  ", "!")), "! hello", Intent.CONVERSE),
        (Keywords(interrupt=("halt",)), "undo that", Intent.CONVERSE),
        (Keywords(filler=()), "please stop", Intent.INTERRUPT_MORE),
        (Keywords(filler=("right away",)), "stop right away", Intent.INTERRUPT_BARE),
        (Keywords(filler=("right away",)), "stop right", Intent.INTERRUPT_MORE),
        (Keywords(interrupt=("stop",), steer=("stop",)), "stop", Intent.INTERRUPT_BARE),
    ],
)
def test_the_lists_are_configurable(words: Keywords, text: str, expected: Intent) -> None:
    """Entries of any language and length work, also where words have no spaces between them."""
    assert intent(text, words) is expected


def test_a_pasted_text_is_read_like_any_other() -> None:
    """Many lines with code in marks are talk, until a line of prose says stop."""
    paste = "\n".join(
        [
            "Here is the log, what does it mean?",
            "```",
            "Traceback: SystemExit, calling exit(1)",
            "  stop: cancel",
            "```",
            "It happens in src/undo.py when `--abort` is given.",
        ]
    )
    assert intent(paste) is Intent.CONVERSE
    assert classify(paste + "\n\nand stop the server", WORDS) == Classification(
        intent=Intent.INTERRUPT_MORE, matched="stop"
    )


HOSTILE = {
    "word": "stop ",
    "letter": "a",
    "space": " ",
    "newline": "\n",
    "single quote": "'a ",
    "double quote": '" ',
    "guillemet": "« ",
    "corner": "「",
    "tag": "<a ",
    "tick": "` ",
    "ticks": "`` ",
    "fence": "~~~\n",
    "dash": "a--",
    "colon": "a:",
    "call": "a(",
    "index": "a[",
    "apostrophe": "a'",
    "path": "/a",
    "address": "a://b ",
    "quoted line": ">\n",
    "marks": "\u0301\u0323",
    "ligature": "\ufdfa",
    "mixed script": "停stop",
    "surrogate": "\ud800",
    "revert": "revert the ",
    "nothing": "\0",
    "dotted": "ok.",
    "negated": "don't stop or ",
    "numbered": "1. \n",
}


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_costs_time_in_proportion(piece: str) -> None:
    """Eight times the text takes far less than the sixty-four times of a quadratic reading."""
    short, long = (_seconds(piece * (size // len(piece))) for size in (2_000, 16_000))
    assert long < 24 * short + 0.05


@pytest.mark.nightly
@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_megabyte_ends(piece: str) -> None:
    """A text of a million characters is classified, whatever it is made of."""
    text = piece * (1_000_000 // len(piece))
    assert classify(text, WORDS).intent in Intent


def _seconds(text: str) -> float:
    """Measure processor time, the best of two."""
    best = float("inf")
    for _ in range(2):
        begin = time.process_time()
        classify(text, WORDS)
        best = min(best, time.process_time() - begin)
    return best


def test_the_shipped_configuration_has_the_same_lists() -> None:
    """Without any configuration the words are those that the shipped file shows."""
    shipped = tomllib.loads(CONFIG.read_text(encoding="utf-8"))["auto_queue"]
    assert shipped["interrupt_keywords"] == list(WORDS.interrupt)
    assert shipped["steer_keywords"] == list(WORDS.steer)
    assert shipped["filler_words"] == list(WORDS.filler)
    assert shipped["negation_words"] == list(WORDS.negation)
    assert shipped["acknowledgement_words"] == list(WORDS.acknowledgement)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("STOP！", Intent.INTERRUPT_BARE),
        ("ｓｔｏｐ，please", Intent.INTERRUPT_BARE),
        ("🛑 Stop now!!! 😡", Intent.INTERRUPT_BARE),
        ("\u202bstop\u202c", Intent.INTERRUPT_BARE),
        ("okay, stop, thank you", Intent.INTERRUPT_BARE),
        ("oh no, stop already", Intent.INTERRUPT_BARE),
        ("sorry, nevermind!", Intent.INTERRUPT_BARE),
        ("never mind the warnings, go on", Intent.INTERRUPT_MORE),
        ("¡para! stop", Intent.INTERRUPT_MORE),
        ("עצור stop", Intent.INTERRUPT_MORE),
        ("undo your last change", Intent.REVERT),
        ("please undo the very last edit", Intent.REVERT),
        ("undo your changes", Intent.INTERRUPT_MORE),
        ("undo my last change", Intent.INTERRUPT_MORE),
        ("「stop」と言った", Intent.CONVERSE),
        ("he said «stop»", Intent.CONVERSE),
        ("he said “stop!”", Intent.CONVERSE),
        ("echo ${stop}", Intent.CONVERSE),
        ("put {{ stop }} into the template", Intent.CONVERSE),
    ],
)
def test_what_people_type(text: str, expected: Intent) -> None:
    """Punctuation of any language, politeness, and what only looks like a word of ours."""
    assert intent(text) is expected


@pytest.mark.parametrize("text", ["undo your last change", "please undo the very last edit"])
def test_whose_last_change_is_meant(text: str) -> None:
    """The agent's own last change is the last one; a person's own is not the agent's to undo."""
    assert classify(text, WORDS).revert == "last"
    assert classify(text.replace("your", "my").replace("very", "my"), WORDS).revert == ""


def test_plain_entries_are_what_cutting_makes_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The short way for entries of plain words gives the tokens that the long way gives."""
    shipped = tomllib.loads(CONFIG.read_text(encoding="utf-8"))["auto_queue"]
    entries = [entry for name in shipped if name.endswith("_words") for entry in shipped[name]]
    entries += [*WORDS.interrupt, *WORDS.filler, *WORDS.acknowledgement, *WORDS.negation]
    entries += ["OK  then", " Stop ", "Don't", "y'all don", "rock'n"]
    short = [classification._plain_words(entry) for entry in entries]
    long = [tuple(token.text for token in tokens(entry)) for entry in entries]
    assert all(words in ((), cut) for words, cut in zip(short, long, strict=True))
    assert sum(map(bool, short)) > 50
    for entry in ("'tis", "dogs'", "a''b", "don't won't", "", " ", "to-do", "stop.", "\u0130"):
        assert classification._plain_words(entry) == ()


@pytest.mark.parametrize(
    "run", ["stop", "Don't", "a1'b'c", "'a", "a'", "a''b", "x_y", "v1.2", "\xe9"]
)
def test_a_run_that_is_plain_at_a_glance_is_plain(run: str) -> None:
    """What the short way takes for one word of letters, the long way takes for one, too."""
    if classification._is_plain(run):
        assert [*classification._split(run, ("stop",))] == [classification.Token(run.casefold())]
    assert classification._is_plain(run) == (run in ("stop", "Don't", "a1'b'c"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\u505c\u6b62\u5de5\u4f5c", ["\u505c\u6b62", "\u5de5\u4f5c"]),
        ("\u5de5\u4f5c\u505c\u6b62", ["\u5de5\u4f5c", "\u505c\u6b62"]),
        ("\u505c\u6b62\u505c\u6b62", ["\u505c\u6b62", "\u505c\u6b62"]),
    ],
)
def test_a_run_without_spaces_is_cut_around_the_words(text: str, expected: list[str]) -> None:
    """What is between them is a word of its own, and nothing is none."""
    assert [token.text for token in tokens(text, re.compile("\u505c\u6b62"))] == expected
