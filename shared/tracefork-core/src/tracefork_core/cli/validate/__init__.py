"""Plant faults in a real agent (`validate_runs`) and see whether blame finds them.

`validate_result` is what came out, `validate_report` prints it.
"""
