"""Faults that were found in the running server, each with its story: what was done, what happened, what is right."""
