"""schemathesis over the OpenAPI 3 documents of every group: whatever it makes of them, no request is answered with 500, and none hangs.

    python -m tests.schemathesis_run --seconds 600 [--seed N] [--kubernetes-version 1.NN] [--documents apis/apps/v1 …]

Where ``tests.openapi_fuzz`` makes requests by our own reading of the Swagger document, here another's tool reads the documents: it follows
every schema, media type and parameter in its own way, with values that fit them and with values that do not. Each round takes every
operation of every document once, with a few of the optional properties of each schema, other ones in each round. Failing requests are
printed, with the seed of the run.
"""
