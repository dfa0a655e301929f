"""What both ends of the control socket know: where it lies, and its error codes (JSON-RPC 2.0)."""

SOCKETS = "sockets"
"""The folder, in the state folder of a home."""
INVALID, REFUSED, NOT_HERE, NO_ANSWER = -32600, -32000, -32001, -32002
