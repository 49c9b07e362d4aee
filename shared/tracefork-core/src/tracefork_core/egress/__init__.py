"""The doors no seam watches: refused at replay, counted while recording."""

from tracefork_core.egress.guard import Watch

__all__ = ["Watch"]
