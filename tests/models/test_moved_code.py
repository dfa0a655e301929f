"""A definition that is moved into another file is gone from its old one, which imports it."""

import pytest

from steersman.ports.models.moved_code import (
    with_moved_code,
    without_moved_text,
    without_unused_code,
)

KIOSK = '''"""A till."""

from datetime import date, timedelta

VAT = 0.2


class Voucher:
    """It is valid for a year."""

    def ends(self):
        return date.today() + timedelta(days=365)


def tax(price):
    return VAT * price


if __name__ == "__main__":
    print(Voucher().ends())
'''
FILES = {"shop/kiosk.py": KIOSK, "shop/util.py": "def f():\n    return 1\n", "long.log": None}
MOVED = {
    "shop/kiosk.py": '''"""A till."""

from datetime import date, timedelta
from voucher import Voucher

VAT = 0.2


def tax(price):
    return VAT * price


if __name__ == "__main__":
    print(Voucher().ends())
''',
    "shop/voucher.py": '''from datetime import date, timedelta


class Voucher:
    """It is valid for a year."""

    def ends(self):
        return date.today() + timedelta(days=365)
''',
}


@pytest.mark.parametrize(
    ("request_", "moved"),
    [
        ("kiosk.py is long. Please move the class Voucher into its own file voucher.py", MOVED),
        ("move Voucher from shop/kiosk.py to shop/voucher.py and import it there", MOVED),
        (
            "move the function f() to kiosk.py",
            {
                "shop/util.py": "\n",
                "shop/kiosk.py": f"{KIOSK.strip()}\n\n\ndef f():\n    return 1\n",
            },
        ),
        ("move tax to money.py", {}),  # it needs VAT
        ("move Voucher to lib/voucher.py", {}),  # another folder
        ("move Voucher to voucher.py and rename it to Card", {}),  # more is asked for
        ("move Coupon to coupon.py", {}),
    ],
)
def test_what_is_moved(request_: str, moved: dict[str, str]) -> None:
    """With the imports that it needs; nothing where it is not known what else would change."""
    assert with_moved_code(request_, FILES) == moved


PAGE = "<head>\n<style>\n  a {\n  }\n</style>\n</head>\n"


@pytest.mark.parametrize(
    ("request_", "page"),
    [
        ("move the css of page.html into style.css", "<head>\n</head>\n"),
        ("copy the css of page.html to style.css", PAGE),
    ],
)
def test_what_is_moved_is_in_the_old_file_no_more(request_: str, page: str) -> None:
    """Nor are the tags around it; a copy stays."""
    answer = {"page.html": PAGE, "style.css": "a {\n}\n"}
    assert without_moved_text(request_, answer, {"page.html": PAGE}) == answer | {"page.html": page}


@pytest.mark.parametrize(
    ("request_", "is_gone"),
    [
        ("delete the unused function tax from kiosk.py", True),
        ("please remove the function `tax`", True),
        ("remove tax() in shop/kiosk.py", True),
        ("remove Voucher from kiosk.py", False),  # it is used
        ("remove the function tax from kiosk.py and double the VAT", False),
        ("remove VAT from kiosk.py", False),
    ],
)
def test_a_function_that_nothing_uses_goes(request_: str, is_gone: bool) -> None:
    """Where a request asks for that alone; the rest of the file is as it was."""
    files = {"shop/kiosk.py": KIOSK, "shop/util.py": "def f():\n    return 1\n"}
    rest = KIOSK.replace("def tax(price):\n    return VAT * price\n\n\n", "")
    assert without_unused_code(request_, files) == ({"shop/kiosk.py": rest} if is_gone else {})
