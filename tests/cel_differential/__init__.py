"""CEL compared with the real API server of custom resources (1.36): the same expressions, schema and object on both sides.

    python -m tests.cel_differential --server https://127.0.0.1:PORT --token TOKEN [--record] [--random N --seed S]

`world` has the schema and the object, `expressions` what is asked, `ask` how the server is made to tell. `--record` keeps its answers in
`tests/apiserver/cel/recorded.json`, which the tests compare with on every run.
"""
