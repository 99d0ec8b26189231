"""Property tests here have no deadline (a busy machine is no failure) and draw the same examples each time."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("controllers", deadline=None, derandomize=True)
settings.load_profile("controllers")
