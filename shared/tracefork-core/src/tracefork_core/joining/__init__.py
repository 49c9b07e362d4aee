"""Hand a session on to the processes that are started under it, and join one in them."""
