"""Benchmarks, run by hand; each prints ratios to a peer measured in the same run, since machines differ and are noisy."""
