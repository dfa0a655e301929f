"""Print what CHANGELOG.md says of a version: the notes of a release. `VERSION` may begin with a `v`."""

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).resolve().parents[1] / "CHANGELOG.md"


def section(version: str, text: str = "") -> tuple[str, str]:
    """Return the heading of a version's section and what is below it, without empty lines around it.

    Raises:
        LookupError: It has none, or nothing is in it.
    """
    for part in re.split(r"^## ", text or CHANGELOG.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        heading, _, body = part.partition("\n")
        if heading.split(maxsplit=1)[:1] == [version] and body.strip():
            return heading, body.strip()
    raise LookupError(f"CHANGELOG.md says nothing of version {version}")


if __name__ == "__main__":
    try:
        print(section(sys.argv[1].removeprefix("v"))[1])
    except LookupError as error:
        sys.exit(str(error))
