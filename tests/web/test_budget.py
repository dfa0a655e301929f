"""What the page reads as Markdown takes no longer than it may, whatever the text is."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from support import patience

from steersman.gateway import web

ASSETS = Path(web.__file__).parent / "page" / "assets"
UNITS = (
    *(
        "_a",
        "*_a",
        "_*~a",
        "*a",
        "**a ",
        "~~a ",
        "a*",
        "***a",
        "*_a\n",
        "*_a\n- ",
        "- *_a ",
        "2. *_a\n",
    ),
    *(
        "[",
        "[a](",
        "![",
        "[a][b] ",
        "[a]: x\n",
        "](",
        "((",
        "[x](<",
        "`a",
        "<a ",
        "<!--",
        "&a",
        "\\",
    ),
    *(
        "a@b.c ",
        "http://a ",
        "www.a.b ",
        "|a",
        "|a|b\n|-|-\n",
        "- a\n",
        "1. a\n",
        "> a\n",
        "\t- a\n",
    ),
    *("# a\n", "```\n", "a  \n", "a\n=\n", "a\n\n", "*a\n\n", "*_a\n# b\n"),
)
MEASURE = """
const { lexer } = await import(ASSETS + "/marked.js");
const { LARGEST, LARGEST_TAIL, isTooMuch } = await import(ASSETS + "/budget.js");
const cost = (text) => {
  const before = process.cpuUsage();
  lexer(text, { gfm: true });
  const { user, system } = process.cpuUsage(before);
  return user + system;
};
const least = (text) => Math.min(cost(text), cost(text), cost(text));
const found = [];
for (const most of [LARGEST_TAIL, LARGEST]) {
  const ordinary = "A **word**, `code` and a [link](x).\\n\\n".repeat(most / 40);
  const usual = least(ordinary);
  for (const unit of UNITS) {
    let length = most;
    let text = unit.repeat(length / unit.length);
    while (isTooMuch(text, most)) text = unit.repeat((length *= 0.8) / unit.length);
    const first = cost(text) / usual;
    found.push([unit, most, text.length, first > 60 ? least(text) / usual : first]);
  }
  found.push(["ordinary", most, isTooMuch(ordinary, most) ? 0 : most, 1]);
}
console.log(JSON.stringify(found));
"""


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
def test_the_largest_text_that_is_read_is_read_in_a_moment() -> None:
    """Of each kind the largest one that passes takes few times as long as an ordinary text."""
    given = f"const ASSETS = {json.dumps(ASSETS.as_uri())}, UNITS = {json.dumps(UNITS)};\n"
    ran = subprocess.run(
        ["node", "--input-type=module", "-"],
        input=given + MEASURE,
        capture_output=True,
        text=True,
        check=True,
        timeout=patience.seconds(100),
    )
    found = json.loads(ran.stdout)
    slow = [row for row in found if row[3] > 60]
    assert slow == []
    assert all(row[2] for row in found)
    assert {row[0] for row in found if row[1] == 100_000 and row[2] < 50_000} >= {"_a", "*_a", "a*"}
