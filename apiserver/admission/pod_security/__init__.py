"""The Pod Security Standards (Kubernetes documentation): three levels, each a list of rules for a pod's spec. Pure functions.

``privileged`` allows everything, ``baseline`` keeps known ways to more rights shut, ``restricted`` asks for today's hardening.
"""
