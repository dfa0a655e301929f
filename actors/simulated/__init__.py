"""The simulator: the real actors on one thread, in virtual time, with dice for ports."""
