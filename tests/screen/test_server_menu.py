"""What MCP servers offer, in the menu of a real terminal: resources and prompts."""

import json
import sys

from stories.agent import says
from stories.stage import Stage
from support.notes_server import NOTES
from support.patience import seconds

from .conftest import Open


def test_resources_and_prompts_are_completed(stage: Stage, opened: Open) -> None:
    """`@` lists servers, then resources; `/` lists prompts; what was completed is attached."""
    config = stage.place.home / "config.toml"
    command = json.dumps([sys.executable, str(NOTES)])
    server = f"[mcp.notes]\ncommand = {command}\nwait = {seconds(30)}\n"
    config.write_text(f"{config.read_text()}\n{server}")
    stage.agent.when("", says("Seen."))
    terminal = opened()
    terminal.presses("look at @no")
    terminal.has("@notes:")
    terminal.presses("\t")
    terminal.has("The names of all notes.")
    terminal.presses("note://l\t")
    terminal.has_line("look at @notes:note://list")
    terminal.says("", "Attached notes:note://list (15 bytes).", "Seen.")
    assert "```\nshopping\ntravel\n```" in stage.requests()[-1].prompt
    terminal.presses("/notes")
    terminal.has("Review a note.")
    terminal.presses("\t")
    terminal.has_line("/notes:review")
    terminal.types("shopping")
    terminal.shows("Attached /notes:review (47 bytes, the prompt that this message names).")
    terminal.waits(lambda: len(stage.requests()) == 2)
    assert "Review the note shopping" in stage.requests()[-1].prompt
