"""Suites of tests that every implementation of one protocol passes."""
