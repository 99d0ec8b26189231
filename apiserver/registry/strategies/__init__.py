"""Strategies of the built-in kinds: ``strategy_for`` answers the one of a resource.

A file a group or big kind; each exports ``STRATEGIES``, from (group, kind) to a ``Strategy`` class. Kinds of which nothing particular
is known get the base behaviour. Defaulting is in ``registry.defaults``, checking in ``registry.validation``; the classes here say
what happens when, and what is kept, dropped or made up.
"""

from __future__ import annotations

from apiserver.registry.strategies.table import load_all, strategy_for

__all__ = ["load_all", "strategy_for"]
