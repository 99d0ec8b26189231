"""``x-kubernetes-validations``: the rules in CEL that a definition gives for its objects (apiextensions-apiserver ``schema/cel``).

    schema ─ declared: what a rule sees of it, typed, with bounds ─ compiled: programs of one schema, made at the first need
                                                                      ├─ definition_rules: faults and costs, when a definition is written
                                                                      └─ evaluation: the rules of a whole object, when one is written

A schema without rules costs nothing here; programs are made when the first object of a version is written and live with its schema.
"""
