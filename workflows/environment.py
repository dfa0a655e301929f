"""The variables of the environment that decide something: whoever starts the program sets them.

No file of a project does, no model, no device and no room. What the programs are given that a session
starts is in `ports/tools/environment.py`.
"""

from collections.abc import Mapping
from typing import Final

VARIABLES: Final[Mapping[str, str]] = {
    "STEERSMAN_HOME": "folder that has the configuration, the state and the cache",
    "STEERSMAN_HOME_URL": "address of a database with the sessions; goes before `home.url`",
    "STEERSMAN_CONFIG": "file of settings that goes before all others",
    "STEERSMAN_DEBUG": "anything: the log has more, as with `--debug`",
    "HOME": "your folder; what stands for `~`",
    "XDG_CONFIG_HOME, XDG_STATE_HOME, XDG_CACHE_HOME": "where your files are, without `STEERSMAN_HOME`",
    "XDG_RUNTIME_DIR": "hidden from commands in the sandbox",
    "PATH": "where git, the shell and other programs are found",
    "PYTHONPATH": "more folders for tools of your own; one of the project does not count",
    "NO_COLOR, TERM": "how a terminal is drawn: `dumb` is plain lines",
    "TERM_PROGRAM, TMUX, TMUX_PANE, STY, SSH_CONNECTION, SSH_TTY": "what the terminal can do",
    "VISUAL, EDITOR": "the program that Ctrl-X Ctrl-E starts",
    "SSL_CERT_FILE, SSL_CERT_DIR": "certificates that are trusted in place of the system's",
    "HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY": "the way to a provider",
    "UV_DEFAULT_INDEX, UV_INDEX_URL, PIP_CONFIG_FILE, XDG_CONFIG_DIRS": "the index of `models fetch`",
}
"""What each says; the names of models' keys are settings (`api_key_env`), and those of rooms, too."""
MARKS: Final[Mapping[str, str]] = {
    "STEERSMAN_COMMAND": "which call a command belongs to, to end it after a crash",
    "STEERSMAN_CALL": "the id of the call that a tool of your own is run for",
    "STEERSMAN_SESSION": "the session of that call: both together are unique",
    "STEERSMAN_HOOK": "the event that a hook was started for",
    "STEERSMAN_DRIVES": "the external agent that a session drives already",
}
"""What is set for the programs that a session starts, and decides nothing here."""
