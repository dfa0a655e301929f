"""The simulator: the real actors on one thread, in virtual time; models, tools and people roll dice."""
