"""The doors no seam watches: refused at replay, counted while recording.

`guard` watches; `target` tells what is reached, `program` what is started, `outliving` of what goes
on after its run, `report` is how other processes say what they tried.
"""

from tracefork_core.egress.guard import Watch

__all__ = ["Watch"]
