"""What several controllers share: the clock, events, expectations, controller references, facts of pods, taints, selectors.

Modules whose docstring says "Pure" touch no clock, socket or event loop.
"""
