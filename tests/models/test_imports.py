"""Code gets the imports of the standard library that it lacks, and no others."""

import pytest

from steersman.ports.models.imports import with_imports


@pytest.mark.parametrize(
    ("code", "imports"),
    [
        ("print(os.sep)", "import os\n"),
        ("print(Path('a'))", "from pathlib import Path\n"),
        ("print(datetime.now())", "from datetime import datetime\n"),
        ("print(datetime.date.today())", "import datetime\n"),
        (
            "import csv\nprint(csv.reader, re.sub('a', '', 'b'), json.dumps(1))",
            "import json\nimport re\n",
        ),
        (
            "def f(rows: List[int]) -> int:\n    return Counter(rows)[1]",
            "from collections import Counter\nfrom typing import List\n",
        ),
    ],
)
def test_what_is_used_is_imported(code: str, imports: str) -> None:
    """Also a class that stands alone."""
    assert with_imports(code) == f"{imports}{code}\n"


def test_they_stand_behind_the_docstring() -> None:
    """And behind imports of `__future__`, before which nothing may be."""
    code = '"""Clean up."""\n\nfrom __future__ import annotations\n\nos.remove("a")\n'
    assert with_imports(code) == code.replace("annotations\n\n", "annotations\n\nimport os\n\n")


@pytest.mark.parametrize(
    "code",
    [
        "import os.path\nprint(os.sep)",
        "from shutil import *\nprint(os.sep)",
        "os = 1\nprint(os.real)",
        "def f(time):\n    return time.hour",
        "for string in []:\n    string.upper()",
        "with open('a') as json:\n    json.read()",
        "try:\n    pass\nexcept OSError as re:\n    re.args",
        "match 1:\n    case copy:\n        copy.real",
        "print(nobody.knows, this)",
        "print(os.sep",
    ],
)
def test_what_has_a_value_already_is_not(code: str) -> None:
    """Nor what is of no library, and what cannot be read stays as it is."""
    assert with_imports(code) == code
