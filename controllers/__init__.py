"""The controllers: list-watch clients of the API server, in a process of their own.

Each controller is cut by verb; the decision ("given these objects, do what") is pure and returns a plan. They reach the cluster by
HTTP only, through ``controllers.client``, and import from ``apiserver`` only ``apiserver.machinery``.
"""
