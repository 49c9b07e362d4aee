"""What happens to an exchange: recorded, replayed, or diverged."""

from tracefork_core.session.session import Session, again

__all__ = ["Session", "again"]
