"""What Python itself asks programs about the machine: no part of a run."""

from __future__ import annotations

ABOUT_THE_MACHINE = frozenset({"ctypes.util", "platform", "uuid", "distro.distro"})
"""Modules that ask programs about the machine (ldconfig, uname, ip, lsb_release): nothing leaves.

Those of Python, and the one by which SDKs and PostHog's reports tell what Linux they run on.
"""
