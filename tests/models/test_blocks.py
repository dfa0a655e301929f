"""A small model's turn: files with the request, whole files back, the tests, one failure told."""

import asyncio
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from models.conftest import Printing

from steersman.journal.recovery import INTERRUPTED, UNKNOWN
from steersman.machines.conversation import ChatMessage, ToolRequest, ToolSchema
from steersman.ports.models.blocks import BlocksDialect
from steersman.ports.models.fragments import head_of, without_body
from steersman.ports.models.model import AnswerListener, ModelAnswer, ModelRequest
from steersman.ports.models.said_files import PROMPT
from steersman.ports.models.spoken_request import SpokenRequest

TOOLS = tuple(
    ToolSchema(name=name, description="", parameters={})
    for name in ("survey", "write", "shell", "read")
)
SURVEY = "a.py\n```\ndef f():\n    return 1\n```\n\nbig.log\n```\nx\n[… 9 lines more]\n```"
FAILURE = (
    'FAIL: test_g\nTraceback (most recent call last):\n  File "/x/test_a.py", line 3, in test_g\n'
    "    assertEqual(g(), 2)\nAssertionError: 1 != 2\n\nFAILED (failures=1)\n[exit code 1]"
)
TESTED = f"{SURVEY}\n\nTests are run with: make test"


class Talk:
    """One conversation through the dialect, with results that the test gives."""

    def __init__(self, *texts: str) -> None:
        self.model = Printing(*texts)
        self.dialect = BlocksDialect(self.model)
        self.said: list[ChatMessage] = []

    def says(self, text: str) -> ModelAnswer:
        """Say something as the person, or as the program."""
        self.said.append(ChatMessage(role="user", text=text))
        return self.next()

    def next(self, *results: str) -> ModelAnswer:
        """Give the results of the last calls, and return what the dialect answers."""
        calls: Sequence[ToolRequest] = self.said[-1].tool_calls
        for call, text in zip(calls, results, strict=True):
            self.said.append(ChatMessage(role="tool", text=text, call=call.call))
        request = ModelRequest(
            system=PROMPT, messages=tuple(self.said), tools=TOOLS, call_prefix=f"c{len(self.said)}."
        )
        answer = asyncio.run(self.dialect.answer(request, AnswerListener()))
        said = ChatMessage(role="assistant", text=answer.text, tool_calls=answer.tool_calls)
        self.said.append(said)
        return answer

    def fails(self, bodies: Sequence[str], test: str, failed: str) -> list[str]:
        """Let each of these texts of `a.py` fail until the turn ends; return all questions."""
        for body in bodies:
            if not self.next("Created `a.py`.", failed).tool_calls:
                break
            self.next(f"a.py\n```\n{body}\n```\n\n{test}\n\nTests are run with: make test")
        return [request.messages[-1].text for request in self.model.asked]


def calls_of(answer: ModelAnswer) -> list[tuple[str, object]]:
    """Return tool and first argument of each call."""
    return [(call.tool, next(iter(call.arguments.values()))) for call in answer.tool_calls]


def test_a_question_is_answered_in_words() -> None:
    """The files come first, without a call of the model; an answer in words ends the turn."""
    talk = Talk("It returns 1.")
    looked = talk.says("what does f return?")
    assert calls_of(looked) == [("survey", "what does f return?")]
    assert not talk.model.asked
    answer = talk.next(SURVEY)
    assert (answer.text, answer.tool_calls) == ("It returns 1.", ())
    (asked,) = talk.model.asked
    assert asked.tools == ()
    assert [said.text for said in asked.messages] == [f"{SURVEY}\n\nwhat does f return?"]


def test_what_is_looked_up_in_prose_is_quoted_first() -> None:
    """Else the first number that looks right is the answer."""
    talk = Talk("> six weeks\n\nSix weeks.")
    talk.says("I want to leave. How long is the notice of rules.txt?")
    talk.next("a.py\n```\nx = 1\n```\n\nrules.txt\n```\n14 days\nsix weeks\n```")
    quote = "\n\nFirst quote the lines that are about it, then answer in one sentence."
    assert talk.model.asked[0].messages[0].text.endswith(f"rules.txt?{quote}")


@pytest.mark.parametrize("question", ["what is in notes.txt?", "What does notes.txt say?"])
def test_a_question_about_a_whole_text_is_answered_of_all_of_it(question: str) -> None:
    """No line is quoted before: which one would it be?"""
    talk = Talk("Oat milk and a dentist.")
    talk.says(question)
    talk.next("notes.txt\n```\ndentist on Thursday\nbuy oat milk\n```")
    assert talk.model.asked[0].messages[0].text.endswith(f"\n\n{question}")


@pytest.mark.parametrize("question", ["what does f return?", "in which file is f? see a.py"])
def test_who_only_asks_gets_no_file_changed(question: str) -> None:
    """Also where the model prints one: its words are the answer."""
    talk = Talk("It returns 1.\n\na.py\n```python\ndef f():\n    return 1\n```")
    talk.says(question)
    answer = talk.next(SURVEY)
    assert (answer.tool_calls, answer.text.split("\n")[0]) == ((), "It returns 1.")


def test_a_question_with_an_order_behind_it_changes_files() -> None:
    """What is asked first is no reason to leave out what is asked for then."""
    talk = Talk("Too low.\n\na.py\n```python\ndef f():\n    return 2\n```")
    talk.says("why does f return 1? let it return 2")
    assert calls_of(talk.next(SURVEY)) == [("write", "a.py")]


def test_files_are_written_and_the_turn_ends_without_another_call() -> None:
    """A block becomes a call of `write`; what was done is said by the dialect."""
    talk = Talk("Here it is.\n\na.py\n```python\ndef f():\n    return 2\n```")
    talk.says("let f return 2")
    answer = talk.next(SURVEY)
    assert [(call.tool, call.arguments) for call in answer.tool_calls] == [
        ("write", {"path": "a.py", "content": "def f():\n    return 2\n"})
    ]
    assert talk.next("Replaced `a.py` (1 byte).").text == "Done."
    assert len(talk.model.asked) == 1


def test_a_failure_is_told_each_time_in_another_way() -> None:
    """Tests run after each change; after a failure the model sees the folder as it is now."""
    block = "a.py\n```\ndef f():\n    return {}\n```"
    talk = Talk(*(block.format(number) for number in (2, 3, 4, 5)))
    talk.says("let f return 9, as the tests check")
    assert calls_of(talk.next(TESTED)) == [("write", "a.py"), ("shell", "make test")]
    for number, way in enumerate(("Say in one sentence", "Rewrite a.py", "step by step"), 2):
        look = talk.next("Replaced `a.py`.", f"f is {number}\n[exit code 2]")
        assert calls_of(look)[0][0] == "survey"
        again = talk.next(TESTED.replace("return 1", f"return {number}"))
        assert calls_of(again) == [("write", "a.py"), ("shell", "make test")]
        (asked,) = talk.model.asked[number - 1].messages
        assert f"return {number}" in asked.text
        assert f"fail:\nf is {number}\n" in asked.text.replace("`make test` fails", "fail")
        assert way in asked.text
    end = talk.next("Replaced `a.py`.", "f is 5\n[exit code 2]")
    assert end.text == "The tests (`make test`) still fail:\nf is 5"


def test_a_new_file_that_fails_is_asked_for_without_it() -> None:
    """The model repeats what it sees, so it sees only what must hold: all that has failed till now."""
    test = "test_b.py\n```\nimport b\n```\n\nTests are run with: make test"
    block, wrong = "b.py\n```\ng = {}\n```", "    check(g, {})\nAssertionError: {}\n[exit code 1]"
    talk = Talk(*(block.format(number) for number in range(3)))
    talk.says("write b.py for the tests")
    talk.next(test)
    told = "check(g, 1)\nAssertionError: 0"
    for number, words in enumerate((f"A first try failed:\n{told}\n\nDo it", "Mind that this"), 1):
        talk.next("Created `b.py`.", wrong.format(number, number - 1))
        talk.next(f"{block.format(number - 1)}\n\n{test}")
        (asked,) = talk.model.asked[number].messages
        assert asked.text.startswith("test_b.py\n```\nimport b\n```\n\nwrite b.py for the tests")
        assert words in asked.text
    assert f"{told}\ncheck(g, 2)\nAssertionError: 1\n\nPrint only b.py" in asked.text


def test_a_function_is_written_anew() -> None:
    """The model sees neither its wrong body nor the wrong answer before; the others stay as they were."""
    code = 'def f():\n    return 1\n\n\ndef g():\n    """Return 2."""\n    return 1'
    survey = f"a.py\n```\n{code}\n```\n\ntest_a.py\n```\nfrom a import f, g\n```"
    survey += "\n\nTests are run with: make test"
    talk = Talk("a.py\n```\ndef f():\n    return 7\n```", "```python\ndef g():\n    return 2\n```")
    talk.says("the test fails, fix it")
    talk.next(survey)
    talk.next("Replaced `a.py`.", FAILURE)
    anew = talk.next(survey.replace("return 1", "return 7", 1))
    (asked,) = talk.model.asked[1].messages
    assert asked.text == (
        'a.py\n```\ndef f():\n    return 1\n\n\ndef g():\n    """Return 2."""\n    # TODO\n```\n\n'
        "The request: the test fails, fix it\n\n"
        "This must hold:\nassertEqual(g(), 2)\nAssertionError: 1 != 2\n\n"
        "Write the function g. Print only it, in a fenced block."
    )
    assert anew.tool_calls[0].arguments == {
        "path": "a.py",
        "content": "def f():\n    return 1\n\n\ndef g():\n    return 2\n",
    }
    assert calls_of(anew)[1] == ("shell", "make test")


def test_a_function_that_was_left_empty_is_asked_for_alone() -> None:
    """A very small model prints the head that it was shown; it is asked at once, in plain words."""
    survey = (
        'a.py\n```\ndef g():\n    """Return 2."""\n    return 1\n```\n\n'
        "test_a.py\n```\nfrom a import g\n```\n\nTests are run with: make test"
    )
    empty = '```python\ndef g():\n    """Return 2."""\n    # TODO\n```'
    talk = Talk("It is wrong.", empty, "```python\ndef g():\n    return 2\n```")
    talk.says("the test fails, fix it")
    assert calls_of(talk.next(survey)) == [("shell", "make test")]
    anew = talk.next(FAILURE)
    assert talk.model.asked[-1].messages[-1].text == (
        "Write this Python function, and print only it in a fenced block:\n\n"
        'def g():\n    """Return 2."""\n\n'
        "This must hold:\nassertEqual(g(), 2)\nAssertionError: 1 != 2"
    )
    assert anew.tool_calls[0].arguments["content"] == "def g():\n    return 2\n"


def test_an_answer_that_owes_a_file_is_asked_for_it() -> None:
    """Code without a path, or nothing at all where something was to be mended, does not end the turn."""
    talk = Talk("```python\ny = 2\n```", "a.py\n```\nx = 1\n```")
    talk.says("set x to 1")
    assert calls_of(talk.next(SURVEY)) == [("write", "a.py")]
    assert "Nothing was changed yet." in talk.model.asked[1].messages[-1].text
    talk = Talk("`a.py`", "It is right as it is.")
    talk.says("fix the bug")
    assert talk.next(SURVEY).text == "`a.py`\n\nIt is right as it is."
    talk = Talk("Like this:\n```python\ny = 2\n```")
    talk.says("how do I set y?")
    assert talk.next(SURVEY).tool_calls == ()
    assert len(talk.model.asked) == 1


def test_what_is_left_over_is_told() -> None:
    """A request about several files is not done while the old name is still in one."""
    survey = "a.py\n```\nget_usr()\n```\n\nb.py\n```\nget_usr()\n```"
    talk = Talk("a.py\n```\nload_user()\n```", "b.py\n```\nload_user()\n```")
    talk.says("rename get_usr to load_user everywhere, since it loads one")
    talk.next(survey)
    assert calls_of(talk.next("Replaced `a.py`."))[0][0] == "survey"
    again = talk.next(survey.replace("get_usr", "load_user", 1))
    assert calls_of(again) == [("write", "b.py")]
    assert "`get_usr` is `load_user` now." in talk.model.asked[1].messages[-1].text
    talk.next("Replaced `b.py`.")
    assert talk.next(survey.replace("get_usr", "load_user")).text == "Done."


def test_a_script_that_is_missing_is_asked_for_by_its_name() -> None:
    """Its block needs no path then: the request names one file of its kind that is not there."""
    talk = Talk("boxes/a.txt", '```bash\nls -S "$1" | head -1\n```')
    talk.says("write a shell script big.sh that prints the biggest file, e.g. bash big.sh boxes")
    answer = talk.next("boxes/a.txt\n```\nx\n```")
    assert calls_of(answer)[0] == ("write", "big.sh")
    asked = talk.model.asked[1].messages[-1].text
    assert asked == "There is no big.sh yet. Print big.sh in a fenced block."


def test_a_program_that_is_missing_is_asked_for_beside_what_was_written() -> None:
    """The files of both answers are written."""
    talk = Talk("b.txt\n```\nmilk\n```", "c.py\n```python\nprint(1)\n```")
    talk.says("write c.py and put its output into b.txt")
    assert calls_of(talk.next(SURVEY))[:2] == [("write", "b.txt"), ("write", "c.py")]


def test_a_block_without_a_path_is_the_file_that_it_is_most_like() -> None:
    """Where no other one has as many of its lines."""
    files = {"a.toml": '[project]\nname = "a"\nversion = "1.0"', "b.toml": '[tool]\nname = "b"'}
    talk = Talk('```toml\n[project]\nname = "a"\nversion = "1.1"\n```')
    talk.says("we are at 1.1 now")
    answer = talk.next("\n\n".join(f"{path}\n```\n{text}\n```" for path, text in files.items()))
    assert calls_of(answer)[0] == ("write", "a.toml")


def test_words_that_stand_side_by_side_are_one_name() -> None:
    """A street with its number is not left over where the street has another number."""
    shop, people = "a.html\n```\nElm St 7\n```", "b.csv\n```\nann,Elm St 72\n```"
    talk = Talk("a.html\n```\nOak St 12\n```")
    talk.says("we moved from Elm St 7 to Oak St 12, put that everywhere")
    talk.next(f"{shop}\n\n{people}")
    talk.next("Replaced `a.html`.")
    done = talk.next(f"{shop.replace('Elm St 7', 'Oak St 12')}\n\n{people}")
    assert (done.text, len(talk.model.asked)) == ("Done.", 1)


def test_a_function_that_fails_the_example_is_asked_for_alone() -> None:
    """By its head and the example; the rest of the file stays as it is."""
    last = "def last(name):\n    return name\n"
    wrong = f"{last}\n\ndef initials(name):\n    return name[0]\n"
    right = "def initials(name):\n    return '.'.join(word[0] for word in name.split())\n"
    shown = "names.py\n```\n{}```\n\nTests are run with: python3 -B -c 'import names'"
    other = "def initials(name):\n    return name[:1]\n"
    alone = (f"```python\n{code}```" for code in (other, right))
    talk = Talk(f"names.py\n```python\n{wrong}```", *alone)
    request = "add initials(name) to names.py. initials('ana gil') should return 'a.g'"
    talk.says(request)
    talk.next(shown.format(last))
    fault = "AssertionError: initials('ana gil') should be 'a.g', and is 'a'"
    talk.next("Replaced `names.py`.", f"{fault}\n[exit code 1]")
    again = talk.next(shown.format(wrong))
    asked = "\n\ndef initials(name):\n\nThis must hold:\n"
    assert talk.model.asked[1].messages[-1].text.endswith(f"{asked}{fault}")
    assert again.tool_calls[0].arguments["content"] == f"{last}\n\n{other}"
    talk.next("Replaced `names.py`.", f"{fault}\n[exit code 1]")
    again = talk.next(shown.format(f"{last}\n\n{other}"))
    assert f"{asked}{request}\n\nUse as few lines" in talk.model.asked[2].messages[-1].text
    assert again.tool_calls[0].arguments["content"] == f"{last}\n\n{right}"


def test_where_a_name_is_to_be_changed_nothing_else_is() -> None:
    """What the model lost of a file stays; no script is asked for, and no file is forgotten."""
    shown = (
        "a.csv\n```\nqty,price\n1,2\n```\n\nb.py\n```\nprint(row['qty'])\n```\n\n"
        "README.md\n```\nA qty is a number.\n```"
    )
    talk = Talk("a.csv\n```\nquantity,price\n```", "It is no name there.")
    talk.says("rename the column qty to quantity in a.csv and the scripts")
    first = talk.next(shown)
    assert "Python script" not in talk.model.asked[0].messages[-1].text
    written = {call.arguments["path"]: call.arguments["content"] for call in first.tool_calls}
    assert written == {"a.csv": "quantity,price\n1,2\n", "b.py": "print(row['quantity'])\n"}
    talk.next("Replaced `a.csv`.", "Replaced `b.py`.")
    rest = talk.next(shown.replace("qty,", "quantity,").replace("'qty'", "'quantity'"))
    assert calls_of(rest) == [("write", "README.md")]  # a word like others is the model's to judge
    assert rest.tool_calls[0].arguments["content"] == "A qty is a number.\n"


def test_a_name_is_changed_where_the_model_prints_no_file() -> None:
    """It is known how, and the model is not asked for it in other words."""
    talk = Talk("It is called g now.")
    talk.says("rename f_one to g_one")
    answer = talk.next("a.py\n```\nf_one()\n```\n\nb.py\n```\nff_one()\n```")
    assert [call.arguments for call in answer.tool_calls] == [
        {"path": "a.py", "content": "g_one()\n"}
    ]


def test_each_file_with_something_left_over_is_asked_for_alone() -> None:
    """An answer about one file changes no other one; one that stays as it is is not asked for again."""
    files = {
        "a.py": "load = get_usr",
        "b.py": "get_usr()",
        "c.py": "get_usr = 1",
        "d.py": "no_get_usr",
    }
    survey = "\n\n".join(f"{path}\n```\n{text}\n```" for path, text in files.items())
    talk = Talk(
        "a.py\n```\nload = load_user\n```",
        "b.py\n```\nload_user()\n```\n\nd.py\n```\nload_user\n```",
        "It is something else there.",
    )
    talk.says("rename get_usr to load_user, since it loads one")
    talk.next(survey)
    talk.next("Replaced `a.py`.")
    survey = survey.replace("load = get_usr", "load = load_user")
    assert calls_of(talk.next(survey)) == [("write", "b.py")]
    assert [said.text for said in talk.model.asked[1].messages] == [
        "b.py\n```\nget_usr()\n```\n\nThe request: rename get_usr to load_user, since it loads one\n\n"
        "`get_usr` is `load_user` now. "
        "Change that in b.py, and nothing else: print the whole new b.py in a fenced block."
    ]
    talk.next("Replaced `b.py`.")
    survey = survey.replace("\nget_usr()", "\nload_user()")
    assert talk.next(survey).tool_calls[0].arguments == {"path": "c.py", "content": "get_usr = 1\n"}
    talk.next("Unchanged `c.py`.")
    assert talk.next(survey).text == "Done."


def test_a_version_is_changed_wherever_it_stands_as_one() -> None:
    """Also where the model has not looked; another program's number stays."""
    survey = (
        'p.toml\n```\nversion = "1.3.2"\nneeds = "x==1.3.2"\n```\n\nlock.txt\n```\nx==1.3.2\n```\n\n'
        "NEWS\n```\n1.3.2\n```"
    )
    talk = Talk("NEWS.md\n```\n1.4.0\n1.3.2\n```", "```toml\nversion = '1.4.0'\n```")
    talk.says("bump the version to 1.4.0")
    talk.next(survey)
    talk.next("Created `NEWS.md`.")
    assert calls_of(talk.next(survey)) == [("write", "p.toml")]
    assert "`1.3.2` is `1.4.0` now. Change that in p.toml" in talk.model.asked[1].messages[0].text
    talk.next("Replaced `p.toml`.")
    assert talk.next(survey.replace("1.3.2", "1.4.0", 1)).text == "Done."


def test_a_name_is_changed_in_files_that_are_not_shown(tmp_path: Path) -> None:
    """A script does it: what is shown whole is written, and nothing else of the folder is touched."""
    texts = {
        "a.py": "f_one()",
        "b.py": "x\nf_one()\nff_one()\n",
        "sub/c.md": "f_one",
        ".d": "f_one",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "e.bin").write_bytes(b"\xff f_one")
    talk = Talk("a.py\n```\ng_one()\n```")
    talk.says("rename f_one to g_one everywhere")
    answer = talk.next(
        "Other files: sub/c.md\n\na.py\n```\nf_one()\n```\n\nb.py\n```\nx\n[… 9 lines more]\n```"
    )
    script, write = answer.tool_calls
    assert write.arguments == {"path": "a.py", "content": "g_one()\n"}
    command = ["sh", "-c", str(script.arguments["command"])]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert sorted(run.stdout.split()) == ["b.py", "sub/c.md"]
    assert (tmp_path / "b.py").read_text() == "x\ng_one()\nff_one()\n"
    assert (tmp_path / "a.py").read_text() == "f_one()"


def test_what_refers_to_a_moved_file_is_changed() -> None:
    """After the command that moves it the folder is looked at again; the model is not asked for it."""
    survey = (
        "a.py\n```\nx = 1\n```\n\nb.py\n```\nimport a\nprint(a.x)\n```\n\n"
        "b.sh\n```\npython a.py; python data.py\n```"
    )
    talk = Talk("```sh\nmv a.py b.txt\n```")
    talk.says("rename a.py to data/c.py")
    assert calls_of(talk.next(survey)) == [("shell", "mkdir -p data && mv a.py data/c.py")]
    assert calls_of(talk.next("(no output)\n[exit code 0]"))[0][0] == "survey"
    answer = talk.next(survey.replace("a.py", "data/c.py", 1))
    assert answer.text == "`a.py` is `data/c.py` now, also in b.py, b.sh."
    assert [call.arguments["content"] for call in answer.tool_calls] == [
        "import data.c\nprint(data.c.x)\n",
        "python data/c.py; python data.py\n",
    ]
    talk.next("Replaced `b.py`.", "Replaced `b.sh`.")
    now = survey.replace("a.py", "data/c.py").replace("import a", "import data.c")
    assert talk.next(now.replace("(a.x", "(data.c.x")).text == "Done."
    assert len(talk.model.asked) == 1


def test_a_move_that_is_not_all_is_told_with_the_rest() -> None:
    """What refers to the file is asked for, and nothing is done without the model."""
    survey = "notes.txt\n```\nmilk\n```\n\nb.sh\n```\ncp notes.txt old-notes.txt\n```"
    talk = Talk("```sh\nmv notes.txt todo.txt\n```", "```sh\ncp todo.txt old-notes.txt\n```")
    talk.says("rename notes.txt to todo.txt and tell me why it was called so")
    assert calls_of(talk.next(survey)) == [("shell", "mv notes.txt todo.txt")]
    assert calls_of(talk.next("(no output)\n[exit code 0]"))[0][0] == "survey"
    assert calls_of(talk.next(survey.replace("notes", "todo", 1))) == [("write", "b.sh")]
    assert "`notes.txt` was renamed to `todo.txt`." in talk.model.asked[1].messages[0].text


def test_what_is_removed_from_a_file_is_no_file() -> None:
    """Only a request whose verb is about the file itself gets the hint to move or remove it."""
    for said, is_about in (
        ("remove a.py", True),
        ("please delete the file a.py", True),
        ("remove f from a.py", False),
    ):
        talk = Talk("No.")
        talk.says(said)
        talk.next(SURVEY)
        assert ("To move or remove a file" in talk.model.asked[0].messages[0].text) is is_about


def test_data_is_computed_by_a_script() -> None:
    """It is run in the folder; one that fails is asked for anew, one that only prints has not done it."""
    survey = "p.csv\n```\na,1\n```"
    fails, prints, writes = (
        f"```python\nfor row in rows:\n    {line}\n```"
        for line in ("f()", "print(1)", "open('p.json', 'w')")
    )
    begins = "import csv\nrows = list(csv.reader(open('p.csv', newline='')))"
    talk = Talk(fails, prints, writes)
    talk.says("convert p.csv to p.json")
    script = f"python3 - <<'END'\n{begins}\nfor row in rows:\n    f()\nEND"
    assert calls_of(talk.next(survey)) == [("shell", script)]
    assert f"It begins with\n\n{begins}\n\n" in talk.model.asked[0].messages[-1].text
    talk.next("NameError: f\n[exit code 1]")
    (asked,) = talk.model.asked[1].messages
    assert "else.\n\nIt makes `p.json`.\n\nIt begins with" in asked.text
    assert "A first try failed:\nNameError: f\n\nFirst say in at most five lines" in asked.text
    assert calls_of(talk.next("1\n[exit code 0]"))[0][0] == "survey"
    talk.next(survey)
    assert "There is no `p.json` yet. Do the rest" in talk.model.asked[2].messages[0].text
    talk.next("(no output)\n[exit code 0]")
    assert talk.next(f"{survey}\n\np.json\n```\n[]\n```").text == "Done: p.json."


def test_a_search_without_a_match_is_an_answer() -> None:
    """It exits with 1 and prints nothing: that is told, and is no failure."""
    talk = Talk("```sh\ngrep y big.log\n```", "No.")
    talk.says("does big.log have a y?")
    talk.next(SURVEY)
    assert talk.next("(no output)\n[exit code 1]").text == "No."
    assert "A first try failed" not in talk.model.asked[1].messages[-1].text


def test_passing_tests_end_the_turn() -> None:
    """Without a word of the model."""
    talk = Talk("a.py\n```\nx = 1\n```")
    talk.says("set x to 1")
    talk.next(TESTED)
    assert talk.next("Replaced `a.py`.", "fine\n[exit code 0]").text == "Done; `make test` passes."


def test_tests_that_did_not_run_to_their_end_do_not_pass() -> None:
    """They were refused, or ended at their time limit; and a new file alone does not start them."""
    for result in ("[shell was not run: the user said no]", "[timed out]\n[exit code -15]"):
        talk = Talk("a.py\n```\nx = 1\n```")
        talk.says("set x to 1")
        talk.next(TESTED)
        end = talk.next("Replaced `a.py`.", result)
        assert end.text == "Done; `make test` was not run to its end."
    talk = Talk("new.py\n```\nx = 1\n```")
    talk.says("write new.py")
    assert calls_of(talk.next(TESTED)) == [("write", "new.py")]


def test_a_refused_write_is_told() -> None:
    """What a person or a rule denies is no success."""
    talk = Talk("a.py\n```\nx = 1\n```", "Then I leave it.")
    talk.says("set x to 1")
    talk.next(SURVEY)
    assert calls_of(talk.next("[write was not run: the user said no]"))[0][0] == "survey"
    assert talk.next(SURVEY).text == "Then I leave it."
    assert "This was not done: [write was not run" in talk.model.asked[1].messages[-1].text


@pytest.mark.parametrize(
    "text",
    [
        "a.py\n```python\nx = 1\n```",
        "**a.py**\n\n```python\nx = 1\n```",
        "### `a.py`\n```\nx = 1\n```",
        "Here is the corrected file `a.py`:\n\n```python\nx = 1\n```",
        "```python a.py\nx = 1\n```",
        "```python:a.py\nx = 1\n```",
        "```python\n# a.py\nx = 1\n```",
        "```python\na.py\n```python\nx = 1\n```",
        "a.py\n```python\na.py\nx = 1\n```",
        'a.py\n```python\n"""\nx = 1\n```',
        "```\na.py\n```\n```python\nx = 1\n```",
        "a.py\n```python\nx = 1\n```\n\nSo a.py is:\n```python\n# a.py\n```",
        "./a.py\n```python\nx = 1\n```\n\nRun it:\n```sh\npython a.py\n```",
    ],
)
def test_where_a_block_belongs(text: str) -> None:
    """The path stands above it, in its fence, or in a first comment."""
    talk = Talk(text)
    talk.says("set x to 1")
    answer = talk.next(SURVEY)
    assert [dict(call.arguments) for call in answer.tool_calls] == [
        {"path": "a.py", "content": "x = 1\n"}
    ]


@pytest.mark.parametrize(
    ("request_text", "block", "path"),
    [
        ("write a script hello.py", "```python\nprint(1)\n```", "hello.py"),
        ("let f return 2", "```python\ndef f():\n    return 2\n```", "a.py"),
        ("rename f to g", "```python\ndef g():\n    return 1\n```", "a.py"),
        ("let f return 2", "big.py\n```python\ndef f():\n    return 2\n```", "big.py"),
        ("let f return 2", "big.log\n```python\ndef f():\n    return 2\n```", "a.py"),
        ("turn a.py into b.json", "```json\n{}\n```", "b.json"),
        ("copy a.py by a script c.sh", "```sh\ncp a.py b.py\n```", "c.sh"),
        ("turn a.py into b.yml", "```yaml\na: 1\n```", "b.yml"),
    ],
)
def test_a_block_without_a_path(request_text: str, block: str, path: str) -> None:
    """The one file that the request names, or the one whose definitions it has, is meant."""
    talk = Talk(block)
    talk.says(request_text)
    assert [call.arguments["path"] for call in talk.next(SURVEY).tool_calls] == [path]


@pytest.mark.parametrize(
    "block",
    [
        "a.py\n```\ndef f():\n    return 1\n```",
        "big.log\n```\nx\n```",
        "a.py\n```\ndef f():",
        "```python\na.py\n```",
        "a.py\n```python\n\n```",
        "a.py\n```python\ndef f(:\n```",
    ],
)
def test_what_changes_nothing_is_no_call(block: str) -> None:
    """The same, a file that was shown in part, half a block, nothing, a path alone, and no Python."""
    talk = Talk(block, block)
    talk.says("the f of a.py is low")
    assert talk.next(SURVEY).tool_calls == ()


def test_a_long_file_is_looked_into_by_a_command() -> None:
    """The offer is made where a file is shown in part; the output comes with the request again."""
    talk = Talk("```sh\nwc -l big.log\n```", "It has 10 lines.")
    talk.says("how long is big.log?")
    assert calls_of(talk.next(SURVEY)) == [("shell", "wc -l big.log")]
    assert "Only a part of `big.log` is shown." in talk.model.asked[0].messages[-1].text
    assert talk.next("10 big.log\n[exit code 0]").text == "It has 10 lines."
    assert "The request was: how long is big.log?" in talk.model.asked[1].messages[-1].text


def test_tests_are_not_changed_unless_they_are_spoken_of() -> None:
    """A model that makes the tests pass by changing them has not done the job."""
    survey = "test_a.py\n```\nassert 1\n```"
    talk = Talk("test_a.py\n```\nassert True\n```", "test_a.py\n```\nassert True\n```")
    talk.says("fix the bug")
    assert talk.next(survey).tool_calls == ()
    for said, written in (
        ("make test_a.py stricter", ["test_a.py"]),
        ("write f in a.py, test_a.py has what it does", ["a.py"]),
        ("write f in a.py and a test of it in test_a.py", ["a.py", "test_a.py"]),
    ):
        talk = Talk("a.py\n```\ndef f(): ...\n```\n\ntest_a.py\n```\nassert True\n```")
        talk.says(said)
        calls = calls_of(talk.next(survey))
        assert [path for _, path in calls if path in written] == written
        assert ("write", "test_a.py") not in calls or "test_a.py" in written


def test_a_written_call_is_made() -> None:
    """A model that calls a tool after all, as text, gets its result, and its request again."""
    talk = Talk('{"name": "read", "arguments": {"path": "b.txt"}}', "It says hello.")
    talk.says("what does b.txt say?")
    assert calls_of(talk.next(SURVEY)) == [("read", "b.txt")]
    assert talk.next("hello").text == "It says hello."
    assert "hello\n\nThe request was: what does b.txt say?" in talk.model.asked[1].messages[-1].text


def test_a_remark_of_the_program_belongs_to_the_turn() -> None:
    """What is said of the facts comes after the answer that it is about; nothing is looked at again."""
    talk = Talk("I have fixed it.", "a.py\n```\nx = 1\n```")
    talk.says("set x to 1")
    talk.next(SURVEY)
    answer = talk.says("[Facts] no file was changed.")
    assert calls_of(answer) == [("write", "a.py")]
    assert [said.text for said in talk.model.asked[1].messages[-2:]] == [
        "I have fixed it.",
        "[Facts] no file was changed.",
    ]


def test_a_steer_is_part_of_the_request() -> None:
    """The folder is looked at again, since it may be about other files."""
    talk = Talk("a.py\n```\nx = 1\n```", "a.py\n```\nx = 2\n```")
    talk.says("set x to 1")
    talk.next(SURVEY)
    talk.said.append(ChatMessage(role="tool", text="Replaced `a.py`.", call="c3.1"))
    again = talk.says("[New message from ann] no, to 2")
    assert calls_of(again) == [("survey", "set x to 1\n[New message from ann] no, to 2")]
    assert calls_of(talk.next(SURVEY)) == [("write", "a.py")]
    assert (
        talk.model.asked[1]
        .messages[-1]
        .text.endswith("set x to 1\n[New message from ann] no, to 2")
    )


def test_a_message_that_is_said_again_after_a_crash_is_one_request() -> None:
    """What was done before counts, and the folder is looked at again."""
    talk = Talk("```sh\nmv a.py b.py\n```", "Done, it is b.py.")
    talk.says("rename a.py to b.py and explain it")
    assert calls_of(talk.next(SURVEY)) == [("shell", "mv a.py b.py")]
    talk.said.append(ChatMessage(role="tool", text="[exit code 0]", call="c3.1"))
    again = talk.says(
        "[You were interrupted. Go on from there.]\nrename a.py to b.py and explain it"
    )
    assert calls_of(again) == [("survey", "rename a.py to b.py and explain it")]
    assert talk.next(SURVEY.replace("a.py", "b.py")).text == "Done, it is b.py."
    assert "`mv a.py b.py` was run. Do the rest: rename" in talk.model.asked[1].messages[-1].text


@pytest.mark.parametrize(
    "cut",
    [
        ChatMessage(role="assistant", text=INTERRUPTED),
        ChatMessage(role="assistant", text="a.py\n```\nx"),
        ChatMessage(
            role="assistant",
            text="a.py\n```\nx = 1\n```",
            tool_calls=(ToolRequest(call="c", tool="write", arguments={"path": "a.py"}),),
        ),
    ],
)
def test_after_a_crash_the_model_is_asked_as_before(cut: ChatMessage) -> None:
    """Half an answer, and calls of which nobody knows whether they were made, are no part of it."""
    talk = Talk("a.py\n```\nx = 1\n```")
    talk.says("set x to 1")
    talk.said.append(ChatMessage(role="tool", text=SURVEY, call="c1.1"))
    unknown = [ChatMessage(role="tool", text=UNKNOWN, call=call.call) for call in cut.tool_calls]
    talk.said += [cut, *unknown]
    talk.says("[You were interrupted. Go on from there.]\nset x to 1")
    assert calls_of(talk.next(SURVEY)) == [("write", "a.py")]
    (asked,) = talk.model.asked[0].messages
    assert asked.text == f"{SURVEY}\n\nset x to 1"


def test_what_the_program_says_before_a_request_is_no_part_of_it() -> None:
    """The folder is shown as it is now; words about what was reverted would only mislead."""
    told = "[The user reverted your changes of 1 file to what was there before: b.py.]"
    for said, request in ((f"{told}\nset x to 1", "set x to 1"), ("[x]", "[x]")):
        assert calls_of(Talk().says(said)) == [("survey", request)]


def test_other_requests_pass() -> None:
    """A summary, a verdict and a session without the profile's tools are asked in plain words."""
    model = Printing("Short.")
    request = ModelRequest(
        system="s", messages=(ChatMessage(role="user", text="sum up"),), tools=TOOLS, is_plain=True
    )
    answer = asyncio.run(BlocksDialect(model).answer(request, AnswerListener()))
    assert answer.text == "Short."
    assert model.asked[0].tools == ()


@pytest.mark.parametrize(
    ("said", "is_asked_again"),
    [
        ("find the bug and fix it", True),
        ("can you fix the bug?", True),
        ("write b.py", True),
        ("find the function that returns 1", False),
        ("what fails in test_a?", False),
        ("is there a bug?", False),
    ],
)
def test_a_question_owes_no_file(said: str, is_asked_again: bool) -> None:
    """Its first word tells, unless it only says where to look, and then what to do."""
    talk = Talk("It is f.", "It is f, really.")
    talk.says(said)
    talk.next(SURVEY)
    assert (len(talk.model.asked) == 2) is is_asked_again


@pytest.mark.parametrize(
    ("source", "head", "reduced"),
    [
        ("def f(x): return x\n", "def f(x):", "def f(x):\n    # TODO\n"),
        ("def f(\n    x): return x\n", "def f(\n    x):", "def f(\n    x):\n    # TODO\n"),
        (
            'def f(x):\n    """It."""\n    return x\n',
            'def f(x):\n    """It."""',
            'def f(x):\n    """It."""\n    # TODO\n',
        ),
    ],
)
def test_a_function_is_asked_for_by_its_head(source: str, head: str, reduced: str) -> None:
    """Also one whose body begins on the line of the colon."""
    assert (head_of(source, "f"), without_body(source, "f")) == (head, reduced)


def test_what_is_computed_of_all_lines_is_computed_by_a_script() -> None:
    """Also for a question; one that only looks something up is answered from what is shown."""
    survey = 'a.json\n```\n[{"km": 3}, {"km": 5}]\n```'
    for said, is_script in (
        ("which in a.json is the longest?", True),
        ("what is in a.json?", False),
        ("sort a.json by km", True),
    ):
        talk = Talk("```python\nprint(5)\n```")
        talk.says(said)
        answer = talk.next(survey)
        assert ("Python script" in talk.model.asked[0].messages[-1].text) is is_script
        assert bool(answer.tool_calls) is is_script


def test_a_file_that_came_back_as_it_was_is_asked_for_again() -> None:
    """Where a new one is named, that one is."""
    files, is_same = "a.py\n```\nx = 1\n```", "That is what the files hold already."
    for said, same, told in (
        ("x should be 2", files, is_same),
        ("x should be 2", "```python\nx = 1\n```", is_same),
        ("i need f in b.py", files, "There is no b.py yet."),
    ):
        talk = Talk(same, "b.py\n```\ndef f(): ...\n```")
        talk.says(said)
        assert calls_of(talk.next(files)) == [("write", "b.py")]
        assert talk.model.asked[1].messages[-1].text.startswith(told)


def test_tests_that_come_back_are_not_the_new_module() -> None:
    """Also without their path; the module is asked for."""
    test = "import unittest\nfrom b import f\nf()"
    talk = Talk(f"```python\n{test}\n```", "```python\ndef f(): ...\n```")
    talk.says("write f in b.py, test_b.py shows how")
    answer = talk.next(f"test_b.py\n```\n{test}\n```")
    assert [call.arguments["content"] for call in answer.tool_calls] == ["def f(): ...\n"]
    assert talk.model.asked[1].messages[-1].text.startswith("There is no b.py yet.")


def test_a_script_below_the_name_of_its_data_is_the_one_that_is_asked_for() -> None:
    """The data stays as it is."""
    talk = Talk("words.txt\n```python\nprint(open('words.txt').read())\n```")
    talk.says("write top.py, it prints words.txt")
    assert calls_of(talk.next("words.txt\n```\na b\n```")) == [("write", "top.py")]


def test_only_what_the_failing_function_uses_is_written_anew() -> None:
    """With all that the tests say of it; then in plain words, each time with another one on how."""
    source = (
        "def g(n):\n    return 1\n\n\ndef f(n):\n    return g(n)\n\n\ndef other():\n    return 0\n"
    )
    test = "    def test_f(self):\n        self.assertEqual(f(1), 2)\n        self.assertEqual(f(2), 4)\n"
    survey = (
        f"a.py\n```\n{source}```\n\ntest_a.py\n```\nfrom a import f\n{test}```\n\n"
        "Tests are run with: make test"
    )
    failed = "    self.assertEqual(f(1), 2)\nAssertionError: 1 != 2\n[exit code 1]"
    talk = Talk(*(f"```python\ndef f(n):\n    return {n}\n```" for n in range(15)))
    talk.says("test_a.py fails, fix a.py")
    talk.next(survey)
    for _ in range(15):
        answer = talk.next("Replaced `a.py`.", failed)
        if not answer.tool_calls:
            break
        talk.next(survey)
    asked = [request.messages[-1].text for request in talk.model.asked]
    both = "This must hold:\nself.assertEqual(f(1), 2)\nself.assertEqual(f(2), 4)"
    assert both in asked[1]
    assert [text.count("Write the function f.") for text in asked[:3]] == [0, 1, 0]
    assert "Write the function g." in asked[2]
    assert not any("Write the function other." in text for text in asked)
    plain = [text for text in asked if text.startswith("Write this Python function")]
    assert len(plain) == len(set(plain)) == 6
    assert plain[0].partition("\n\n")[2].startswith(f"def f(n):\n\n{both}\n\nUse as few lines")


def test_the_function_that_most_checks_come_to_is_written_first() -> None:
    """A word of the output is no call of a function; a request says what is wrong in other words, too."""
    source = (
        "def floor(n):\n    return n\n\n\ndef order(n):\n    return n\n\n\n"
        "def show(n):\n    return order(n)\n"
    )
    failed = (
        "    assert show(1) == 'floor 2'\nAssertionError\n"
        "> assert order(1) == 2\nAssertionError\n[exit code 1]"
    )
    test = "test_a.py\n```\nfrom a import order, show\n```\n\nTests are run with: make test"
    survey = f"a.py\n```\n{source}```\n\n{test}"
    talk = Talk("It is low.", "```python\ndef order(n):\n    return 2\n```")
    talk.says("order in a.py gives the wrong number")
    assert calls_of(talk.next(survey)) == [("shell", "make test")]
    talk.next(failed)
    assert "Write the function order." in talk.model.asked[1].messages[-1].text


def test_a_new_module_is_asked_for_by_its_names() -> None:
    """Before the other ways, with what the tests say, also in words."""
    test = (
        'test_a.py\n```\nfrom a import f, g\n\n\ndef test_f():\n    """F adds."""\n'
        "    assert f(1) == 2\n    assert g(1) == 3\n```"
    )
    failed = "    assert f(1) == 2\nAssertionError\n[exit code 1]"
    talk = Talk(*(f"a.py\n```python\nf = {n}\n```" for n in range(15)))
    talk.says("write a.py so that the tests pass")
    talk.next(f"{test}\n\nTests are run with: make test")
    asked = talk.fails([f"f = {n}" for n in range(15)], test, failed)
    plain = [text for text in asked if text.startswith("Write the Python module a.py with f and g")]
    assert len(plain) == len(set(plain)) == 6
    assert "This must hold:\nF adds.\nassert f(1) == 2\nF adds.\nassert g(1) == 3\n\n" in plain[0]
    assert plain == asked[1:7]


def test_a_new_class_is_mended_as_it_is() -> None:
    """Alone, by one of its checks, it would lose its other methods."""
    test = (
        "test_a.py\n```\nfrom a import Line\n\n\ndef test_it():\n    assert len(Line()) == 0\n```"
    )
    source = "class Line:\n    def join(self, name):\n        pass"
    talk = Talk(*(f"a.py\n```python\n{source}  # {n}\n```" for n in range(9)))
    talk.says("i need a class Line in a.py, the tests are there")
    talk.next(f"{test}\n\nTests are run with: make test")
    failed = (
        "    assert len(Line()) == 0\nTypeError: object of type 'Line' has no len()\n[exit code 1]"
    )
    asked = talk.fails([f"{source}  # {n}" for n in range(9)], test, failed)
    assert len(asked) == 7
    assert all("def join" in text and "has no len()" in text for text in asked[1:])
    ends = [text.rpartition("\n")[2].partition(" ")[0] for text in asked[1:]]
    assert ends == ["Compute", "This"] * 3


def test_a_script_that_shows_and_makes_nothing_is_not_the_end() -> None:
    """That it is done would be no truth."""
    shown = "disks.log\n```\n02-09 /var full\n```"
    talk = Talk("```python\nfor line in open('disks.log'):\n    pass\n```", "It was /var.")
    talk.says("die vollen Platten aus disks.log zeigen")
    talk.next(shown)
    talk.next("(no output)\n[exit code 0]")
    assert talk.next(shown).text == "It was /var."
    assert "It printed nothing. Do the rest" in talk.model.asked[1].messages[-1].text


def test_a_question_whose_script_fails_is_answered_of_what_is_shown() -> None:
    """A second script would fail as well, and all lines are there."""
    survey = "swim.csv\n```\nname,seconds\nPia,41.0\nNadia,38.2\n```"
    talk = Talk("```python\nprint(min(rows))\n```", "Nadia.")
    talk.says("Who was the fastest? See swim.csv")
    talk.next(survey)
    assert talk.next("NameError: rows\n[exit code 1]").text == "Nadia."
    assert talk.model.asked[1].messages[-1].text == f"{survey}\n\nWho was the fastest? See swim.csv"


def test_a_question_in_another_tongue_is_known_by_its_mark() -> None:
    """Also where it is said behind it where to look: a short text is answered of what it shows."""
    talk = Talk("Das war /var.")
    talk.says("welche Platte war voll? steht in disks.log")
    assert talk.next("disks.log\n```\n02-09 /var full\n```").text == "Das war /var."
    assert "script" not in talk.model.asked[0].messages[-1].text


def test_what_is_to_be_kept_in_a_file_is_computed_by_a_script() -> None:
    """Also where it is put as a question, and the one table is not named."""
    talk = Talk("```python\nprint(sum(float(row['hours']) for row in rows))\n```")
    talk.says("How many hours in total? Please write it to sum.txt")
    talk.next("hours.csv\n```\nname,hours\nMara,4\nJens,6\n```")
    assert "It makes `sum.txt`." in talk.model.asked[0].messages[-1].text


def test_a_document_that_owes_a_change_is_asked_for_by_its_name() -> None:
    """A model that prints a word gets the first file that the request names, of those that may change."""
    talk = Talk("```\ndb\n```", "compose.yml\n```\ndb: 1g\n```")
    talk.says("leave web.yml as it is, put 1g into compose.yml, fix the table in SERVERS.md too")
    files = {"SERVERS.md": "db 512m", "compose.yml": "db: 512m", "web.yml": "web: 512m"}
    talk.next("\n\n".join(f"{path}\n```\n{text}\n```" for path, text in files.items()))
    told = talk.model.asked[1].messages[-1].text
    assert told == "Nothing was changed yet. Print the whole changed SERVERS.md in a fenced block."


def test_a_file_that_is_only_pointed_at_stays() -> None:
    """The other one is to follow it."""
    files = "a.md\n```\nport 1\n```\n\nb.py\n```\nport = 2\n```"
    both = "a.md\n```\nport 2\n```\n\nb.py\n```\nport = 1\n```"
    for said, written in (
        ("a.md has the wrong port, look at b.py and correct it", ["a.md"]),
        ("correct the port in a.md and b.py", ["a.md", "b.py"]),
        ("look at b.py and correct its port", ["a.md", "b.py"]),
        ("b.py reads a.md: correct its port", ["b.py"]),
    ):
        talk = Talk(both)
        talk.says(said)
        assert [path for _, path in calls_of(talk.next(files))] == written


def test_what_a_new_program_reads_stays() -> None:
    """It is asked for where the model printed nothing else."""
    talk = Talk("a.txt\n```\nthe longest\n```", "top.py\n```python\nprint(1)\n```")
    talk.says("write top.py, it prints the longest line of a.txt")
    assert calls_of(talk.next("a.txt\n```\na\nthe longest\n```")) == [("write", "top.py")]


def test_what_is_to_be_added_to_a_file_is_asked_for() -> None:
    """An answer in words alone has not done it; a text that belongs into no file is one."""
    for said, is_asked_again in (("add g to a.py", True), ("write a poem", False)):
        talk = Talk("It is added.", "a.py\n```\ndef g(): ...\n```")
        talk.says(said)
        assert bool(talk.next(SURVEY).tool_calls) is is_asked_again


def test_a_file_becomes_empty_only_where_that_is_asked_for() -> None:
    """Else the model had nothing to say of it."""
    for request, calls in (("clear a.txt", [("write", "a.txt")]), ("sort a.txt", [])):
        talk = Talk(*["a.txt\n```\n\n```"] * 2)
        talk.says(request)
        assert calls_of(talk.next("a.txt\n```\nb\na\n```")) == calls


def test_what_was_moved_can_be_mended() -> None:
    """The move is completed once; what the tests say of it then is the model's to write."""
    old = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"
    new = "b.py\n```python\ndef f():\n    return {}\n```"
    end = "test_b.py\n```\nimport b\n```\n\nTests are run with: make test"
    talk = Talk(new.format(1), new.format(3), new.format(4))
    talk.says("move f from a.py to b.py")
    answer = talk.next(f"a.py\n```\n{old}```\n\n{end}")
    assert calls_of(answer) == [("write", "b.py"), ("write", "a.py"), ("shell", "make test")]
    talk.next("Created `b.py`.", "Replaced `a.py`.", "b.f() is 1\n[exit code 1]")
    left = "a.py\n```\ndef g():\n    return 2\n```\n\nb.py\n```\ndef f():\n    return 1\n```"
    answer = talk.next(f"{left}\n\n{end}")
    assert answer.tool_calls[0].arguments["content"] == "def f():\n    return 3\n"


def test_what_the_prompt_shows_is_no_file() -> None:
    """A model that knows nothing repeats it."""
    talk = Talk('b.txt\n```\nprint("new content")\n```', "b.txt\n```\none\n```")
    talk.says("write the numbers of a.txt as words to b.txt")
    answer = talk.next("a.txt\n```\n1\n```")
    assert [call.arguments for call in answer.tool_calls] == [{"path": "b.txt", "content": "one\n"}]


def test_a_file_that_is_to_change_and_did_not_is_asked_for() -> None:
    """Once; what it is only pointed at for, or made with, is none."""
    files = "README.md\n```\n# a\n```\n\na.py\n```\nx = 1\n```\n\nmake.py\n```\nprint(1)\n```"
    for request, path in (
        ("add --quiet to a.py, and mention it in the README as well", "README.md"),
        ("set x to 2 in a.py, then run make.py. see README.md", ""),
    ):
        talk = Talk("a.py\n```\nx = 2\n```", "It needs no change.")
        talk.says(request)
        talk.next(files)
        answer = talk.next("Replaced `a.py`.")
        if path:
            answer = talk.next(files.replace("x = 1", "x = 2"))
            left = f"{path} is as it was. Do this part of the request in {path}, and nothing else"
            assert left in talk.model.asked[1].messages[0].text
            answer = talk.next("Unchanged.")
        while answer.tool_calls:
            answer = talk.next(files.replace("x = 1", "x = 2"))
        assert len(talk.model.asked) == 1 + bool(path)


def test_what_still_names_a_removed_file_is_asked_for() -> None:
    """A model that sees nothing but the file does not know which one is gone."""
    files = "LIST.md\n```\n- a.css\n- b.css\n```"
    talk = Talk("```sh\nrm b.css\n```", "LIST.md\n```\n- a.css\n```")
    talk.says("b.css is not used. delete it and take it out of the list in LIST.md")
    assert calls_of(talk.next(f"{files}\n\nb.css\n```\nb {{}}\n```")) == [("shell", "rm b.css")]
    assert calls_of(talk.next("(no output)\n[exit code 0]"))[0][0] == "survey"
    assert calls_of(talk.next(files)) == [("write", "LIST.md")]
    assert "`b.css` is still in LIST.md." in talk.model.asked[1].messages[0].text


def test_a_new_function_that_fails_the_tests_is_asked_for_alone() -> None:
    """Not those that were there; with what the tests say of it."""
    test = (
        "test_a.py\n```\nfrom a import f, g\nassert g(1) == 2\n```\n\nTests are run with: make test"
    )
    old, failed = "def f(n):\n    return n\n", "    assert g(1) == 2\nAssertionError\n[exit code 1]"
    wrong = f"{old}\n\ndef g(n):\n    return n\n"
    talk = Talk(f"a.py\n```python\n{wrong}```", "```python\ndef g(n):\n    return n + 1\n```")
    talk.says("Add the missing g to a.py so that test_a.py passes")
    talk.next(f"a.py\n```\n{old}```\n\n{test}")
    talk.next("Replaced `a.py`.", failed)
    answer = talk.next(f"a.py\n```\n{wrong}```\n\n{test}")
    assert talk.model.asked[1].messages[0].text == (
        "Write this Python function, and print only it in a fenced block:\n\ndef g(n):\n\n"
        "This must hold:\nassert g(1) == 2"
    )
    assert answer.tool_calls[0].arguments["content"] == f"{old}\n\ndef g(n):\n    return n + 1\n"


@pytest.mark.parametrize(
    ("request_", "kept"),
    [
        ("test_a.py fails. a.py is right, leave both as they are", {"a.py"}),
        ("fix it, but do not touch lib/b.py or c.py, they are shared", {"lib/b.py", "c.py"}),
        ("leave the files a.txt and b.txt alone.", {"a.txt", "b.txt"}),
        ("please fix it without changing c.py", {"c.py"}),
        ("b.txt must not be changed", {"b.txt"}),
        ("set x to 1 in a.py, but b.py must not be changed", {"b.py"}),
        ("fix a.py; b.py and c.py are shared, don't touch them", {"b.py", "c.py"}),
        ("the total never changes in cart.py", set()),
        ("keep the head of a.csv as it is, sort the rest", set()),
        ("don't change the order of the items in list.py", set()),
    ],
)
def test_files_that_are_to_stay_are_known(request_: str, kept: set[str]) -> None:
    """Named right behind the words for it, or before them if these only point at them."""
    assert SpokenRequest(request_).kept == kept


def test_a_file_that_is_to_stay_is_not_written() -> None:
    """Though the model prints it."""
    talk = Talk("a.py\n```\nx = 2\n```\n\nb.py\n```\ny = 2\n```")
    talk.says("set x to 2 in a.py, don't touch b.py")
    answer = talk.next("a.py\n```\nx = 1\n```\n\nb.py\n```\ny = 1\n```")
    assert calls_of(answer) == [("write", "a.py")]
