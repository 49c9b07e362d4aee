"""What happens to an exchange: recorded, replayed, or diverged."""

from tracefork_core.session.session import Session

__all__ = ["Session"]
