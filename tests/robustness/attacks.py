"""What a hostile client may ask for, each with what must come of it: a refusal in time, or an answer that costs little."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
JSON = "application/json"
YAML = {"Content-Type": "application/yaml"}
JSON_PATCH = {"Content-Type": "application/json-patch+json"}
MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}
STRATEGIC_PATCH = {"Content-Type": "application/strategic-merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
PROTOBUF = {"Content-Type": "application/vnd.kubernetes.protobuf"}
#: what comes of a request that is right, though it asks for much
SERVED = (200, 201, 400, 409, 413, 422)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    name: str
    method: str
    path: str
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    #: takes seconds: for the long form alone
    heavy: bool = False
    #: which statuses are right; never one of the server's own faults
    right: tuple[int, ...] = (400, 413, 415, 422)


def yaml_bomb() -> bytes:
    """Nine levels of ten aliases: a billion values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for n in range(1, 9):
        lines.append(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]")
    return "\n".join(["apiVersion: v1", "kind: ConfigMap", "metadata: {name: a}", *lines]).encode()


def copy_bomb() -> bytes:
    """Each operation doubles what is there: 2^40 times a kilobyte."""
    operations = [{"op": "copy", "from": "/data", "path": f"/data/x{n}"} for n in range(40)]
    return json.dumps(operations).encode()


def attacks() -> Iterator[Attack]:
    yield from _bodies()
    yield from _questions()
    yield from _field_sets()
    yield from _patterns()
    yield from _rules()


def _bodies() -> Iterator[Attack]:
    deep = 100_000
    yield Attack(name="a nested object", method="POST", path=CONFIGMAPS, body=b'{"a":' * deep + b"1" + b"}" * deep)
    yield Attack(name="a nested list", method="POST", path=CONFIGMAPS, body=b'{"metadata":{"name":"n"},"data":' + b"[" * deep)
    yield Attack(name="nested YAML", method="POST", path=CONFIGMAPS, body=b"[" * 20_000, headers=YAML)
    yield Attack(name="aliases of aliases", method="POST", path=CONFIGMAPS, body=yaml_bomb(), headers=YAML)
    yield Attack(name="an alias of itself", method="POST", path=CONFIGMAPS, body=b"a: &a [*a, *a]\n", headers=YAML)
    packed = gzip.compress(b'{"metadata":{"name":"a"},"data":{"k":"' + b"x" * 50_000_000 + b'"}}')
    yield Attack(name="a zip bomb", method="POST", path=CONFIGMAPS, body=packed, headers={"Content-Encoding": "gzip"})
    yield Attack(name="a body too large", method="POST", path=CONFIGMAPS, body=b" " * (3 * 1024 * 1024 + 1))
    yield Attack(name="a copy bomb", method="PATCH", path=f"{CONFIGMAPS}/target", body=copy_bomb(), headers=JSON_PATCH)
    many = json.dumps([{"op": "test", "path": "/data/k", "value": "v"}] * 20_000).encode()
    yield Attack(name="many operations", method="PATCH", path=f"{CONFIGMAPS}/target", body=many, headers=JSON_PATCH)
    yield Attack(
        name="a nested merge patch",
        method="PATCH",
        path=f"{CONFIGMAPS}/target",
        body=b'{"a":' * deep + b"1" + b"}" * deep,
        headers=MERGE_PATCH,
    )
    yield Attack(name="an applied bomb", method="PATCH", path=f"{CONFIGMAPS}/b?fieldManager=m", body=yaml_bomb(), headers=APPLY)
    yield Attack(name="a long selector", method="GET", path=f"{CONFIGMAPS}?labelSelector=" + "a," * 100_000 + "b")
    yield Attack(name="many parameters", method="GET", path=f"{CONFIGMAPS}?" + "&".join(f"a{n}=1" for n in range(5000)))
    yield Attack(name="a long path", method="GET", path="/api/" + "a/" * 100_000, right=(404, 414, 431))
    numbers = b'{"metadata":{"name":"n"},"data":{"k":' + b"9" * 1_000_000 + b"}}"
    yield Attack(name="a long number", method="POST", path=CONFIGMAPS, body=numbers)
    yield Attack(name="protobuf without end", method="POST", path=CONFIGMAPS, body=b"k8s\0" + b"\x0a" * 1_000_000, headers=PROTOBUF)
    merged = "\n".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 12))
    yield Attack(name="merges of merges", method="POST", path=CONFIGMAPS, body=f"a0: &a0 {{x: 1}}\n{merged}".encode(), headers=YAML)
    lines = b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: long}\ndata:\n" + b"".join(b"  k%d: v\n" % n for n in range(200_000))
    yield Attack(name="much YAML", method="POST", path=CONFIGMAPS, body=lines, headers=YAML, heavy=True)
    pointer = json.dumps([{"op": "add", "path": "/a" * 200_000, "value": 1}]).encode()
    yield Attack(name="a deep JSON pointer", method="PATCH", path=f"{CONFIGMAPS}/target", body=pointer, headers=JSON_PATCH)
    nested = b'{"data":' * 50_000 + b"1" + b"}" * 50_000
    yield Attack(name="a nested strategic patch", method="PATCH", path=f"{CONFIGMAPS}/target", body=nested, headers=STRATEGIC_PATCH)
    limits = {"cpu": "1e999999999", "memory": "9" * 100_000}
    pod = {"metadata": {"name": "q"}, "spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": limits}}]}}
    yield Attack(name="a huge quantity", method="POST", path="/api/v1/namespaces/default/pods", body=json.dumps(pod).encode())


def _questions() -> Iterator[Attack]:
    yield Attack(name="a URL of a megabyte", method="GET", path=f"{CONFIGMAPS}?x=" + "a" * 1_000_000, right=(200,))
    yield Attack(name="a URL beyond the limit", method="GET", path=f"{CONFIGMAPS}?x=" + "a" * 1_100_000, right=(431,))
    headers = {f"X-Much-{n}": "b" for n in range(10_000)}
    yield Attack(name="10,000 header fields", method="GET", path=CONFIGMAPS, headers=headers, right=(200,))
    for name, value in (
        ("garbage", "garbage"),
        ("long", "A" * 200_000),
        ("climbing", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiLi4vLi4vIn0"),
    ):
        yield Attack(name=f"a {name} continue token", method="GET", path=f"{CONFIGMAPS}?limit=1&continue={value}", right=(400,))
    yield Attack(name="a watch beyond all time", method="GET", path=f"{CONFIGMAPS}?watch=1&timeoutSeconds={2**63 - 1}", right=(200,))
    yield Attack(name="a time that is no number of 64 bits", method="GET", path=f"{CONFIGMAPS}?watch=1&timeoutSeconds={10**20}")
    yield Attack(name="a limit that is no number of 64 bits", method="GET", path=f"{CONFIGMAPS}?limit={10**20}")
    fields = ",".join(["metadata.name!=a"] * 5000)
    yield Attack(name="a long field selector", method="GET", path=f"{CONFIGMAPS}?fieldSelector={fields}", right=(200,))
    values = ",".join(f"v{n}" for n in range(110_000))
    yield Attack(
        name="a selector of many values", method="GET", path=f"{CONFIGMAPS}?labelSelector=k%20in%20({values})", right=(200,), heavy=True
    )


def _managed(name: str, entries: list[Any]) -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "managedFields": entries}}).encode()


def _entry(manager: str, fields: Any) -> dict[str, Any]:
    return {
        **{"manager": manager, "operation": "Update", "apiVersion": "v1", "time": "2020-01-01T00:00:00Z"},
        **{"fieldsType": "FieldsV1", "fieldsV1": fields},
    }


def _field_sets() -> Iterator[Attack]:
    depth = 5000
    deep = _managed("deep", [_entry("m", "HERE")]).replace(b'"HERE"', b'{"f:a":' * depth + b"{}" + b"}" * depth)
    yield Attack(name="nested managed fields", method="POST", path=CONFIGMAPS, body=deep)
    many = _managed("managers", [_entry(f"m{n}", {"f:data": {f"f:k{n}": {}}}) for n in range(15_000)])
    yield Attack(name="15,000 managers", method="POST", path=CONFIGMAPS, body=many, right=SERVED, heavy=True)
    wide = _managed("wide", [_entry("m", {"f:data": {f"f:k{n}": {} for n in range(100_000)}})])
    yield Attack(name="100,000 managed fields", method="POST", path=CONFIGMAPS, body=wide, right=SERVED, heavy=True)
    data = {f"k{n}": "" for n in range(100_000)}
    applied = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": data}).encode()
    path = f"{CONFIGMAPS}/applied?fieldManager=a"
    yield Attack(name="100,000 applied fields", method="PATCH", path=path, body=applied, headers=APPLY, right=SERVED, heavy=True)


def definition(plural: str, schema: Any) -> bytes:
    return json.dumps(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.bombs.example.com"},
            "spec": {
                "group": "bombs.example.com",
                "scope": "Namespaced",
                "names": {"plural": plural, "singular": plural[:-1], "kind": plural[:-1].capitalize()},
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
            },
        }
    ).encode()


def _patterns() -> Iterator[Attack]:
    """Patterns are RE2's, which takes time in proportion to the text, and programs in memory are limited."""
    text = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a+)+$"}}}
    yield Attack(
        name="a pattern that others backtrack on", method="POST", path=DEFINITIONS, body=definition("patterns", text), right=(201,)
    )
    for name, pattern in (("of repetitions", "((a{100}){100}){100}"), ("of more repetitions", "(x{1000}){10}")):
        schema = {"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}}
        yield Attack(name=f"a pattern {name}", method="POST", path=DEFINITIONS, body=definition("refuseds", schema))
    many = {f"x{n}": {"type": "string", "pattern": f"^(a{n}|[b-z]+)*$"} for n in range(5000)}
    body = definition("manys", {"type": "object", "properties": many})
    yield Attack(name="5,000 patterns", method="POST", path=DEFINITIONS, body=body, right=SERVED, heavy=True)


def _rules() -> Iterator[Attack]:
    lists = {"type": "array", "maxItems": 1000, "items": {"type": "integer"}}
    rules = {
        "loops in loops": "self.l.all(a, self.l.all(b, self.l.all(c, self.l.all(d, a + b + c + d > 0))))",
        "replacements of replacements": "'aaaaaaaaaaaaaaaa'" + ".replace('a', 'aaaaaaaaaaaaaaaa')" * 8 + ".size() > 0",
        "a pattern of repetitions in a rule": "'a'.matches('((a{100}){100}){100}')",
        "parentheses": "(" * 5000 + "true" + ")" * 5000,
        "negations": "!" * 100_000 + "true",
        "lists of lists": "[" * 5000 + "]" * 5000 + ".size() == 1",
        "fields of fields": "self" + ".a" * 50_000,
        "conditions": "true ? " * 20_000 + "true" + " : true" * 20_000,
        "a long sum": "+".join(["1"] * 20_000) + " > 0",
    }
    for name, rule in rules.items():
        schema = {"type": "object", "properties": {"l": lists}, "x-kubernetes-validations": [{"rule": rule}]}
        yield Attack(name=name, method="POST", path=DEFINITIONS, body=definition("ruleds", schema), right=(422,))
    schema = {"type": "object", "x-kubernetes-validations": [{"rule": f"{n} > 0"} for n in range(10_000)]}
    yield Attack(name="10,000 rules", method="POST", path=DEFINITIONS, body=definition("tens", schema), right=SERVED, heavy=True)
