"""Definitions of custom resources, as a real 1.36 server answers them: every field, at every place, well and badly.

    python -m tests.crd_definitions record https://127.0.0.1:6443 TOKEN           writes recorded.json.gz from a real server
    python -m tests.crd_definitions record https://127.0.0.1:6443 TOKEN --file F  all 10,000 cases to a file, of which the above are a part
    python -m tests.crd_definitions compare [--file F] [NAME …]                   prints what this implementation answers otherwise

A case is a sequence of requests. What is compared is the whole answer: code, warnings, and the body but for what no two servers have alike
(``outcomes``). Causes of a refusal are compared in order where the real server keeps one: the order of Go's maps is no order.
"""
