"""Runs whose truth is known exactly: what blame is held to, beside the rules of others."""
