"""Our hooks in the configurations of other agents: what they say, and how they get in and out."""
