"""What is read of a table before a script goes on, tried by running it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from steersman.ports.models.tables import beginning, ragged, with_beginning


@pytest.mark.parametrize(
    ("name", "text", "rows"),
    [
        (
            "a.csv",
            "item,qty,price,code\nspade,12,5.50,007\nrake,-3,4,010\n",
            [
                {"item": "spade", "qty": 12, "price": "5.50", "code": "007"},
                {"item": "rake", "qty": -3, "price": "4", "code": "010"},
            ],
        ),
        ("a.tsv", "item\tqty\nspade, big\t1\n", [{"item": "spade, big", "qty": 1}]),
        ("a.csv", "item;price\nspade;1,5\n", [{"item": "spade", "price": "1,5"}]),
        ("a.csv", "spade,12\nrake,3\n", [["spade", "12"], ["rake", "3"]]),
        ("a.csv", "item,qty\nspade,many\nrake\n", None),
        ("a.csv", "", []),
    ],
)
def test_a_table_is_read(tmp_path: Path, name: str, text: str, rows: list[Any] | None) -> None:
    """Whole numbers are numbers; what would be written otherwise stays a text; one may have no head."""
    (tmp_path / name).write_text(text)
    script = f"{beginning({name: text})}import json\nprint(json.dumps(rows))"
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, check=True
    )
    found = json.loads(ran.stdout)
    assert found == rows or (rows is None and found[1]["item"] == "rake")


def test_two_tables_have_names() -> None:
    """Those of their files."""
    lines = beginning({"a/b-c.csv": "x\ny", "d.csv": "n\n1"}).splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["import", "b_c", "d", "for", ""]
    assert "# row" not in "".join(lines)


def test_a_script_has_the_lines_that_it_was_given() -> None:
    """All where it reads nothing, its numbers where it reads the table; else it stays as it is."""
    begins = beginning({"a.csv": "n,qty\na,1\n"})
    read, numbers = begins.splitlines()[1], "\n".join(begins.splitlines()[2:])
    assert with_beginning("print(rows)", begins) == f"{begins}print(rows)"
    assert with_beginning(f"import csv\n{read}\nprint(rows)", begins) == f"{begins}print(rows)"
    for script in (f"import csv\n{read}\n{numbers}\nx", "import csv\nx = csv.reader(f)"):
        assert with_beginning(script, begins) == script
    assert with_beginning("import csv\ncsv.reader(f)", "") == "import csv\ncsv.reader(f)"


def test_a_script_reads_a_table_by_its_commas() -> None:
    """Also where it reads the table in words of its own."""
    begins = beginning({"a.csv": "n;qty\na;b\n"})
    script = "import csv\nwith open('a.csv') as file:\n    rows = list(csv.DictReader(file))"
    assert "csv.DictReader(file, delimiter=';')" in with_beginning(script, begins)


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        ("id,place\n1,shed\n2,roof, north\n", "line 3 has 3 fields, and its head 2"),
        ('id,place\n2,"roof, north"\n\n', ""),
        ("id;price\n1;1,5\n", ""),
        ("", ""),
    ],
)
def test_a_table_whose_lines_differ_is_told(table: str, fault: str) -> None:
    """A text with a comma that was written without quotes."""
    assert ragged(table) == fault
