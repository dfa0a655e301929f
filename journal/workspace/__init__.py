"""What the files of a session's folder held before an agent changed them, and how they come back."""
