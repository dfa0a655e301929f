"""What a session's actors decide: pure functions of the session's record and a message."""
