"""What a gateway to a chat platform is made of (docs/gateways.md).

from steersman.chat import ChatGateway

xmpp = ChatGateway("xmpp", lambda settings, rooms: Xmpp(settings, rooms))  # an entry point
"""

from .gateway.chat.bridge import ChatGateway
from .gateway.chat.platform import (
    Chosen,
    Gap,
    Inbound,
    Memory,
    NotSent,
    Outgoing,
    Platform,
    PlatformLimits,
    Removed,
    Said,
    SentFile,
)

__all__ = [
    "ChatGateway",
    "Chosen",
    "Gap",
    "Inbound",
    "Memory",
    "NotSent",
    "Outgoing",
    "Platform",
    "PlatformLimits",
    "Removed",
    "Said",
    "SentFile",
]
