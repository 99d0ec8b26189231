"""The same requests on this server and on a real kube-apiserver with the same audit policy, and the events compared field by field.

    python -m tests.audit_differential OURS_URL OURS_TOKEN OURS_LOG THEIRS_URL THEIRS_TOKEN THEIRS_LOG

Prints what differs, after uids, times, versions and ids are masked; fields that a later release has and theirs has not are told too.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_MASKS = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
)
NAMESPACE = f"audit-differential-{int(time.time())}"
POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
BASE = f"/api/v1/namespaces/{NAMESPACE}"
REQUESTS: list[tuple[str, str, Any, dict[str, str]]] = [
    ("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}, {}),
    ("POST", f"{BASE}/serviceaccounts", {"metadata": {"name": "sa"}}, {}),
    ("POST", f"{BASE}/configmaps", {"metadata": {"name": "a"}, "data": {"k": "v"}}, {}),
    ("POST", f"{BASE}/configmaps", {"metadata": {"name": "a"}}, {}),
    ("GET", f"{BASE}/configmaps/a", None, {}),
    ("GET", f"{BASE}/configmaps/none", None, {"X-Forwarded-For": "1.2.3.4, 5.6.7.8"}),
    ("PUT", f"{BASE}/configmaps/a", {"metadata": {"name": "a"}, "data": {"k": "w"}}, {}),
    ("PATCH", f"{BASE}/configmaps/a", {"data": {"l": "x"}}, {"Content-Type": "application/merge-patch+json"}),
    ("GET", f"{BASE}/configmaps?labelSelector=a%3Db", None, {}),
    ("DELETE", f"{BASE}/configmaps/a", None, {}),
    ("POST", f"{BASE}/secrets", {"metadata": {"name": "s"}, "stringData": {"k": "v"}}, {}),
    ("GET", f"{BASE}/secrets/s", None, {}),
    ("POST", f"{BASE}/pods", {**POD, "spec": {**POD["spec"], "serviceAccountName": "sa"}}, {}),  # type: ignore[dict-item]
    ("GET", f"{BASE}/pods", None, {"Impersonate-User": "bob", "Impersonate-Group": "devs"}),
    ("GET", f"{BASE}/configmaps?watch=1&timeoutSeconds=1&resourceVersion=0", None, {}),
    ("GET", "/version", None, {"User-Agent": "a" * 1100}),
    ("GET", "/api/v1/nodes", None, {"Authorization": "Bearer wrong"}),
    (
        "POST",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        {"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}},
        {},
    ),
]


def send(url: str, token: str, marker: str) -> None:
    parts = urlsplit(url)
    for number, (method, path, body, headers) in enumerate(REQUESTS):
        assert parts.hostname is not None
        connection = http.client.HTTPSConnection(parts.hostname, parts.port, timeout=30, context=ssl._create_unverified_context())
        sent = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Audit-ID": f"{marker}-{number}", **headers}
        connection.request(method, path, None if body is None else json.dumps(body), sent)
        connection.getresponse().read()
        connection.close()


def events(log: Path, marker: str) -> dict[tuple[int, str], dict[str, Any]]:
    found = {}
    for line in log.read_text().splitlines():
        event = json.loads(line)
        if event["auditID"].startswith(f"{marker}-"):
            found[int(event["auditID"].rpartition("-")[2]), event["stage"]] = event
    return found


def flattened(value: Any, path: str = "") -> dict[str, str]:
    if isinstance(value, dict):
        return {key: text for name, part in value.items() for key, text in flattened(part, f"{path}.{name}").items()} or {path: "{}"}
    if isinstance(value, list):
        return {key: text for n, part in enumerate(value) for key, text in flattened(part, f"{path}[{n}]").items()} or {path: "[]"}
    text = json.dumps(value)
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return {path: text}


_PASSED_OVER = re.compile(r"managedFields|resourceVersion|auditID|selfLink|\.userAgent$|latency|kubernetes\.io/metadata\.name|port")


def main(ours: str, our_token: str, our_log: str, theirs: str, their_token: str, their_log: str) -> None:
    marker = f"d{int(time.time())}"
    send(ours, our_token, marker)
    send(theirs, their_token, marker)
    time.sleep(2)
    our_events, their_events = events(Path(our_log), marker), events(Path(their_log), marker)
    different = 0
    for key in sorted(our_events.keys() | their_events.keys()):
        mine, real = flattened(our_events.get(key, {})), flattened(their_events.get(key, {}))
        for path in sorted(mine.keys() | real.keys()):
            if mine.get(path) != real.get(path) and not _PASSED_OVER.search(path):
                different += 1
                print(f"{REQUESTS[key[0]][0]} {REQUESTS[key[0]][1]} {key[1]}: {path}: ours {mine.get(path)} theirs {real.get(path)}")
    print(f"{len(our_events)} events of ours, {len(their_events)} of theirs, {different} differences")


if __name__ == "__main__":
    main(*sys.argv[1:7])
