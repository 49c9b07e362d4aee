"""Which step doomed a run: forks are tried, and what they come to is weighed."""
