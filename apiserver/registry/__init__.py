"""The rules of each resource around its storage: strategies, the generic ``Store``, deletion, dry run."""
