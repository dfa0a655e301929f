"""`steersman inspect` and `why`: looking into a session."""
