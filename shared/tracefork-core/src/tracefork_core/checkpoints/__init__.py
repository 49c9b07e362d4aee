"""Where the checkpoints of a framework lie: a file of threads for every day, or a run's tape."""
