"""Admission policies: rules in CEL that the cluster itself holds (apiserver ``admission/plugin/policy``).

    stored policy ─┐                  ┌─ ValidatingAdmissionPolicy: expressions that must be true, else deny, warn or note
    stored binding ┴─ source: hooks ──┤
    stored params ──── params ────────┘─ MutatingAdmissionPolicy: apply configurations and JSON patches

A policy does nothing until a binding names it; the binding says where, with which parameters, and what a failure means. Both are read from
the watch caches at every request, so that a change counts at once; texts are compiled when the first request comes that they are about.
"""
