"""Proofs and pictures of machines and tables: what a session does not need to run."""
