"""Pages of events of the journal."""

from .library import _Pages

Pages = _Pages
