"""Runs the commands of remote steps on a Ray cluster; nothing else in the program imports Ray."""
