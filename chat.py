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
from .gateway.chat.platform_parts import Contact

__all__ = [
    "ChatGateway",
    "Chosen",
    "Contact",
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
