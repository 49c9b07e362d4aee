"""Chance, brought onto the tape: what the agent draws when it reads the clock."""
