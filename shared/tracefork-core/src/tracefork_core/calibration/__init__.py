"""What of an agent does not repeat: two recordings compared, differences traced to their causes.

`changes` are where two recordings differ, cut to `fragments`; `causes` says why, by the `draws` of
both; `findings` is all of it.
"""
