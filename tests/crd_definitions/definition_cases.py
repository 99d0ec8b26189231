"""Everything of a definition but its schemas: names, group, scope, versions, conversion, subresources, columns, selectable fields and
metadata."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from tests.crd_definitions.bodies import GONE, TEXT, WHOLE, changed, definition, of_field, version
from tests.crd_definitions.exchange import Case, create

V = "spec.versions.0"
_WRONG_TYPES: list[Any] = [1, True, "x", [], {}, None]


def definition_cases() -> Iterator[Case]:
    for group in (_names(), _versions(), _conversion(), _subresources(), _columns(), _selectable(), _metadata()):
        for name, body in group:
            yield Case(name=name, steps=(create(body),))


def _each(name: str, base: Any, path: str, values: list[Any], **beside: Any) -> Iterator[tuple[str, Any]]:
    for number, value in enumerate(values):
        yield f"{name}-{number}", changed(base, {path: value, **{at.replace("__", "."): what for at, what in beside.items()}})


def _names() -> Iterator[tuple[str, Any]]:
    base = definition()
    labels = ["a", "A", "a.b", "a-b", "-a", "1a", "a" * 63, "a" * 64, "", "ä", GONE, *_WRONG_TYPES]
    for name in ("plural", "singular", "kind", "listKind"):
        yield from _each(f"names-{name}", base, f"spec.names.{name}", labels)
    for plural in ("Widgets", "wid.gets", "1widgets", "w" * 64, "widgets "):
        yield f"names-plural-and-name-{plural}", definition(plural=plural)
    lists: list[Any] = [[], ["w"], ["W"], ["w", "w"], ["widgets"], ["widget"], [""], ["a.b", "1"], "w", [1], None, [None]]
    yield from _each("names-shortNames", base, "spec.names.shortNames", lists)
    yield from _each("names-categories", base, "spec.names.categories", [*lists, ["all"], ["a" * 64]])
    yield "names-kind-as-listKind", changed(base, {"spec.names.listKind": "Widget"})
    yield "names-kind-as-listKind-case", changed(base, {"spec.names.listKind": "widget"})
    yield "names-singular-as-plural", changed(base, {"spec.names.singular": "widgets"})
    yield "names-none", changed(base, {"spec.names": {}})
    yield "names-gone", changed(base, {"spec.names": GONE})
    yield "names-unknown", changed(base, {"spec.names.extra": "x"})
    yield "names-defaults", changed(base, {"spec.names": {"plural": "widgets", "kind": "WIDGET"}})
    yield "names-defaults-unicode", changed(base, {"spec.names": {"plural": "widgets", "kind": "\u00c4X\u0130"}})
    groups = [
        "",
        "x",
        "x.y",
        "X.y",
        "-x.y",
        "x..y",
        "x_y.z",
        "a" * 64 + ".b",
        ".".join(["a" * 60] * 5),
        "k8s.io",
        "1.2",
        GONE,
        *_WRONG_TYPES,
    ]
    yield from _each("group", base, "spec.group", groups)
    for group in ("x", "X.y", "x..y", "apps.k8s.io", "k8s.io", "sub.kubernetes.io", "notk8s.io", "autoscaling.k8s.io", "a" * 64 + ".b"):
        yield f"group-and-name-{group}", definition(group=group)
    approvals = ["", "x", "https://github.com/kubernetes/kubernetes/pull/1", "unapproved", "unapproved, experimental", "http://x", "ftp:y"]
    for number, said in enumerate([*approvals, "https://", "//x/y", "https:// x", " unapproved"]):
        for group in ("x.k8s.io", "x.kubernetes.io", "x.example.com"):
            yield (
                f"approval-{number}-{group}",
                {
                    **definition(group=group),
                    "metadata": {"name": f"widgets.{group}", "annotations": {"api-approved.kubernetes.io": said}},
                },
            )
    yield from _each("scope", base, "spec.scope", ["Cluster", "cluster", "", "Both", GONE, *_WRONG_TYPES])
    yield from _each("spec", base, "spec", [GONE, {}, *_WRONG_TYPES])
    yield from _each("preserveUnknownFields", base, "spec.preserveUnknownFields", [True, False, "x", None])
    defaulted = of_field({"type": "string", "default": "a"})
    yield "preserveUnknownFields-and-defaults", changed(defaulted, {"spec.preserveUnknownFields": True})
    yield "preserveUnknownFields-and-webhook", changed(base, {"spec.preserveUnknownFields": True, "spec.conversion": _webhook()})
    yield from _each("validation", base, "spec.validation", [{"openAPIV3Schema": {"type": "object"}}])
    yield from _each("version", base, "spec.version", ["v1"])


def _versions() -> Iterator[tuple[str, Any]]:
    base = definition()
    names = ["v1", "V1", "", "1", "v1.1", "v1alpha1", "a" * 63, "a" * 64, "v_1", GONE, *_WRONG_TYPES]
    yield from _each("version-name", base, f"{V}.name", names)
    yield from _each("version-served", base, f"{V}.served", [True, False, GONE, "x", None])
    yield from _each("version-storage", base, f"{V}.storage", [True, False, GONE, "x", None])
    yield from _each("version-deprecated", base, f"{V}.deprecated", [True, False, "x"])
    warnings = [
        "w",
        "",
        "a" * 256,
        "a" * 257,
        "ä" * 128,
        "ä" * 129,
        "a\nb",
        "a\u00a0b",
        "a\x00",
        "\u200b",
        "\ud7ff",
        1,
        None,
        "\t",
        "ok \u2603",
    ]
    yield from _each("version-deprecationWarning", base, f"{V}.deprecationWarning", warnings, spec__versions__0__deprecated=True)
    yield from _each("version-deprecationWarning-alone", base, f"{V}.deprecationWarning", ["w", ""])
    yield from _each(
        "version-schema", base, f"{V}.schema", [GONE, {}, {"openAPIV3Schema": None}, {"openAPIV3Schema": {}}, {"x": 1}, [], "x"]
    )
    yield from _each("version-unknown", base, f"{V}.extra", [1])
    yield from _each("versions", base, "spec.versions", [GONE, [], None, {}, "x", [None], [{}], [1]])
    pairs: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "same-names": ({}, {"name": "v1", "storage": False}),
        "same-names-both-stored": ({}, {"name": "v1"}),
        "both-stored": ({}, {}),
        "none-stored": ({"storage": False}, {"storage": False}),
        "second-stored": ({"storage": False}, {}),
        "stored-unserved": ({"served": False}, {"storage": False}),
        "none-served": ({"served": False}, {"storage": False, "served": False}),
        "one-schema": ({"schema": None}, {"storage": False}),
        "no-schema": ({"schema": None}, {"storage": False, "schema": None}),
        "no-schema-served": ({}, {"storage": False, "served": False, "schema": None}),
        "schemas": ({}, {"storage": False, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"x": {"type": "strnig"}}}}}),
        "bad-schemas-alike": (
            {"schema": {"openAPIV3Schema": {"type": "strnig"}}},
            {"storage": False, "schema": {"openAPIV3Schema": {"type": "strnig"}}},
        ),
        "columns": ({"additionalPrinterColumns": [_column()]}, {"storage": False}),
        "columns-empty": ({"additionalPrinterColumns": []}, {"storage": False}),
        "columns-alike": (
            {"additionalPrinterColumns": [_column(type="x")]},
            {"storage": False, "additionalPrinterColumns": [_column(type="x")]},
        ),
        "columns-differ": ({"additionalPrinterColumns": [_column(type="x")]}, {"storage": False, "additionalPrinterColumns": [_column()]}),
        "subresources": ({"subresources": {"status": {}}}, {"storage": False}),
        "subresources-empty": ({"subresources": {}}, {"storage": False}),
        "subresources-bad": ({"subresources": {"scale": {}}}, {"storage": False}),
        "subresources-bad-alike": ({"subresources": {"scale": {}}}, {"storage": False, "subresources": {"scale": {}}}),
        "status-and-root": (
            {"subresources": {"status": {}}},
            {"storage": False, "schema": {"openAPIV3Schema": {"type": "object", "maxProperties": 1}}},
        ),
        "status-alike-and-root": (
            {"subresources": {"status": {}}},
            {"storage": False, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {"type": "object", "maxProperties": 1}}},
        ),
        "selectable-differ": ({"selectableFields": [{"jsonPath": ".x"}]}, {"storage": False}),
        "selectable-alike": (
            {"selectableFields": [{"jsonPath": ".x"}]},
            {"storage": False, "selectableFields": [{"jsonPath": ".x"}]},
        ),
        "deprecated": ({"deprecated": True}, {"storage": False, "deprecationWarning": "w"}),
        "defaults": ({}, {"storage": False, "schema": {"openAPIV3Schema": _field({"type": "string", "default": "a"})}}),
        "unknown-formats": (
            {"schema": {"openAPIV3Schema": _field({"type": "string", "format": "foo"})}},
            {"storage": False, "schema": {"openAPIV3Schema": _field({"type": "string", "format": "bar"})}},
        ),
        "names": ({"name": "v1beta1"}, {"name": "v10", "storage": False}),
    }
    for name, (first, second) in pairs.items():
        yield f"versions-{name}", definition({**version(), **first}, {**version("v2"), **second})
    many = [version(f"v{n}", storage=n == 1) for n in range(1, 30)]
    yield "versions-many", definition(*many)


def _field(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": schema}}


def _webhook(**client: Any) -> dict[str, Any]:
    config = client or {"url": "https://hooks.example.com/convert"}
    return {"strategy": "Webhook", "webhook": {"clientConfig": config, "conversionReviewVersions": ["v1"]}}


_PEM = "-----BEGIN CERTIFICATE-----\nMIIBeDCCAR2gAwIBAgIBATAKBggqhkjOPQQDAjAPMQ0wCwYDVQQDDAR0ZXN0MB4XDTI2\n-----END CERTIFICATE-----\n"


def _conversion() -> Iterator[tuple[str, Any]]:
    base = definition()
    service = {"namespace": "ns", "name": "svc"}
    said: list[Any] = [
        {},
        {"strategy": "None"},
        {"strategy": ""},
        {"strategy": "none"},
        {"strategy": "Webhook"},
        {"strategy": "Other"},
        {"strategy": "None", "webhook": {}},
        {"strategy": "None", "webhook": {"conversionReviewVersions": []}},
        {"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}},
        {"strategy": "None", "webhook": {"clientConfig": {}}},
        {"strategy": "None", "webhook": {"clientConfig": {"url": "https://x"}, "conversionReviewVersions": ["v1"]}},
        {"strategy": "Other", "webhook": {"clientConfig": {}, "conversionReviewVersions": ["v1"]}},
        {"strategy": "Webhook", "webhook": {}},
        {"strategy": "Webhook", "webhook": {"clientConfig": {}}},
        {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}},
        {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://x"}}},
        {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://x"}, "conversionReviewVersions": None}},
        _webhook(url="https://x", service=service),
        _webhook(service=service),
        _webhook(service={}),
        _webhook(service={"namespace": "ns"}),
        _webhook(service={"name": "svc"}),
        {"strategy": 1},
        {"unknown": 1},
        [],
        "None",
        None,
    ]
    yield from _each("conversion", base, "spec.conversion", said)
    urls = [
        "",
        "http://x",
        "https://",
        "https://x?y=z",
        "https://x#y",
        "https://u:p@x",
        "https://u@x",
        "x",
        "://",
        "https://x/%zz",
        "https://x:p",
    ]
    for number, url in enumerate([*urls, "HTTPS://x", "https://localhost:1/a b", "https://[::1]:443", "https:///path", "https:x", 1]):
        yield f"conversion-url-{number}", changed(base, {"spec.conversion": _webhook(url=url)})
    paths = ["", "/", "x", "/x", "/x/", "//x", "/x//y", "/x?y", "/x#y", "/X", "/a b", "/a_b", "/-a", "/%61"]
    for number, path in enumerate(paths):
        yield f"conversion-path-{number}", changed(base, {"spec.conversion": _webhook(service={**service, "path": path})})
    for port in (0, 1, 65535, 65536, -1, "443", None, 1.5):
        yield f"conversion-port-{port}", changed(base, {"spec.conversion": _webhook(service={**service, "port": port})})
    bundles = ["", "x", "!!", base64.b64encode(b"x").decode(), base64.b64encode(_PEM.encode()).decode(), None, 1]
    for number, bundle in enumerate(bundles):
        yield f"conversion-bundle-{number}", changed(base, {"spec.conversion": _webhook(url="https://x", caBundle=bundle)})
    versions = [[], [""], ["v1"], ["v1beta1"], ["v2"], ["v2", "v1"], ["v1", "v1"], ["V1"], ["v1", "a.b", "a.b"], "v1", [1], ["1", "-"]]
    for number, one in enumerate(versions):
        yield (
            f"conversion-reviews-{number}",
            changed(
                base,
                {"spec.conversion": {**_webhook(), "webhook": {"clientConfig": {"url": "https://x"}, "conversionReviewVersions": one}}},
            ),
        )


def _subresources() -> Iterator[tuple[str, Any]]:
    base = definition()
    values: list[Any] = [
        {},
        None,
        [],
        {"status": {}},
        {"status": None},
        {"status": {"x": 1}},
        {"status": "x"},
        {"scale": {}},
        {"scale": None},
        {"x": {}},
    ]
    yield from _each("subresources", base, f"{V}.subresources", values)
    good = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    paths = [
        "",
        ".spec",
        ".spec.",
        ".spec.x",
        "spec.x",
        ".status.x",
        ".spec[0]",
        ".spec.x[0]",
        ".spec.a.b",
        ".spec..x",
        ".specs.x",
        "{.spec.x}",
        " .spec.x",
        1,
    ]
    for field in ("specReplicasPath", "statusReplicasPath", "labelSelectorPath"):
        for number, path in enumerate([*paths, GONE, None]):
            said = changed(base, {f"{V}.subresources.scale": dict(good)})
            yield f"scale-{field}-{number}", changed(said, {f"{V}.subresources.scale.{field}": path})
    yield "scale-unknown", changed(base, {f"{V}.subresources.scale": {**good, "x": 1}})


def _column(**more: Any) -> dict[str, Any]:
    return {"name": "C", "type": "string", "jsonPath": ".spec.x", **more}


def _columns() -> Iterator[tuple[str, Any]]:
    base = definition()
    values: dict[str, list[Any]] = {
        "name": ["", "a b", "x" * 300, None, 1],
        "type": ["", "integer", "number", "boolean", "date", "object", "String", "array", None, 1],
        "format": ["", "int32", "int64", "float", "double", "byte", "date", "date-time", "password", "binary", "x", 1],
        "description": ["", "d", 1],
        "priority": [0, 1, -1, 2**31, 1.5, "1", None],
        "jsonPath": [
            "",
            ".",
            "x",
            ".x",
            "{.x}",
            ".x[*].y",
            ".x[?(@.y==1)]",
            ".x[?(@.y=='a\\.b')].z",
            ".x[",
            ".x]",
            "..x",
            ".x..y",
            ".x.y\\.z",
            ".['x']",
            ".x['y']",
            ".x[0:2]",
            ".x[-1:]",
            ".x[a]",
            ".x{",
            ".x}",
            '."x"',
            ".x[?(@.y)]",
            ".metadata.creationTimestamp",
            ".x.*",
            ".x[?(@.a > 1 && @.b)]",
            "..",
            ".x[1,2]",
            ".x y",
            1,
        ],
        "extra": [1],
    }
    for field, said in values.items():
        for number, value in enumerate(said):
            yield f"column-{field}-{number}", changed(base, {f"{V}.additionalPrinterColumns": [_column(**{field: value})]})
    yield from _each("columns", base, f"{V}.additionalPrinterColumns", [[], {}, None, "x", [None], [{}], [_column(), _column()], [1]])


def _selectable() -> Iterator[tuple[str, Any]]:
    schema = {
        "type": "object",
        "properties": {
            "s": TEXT,
            "i": WHOLE,
            "n": {"type": "number"},
            "b": {"type": "boolean"},
            "l": {"type": "array", "items": TEXT},
            "o": {
                "type": "object",
                "properties": {"s": TEXT, "a-b": TEXT, "a.b": TEXT, "for": TEXT, "o": {"type": "object", "properties": {"i": WHOLE}}},
            },
            "m": {"type": "object", "additionalProperties": TEXT},
            "e": {"type": "string", "enum": ["a"]},
            "f": {"type": "string", "format": "date"},
            "u": {"x-kubernetes-int-or-string": True},
            "p": {"x-kubernetes-preserve-unknown-fields": True},
            "metadata": {"type": "object", "properties": {"name": TEXT}},
            "apiVersion": TEXT,
            "kind": TEXT,
            "status": {"type": "object", "properties": {"s": TEXT}},
        },
    }
    base = definition(version(schema=schema))
    paths: list[Any] = [
        ".s",
        ".i",
        ".n",
        ".b",
        ".l",
        ".o",
        ".o.s",
        ".o.o.i",
        ".m",
        ".m.x",
        ".e",
        ".f",
        ".u",
        ".p",
        ".zz",
        ".o.zz",
        "",
        ".",
        "s",
        "o.s",
        " .s",
        ".o['s']",
        ".o[s]",
        ".o['a-b']",
        ".o.a-b",
        ".o['a.b']",
        ".o.for",
        ".l[0]",
        "..s",
        ".s.",
        ".s.x",
        ".metadata",
        ".metadata.name",
        ".metadata.labels.x",
        ".metadata.namespace",
        ".apiVersion",
        ".kind",
        ".status.s",
        "{.s}",
        ".o.*",
        ".s\n",
        1,
        None,
        "$.s",
        "@.s",
        ".o\\.s",
        '.o["s"]',
        ".m['x']",
        ".l[*]",
        ".'s'",
        ".o. s",
    ]
    for number, path in enumerate(paths):
        yield f"selectable-{number}", changed(base, {f"{V}.selectableFields": [{"jsonPath": path}]})
    more: list[Any] = [
        [],
        None,
        {},
        [{}],
        [None],
        [{"jsonPath": ".s", "x": 1}],
        [{"jsonPath": ".s"}, {"jsonPath": ".s"}],
        [{"jsonPath": ".s"}, {"jsonPath": ".zz"}, {"jsonPath": ".metadata.name"}],
    ]
    for number, one in enumerate(more):
        yield f"selectables-{number}", changed(base, {f"{V}.selectableFields": one})
    many = {"type": "object", "properties": {f"f{n}": TEXT for n in range(12)}}
    for count in (8, 9, 12):
        fields = [{"jsonPath": f".f{n}"} for n in range(count)]
        yield f"selectables-of-{count}", definition(version(schema=many, selectableFields=fields))
    yield "selectables-without-schema", changed(base, {f"{V}.selectableFields": [{"jsonPath": ".s"}], f"{V}.schema": GONE})
    two = definition(
        version(selectableFields=[{"jsonPath": ".s"}]), version("v2", schema=schema, storage=False, selectableFields=[{"jsonPath": ".s"}])
    )
    yield "selectables-of-one-version", two
    bare = changed(two, {"spec.versions.0.schema": GONE, "spec.versions.1.schema": GONE})
    yield "selectables-of-versions-without-schemas", bare
    odd = changed(bare, {"spec.versions.1.selectableFields": GONE})
    yield "selectables-of-one-version-without-schemas", odd


def _metadata() -> Iterator[tuple[str, Any]]:
    base = definition()
    said: list[dict[str, Any]] = [
        {"metadata": GONE},
        {"metadata": {}},
        {"metadata.name": "other.example.com"},
        {"metadata.name": ""},
        {"metadata.name": "Widgets." + base["spec"]["group"]},
        {"metadata.name": GONE, "metadata.generateName": "widgets-"},
        {"metadata.generateName": "widgets-"},
        {"metadata.generateName": base["metadata"]["name"]},
        {"metadata.namespace": "default"},
        {"metadata.labels": {"a b": "c"}},
        {"metadata.labels": {"a": "c d"}},
        {"metadata.annotations": {"A b": "c"}},
        {"metadata.finalizers": ["x"]},
        {"metadata.finalizers": ["x y"]},
        {"metadata.finalizers": ["customresourcecleanup.apiextensions.k8s.io", "a/b"]},
        {"metadata.ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u"}]},
        {"metadata.ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x"}]},
        {"metadata.uid": "u", "metadata.creationTimestamp": "2020-01-01T00:00:00Z", "metadata.generation": 7},
        {"metadata.resourceVersion": "5"},
        {"metadata.deletionTimestamp": "2020-01-01T00:00:00Z"},
        {"metadata.unknown": 1},
        {"metadata.selfLink": "x"},
        {"metadata.managedFields": []},
        {"metadata.managedFields": [{"manager": "x"}]},
        {"apiVersion": "apiextensions.k8s.io/v1beta1"},
        {"apiVersion": "v1"},
        {"apiVersion": ""},
        {"apiVersion": GONE},
        {"kind": GONE},
        {"kind": "Other"},
        {"kind": 1},
        {"unknown": 1},
        {
            "status": {
                "storedVersions": ["v9"],
                "conditions": [{"type": "Established", "status": "True"}],
                "acceptedNames": {"plural": "X", "kind": "Y"},
            }
        },
        {"status": {"unknown": 1}},
        {"status": "x"},
        {"status": {"storedVersions": "x"}},
        {"status": {"conditions": [{"type": "x", "lastTransitionTime": "yesterday"}]}},
    ]
    for number, changes in enumerate(said):
        yield f"metadata-{number}", changed(base, changes)
