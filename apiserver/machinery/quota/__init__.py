"""Counting what objects use against the ResourceQuotas of their namespace: pure functions from objects to amounts.

The quota controller counts everything anew from time to time; admission adds what one request brings. Both must count alike, so the
rules stand here once.
"""
