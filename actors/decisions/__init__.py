"""The decisions of a session's actors: pure functions of the session's record and a message."""
