"""The parent's side: `listener` accepts children, `server` answers them, `hosting` sets up both."""
