"""Hypothesis for pure code: the same examples in every run, so that a failure seen stays seen, and no deadline on a shared machine."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("pure", deadline=None, derandomize=True)
settings.load_profile("pure")
