"""What happens to an exchange: recorded, replayed, or diverged."""

from tracefork_core.session.reordered import Order
from tracefork_core.session.session import Session

__all__ = ["Order", "Session"]
