"""`python -m tracefork_core` is the command `tracefork`, for where scripts are not on the path."""

from __future__ import annotations

import sys

from tracefork_core.cli.main import main

sys.exit(main())
