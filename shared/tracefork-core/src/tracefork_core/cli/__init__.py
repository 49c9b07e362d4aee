"""The command `tracefork`: one file for each verb, loaded when it is asked for."""
