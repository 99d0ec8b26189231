"""Tests of the controllers: pure decisions as tables and properties, shells against a fake API and a virtual clock."""
