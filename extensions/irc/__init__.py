"""IRC: chat rooms as channels; the extra `irc`, docs/gateways.md."""
