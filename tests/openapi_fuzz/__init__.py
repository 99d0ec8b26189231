"""Random requests made from the published OpenAPI document: whatever is sent, the answer is never a 500, and a refusal is a Status.

    python -m tests.openapi_fuzz --seconds 600 [--seed N] [--kubernetes-version 1.NN]     a long run; a failure prints the request

A request is an operation of the document with its parameters filled in: mostly with values of their types, now and then with odd ones; its
body follows the schema, and now and then does not. The same seed makes the same requests.
"""
