"""Telegram: chat rooms as groups and private chats; the extra `telegram`, docs/gateways.md."""
