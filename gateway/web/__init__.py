"""Sessions over HTTP: the interface for programs, and the page for people; needs the extra `web`."""
