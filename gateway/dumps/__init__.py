"""What a session is and was, for whoever looks inside."""
