"""Other processes of a run: what a child and the session of its parent say to one another."""
