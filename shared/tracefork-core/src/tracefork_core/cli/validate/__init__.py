"""Plant faults in a real agent, and check whether blame finds them.

`validate_runs` plants and blames. `validate_result` holds the cases and their outcomes, and
`validate_report` prints them.
"""
