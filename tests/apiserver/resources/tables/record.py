"""Make ``objects.OBJECTS`` on a real kube-apiserver and write down its tables of them.

python -m tests.apiserver.resources.tables.record https://127.0.0.1:6443 TOKEN recorded-1.20.json

The server is changed (a namespace ``tables`` and cluster-wide objects are left in it), so give it one of its own, without controllers.
"""

from __future__ import annotations

import json
import ssl
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.apiserver.resources.tables.objects import NAMESPACE, OBJECTS, Made

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class Reference:
    def __init__(self, url: str, token: str) -> None:
        self._url, self._token = url, token
        self._tls = ssl.create_default_context()
        self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE

    def __call__(self, method: str, path: str, body: Any = None, accept: str = "application/json") -> Any:
        """The answer's body; an error is printed and its Status answered."""
        headers = {"Authorization": f"Bearer {self._token}", "Accept": accept, "Content-Type": "application/json"}
        if method == "PATCH":
            headers["Content-Type"] = "application/merge-patch+json"
        request = urllib.request.Request(self._url + path, None if body is None else json.dumps(body).encode(), headers, method=method)
        try:
            with urllib.request.urlopen(request, context=self._tls, timeout=30) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            text = error.read().decode()
            print(method, path, error.code, text[:300], file=sys.stderr)
            return json.loads(text)


def make(ask: Reference, made: Made) -> None:
    ask("POST", made.collection, made.body)
    path = f"{made.collection}/{made.body['metadata']['name']}"
    if made.status is not None:
        ask("PATCH", f"{path}/status", {"status": made.status})
    if made.deleted:
        ask("DELETE", path)


def main() -> None:
    url, token, target = sys.argv[1:]
    ask = Reference(url, token)
    ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    ask("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": {"name": "default"}})
    for made in OBJECTS:
        make(ask, made)
    found = []
    for collection in dict.fromkeys(made.collection for made in OBJECTS):
        sample = next(made for made in OBJECTS if made.collection == collection)
        table = ask("GET", f"{collection}?includeObject=Object", accept=TABLE)
        rows = []
        for row in table["rows"]:
            row["object"]["metadata"].pop("managedFields", None)
            rows.append(row)
        found.append(
            {
                "group": sample.group, "version": sample.version, "resource": sample.resource,
                "columns": table["columnDefinitions"], "rows": rows,
            }
        )  # fmt: skip
    Path(target).write_text(json.dumps(found, separators=(",", ":"), sort_keys=True).replace('{"columns"', '\n{"columns"') + "\n")


if __name__ == "__main__":
    main()
