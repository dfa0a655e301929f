"""Other agents' own transcripts of their sessions, read so that a session here goes on from them."""
