"""Write the stories' recordings: each played once in a real terminal, as asciicast v2 files.

    make recordings                                  all, to docs/recordings/
    cd tests && python -m stories.record FOLDER 1 4  some, to a folder of your choice

The times are this machine's, with the pauses of typing put in and long ones cut; paths, ports, ids
and process ids are replaced.
"""

import re
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from .stage import Stage
from .terminal import Reel
from .test_another_terminal import another_terminal
from .test_beside_the_road import beside_the_main_road
from .test_change_of_direction import a_change_of_direction
from .test_helper_at_work import the_helper_at_work
from .test_job_in_file import a_job_in_a_file
from .test_long_job import a_long_job
from .test_plug_is_pulled import the_plug_is_pulled
from .test_several_things import several_things
from .test_until_done import until_it_is_done
from .test_words import some_words

__all__ = ["STORIES", "record"]

SIZE = (100, 28)


STORIES: dict[str, tuple[str, Callable[[Stage], None]]] = {
    "1": ("a-long-job", a_long_job),
    "2": ("a-change-of-direction", a_change_of_direction),
    "3": ("several-things", several_things),
    "4": ("the-plug-is-pulled", the_plug_is_pulled),
    "5": ("words", some_words),
    "6": ("the-helper-at-work", the_helper_at_work),
    "7": ("until-it-is-done", until_it_is_done),
    "8": ("beside-the-main-road", beside_the_main_road),
    "9": ("another-terminal", another_terminal),
    "11": ("a-job-in-a-file", a_job_in_a_file),
}


def record(number: str, folder: Path) -> Path:
    """Play a story and return the file of its recording."""
    name, story = STORIES[number]
    reel = Reel(*SIZE, title=f"steersman: {name.replace('-', ' ')}")
    with tempfile.TemporaryDirectory() as root:
        with closing(Stage(Path(root), "screen", reel)) as stage:
            (stage.place.home / "state").mkdir(mode=0o700)
            (stage.place.home / "state" / "welcomed").touch()  # somebody who knows it already
            story(stage)
        path = folder / f"{number}-{name}.cast"
        reel.write(path, lambda text: _neutral(text, root))
    return path


def _neutral(text: str, root: str) -> str:
    """Take out what belongs to this machine and this moment."""
    text = text.replace(root, "~")
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:8080", text)
    text = re.sub(r"\b(process(?:es)?) [\d, ]*\d", r"\1 4711", text)
    return re.sub(r"\x1b\[6n", "", text)  # a question to the terminal, no picture


def main() -> None:
    """Record what is asked for."""
    target, *numbers = sys.argv[1:] or ["../docs/recordings"]
    folder = Path(target)
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers or STORIES:
        path = record(number, folder)
        print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
