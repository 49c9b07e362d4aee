"""The parent's side: `listener` accepts children, `server` answers them, `hosting` opens both."""
