"""What of an agent does not repeat: two recordings compared, differences traced to their causes."""
