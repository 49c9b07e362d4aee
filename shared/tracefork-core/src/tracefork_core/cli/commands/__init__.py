"""The commands of `tracefork`, one file each, loaded when the command runs."""
