"""The checks of prices.py. The second one is flaky: it fails at every other run."""

from pathlib import Path

from prices import total


def check_total() -> None:
    """Two prices add up."""
    assert total([1, 2]) == 3, "wrong total"


def check_stock() -> None:
    """A check that depends on what the last run left behind."""
    left_over = Path("stock.lock")
    if left_over.exists():
        left_over.unlink()
        return
    left_over.touch()
    raise TimeoutError("the stock service did not answer")


if __name__ == "__main__":
    check_total()
    check_stock()
