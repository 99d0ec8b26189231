"""Trusted fakes: one for each outside thing, held to the conformance suite of what it stands for."""
