"""``kubectl apply --server-side`` sends YAML, and the matchers of Prometheus' definitions have a plain ``=`` among the values of an enum.

1. The YAML says ``enum: [!=, =, =~]``.
2. YAML 1.1 has a type for the plain ``=``, of which PyYAML knows the name but cannot make a value.
3. The whole definition was refused with 400. It is text, as it is for Kubernetes.
"""

from __future__ import annotations

import orjson

from apiserver.request.body import yaml_to_json


def test_an_equals_sign_is_text() -> None:
    assert orjson.loads(yaml_to_json(b"enum:\n- '!='\n- =\n- =~\nplain: =\n")) == {"enum": ["!=", "=", "=~"], "plain": "="}
