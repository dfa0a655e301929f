"""The agents whose transcripts can be read.

To add one, add a module with a `Source` and its row here, and a recorded transcript to
`tests/cli/transcripts/`.
"""

from collections.abc import Mapping
from typing import Final

from .claude import CLAUDE
from .codex import CODEX
from .opencode import OPENCODE
from .pi import PI
from .transcript import Source

SOURCES: Final[Mapping[str, Source]] = {
    "claude": CLAUDE,
    "codex": CODEX,
    "opencode": OPENCODE,
    "pi": PI,
}
