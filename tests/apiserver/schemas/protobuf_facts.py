"""Makes ``apiserver/schemas/protobuf/fields.jsonl.gz`` from Kubernetes' published sources.

    python -m tests.apiserver.schemas.protobuf_facts OUTPUT DIRECTORY…

Each directory holds one release of k8s.io/api, apimachinery, apiextensions-apiserver and kube-aggregator, in folders of these names. Where
releases differ the first wins; the later ones add what it does not have: messages that were removed, fields that came after it. Taken
are facts: numbers and types of ``generated.proto``, and of the Go types the JSON name and whether a field can be nil or is left out.
"""

from __future__ import annotations

import gzip
import re
import sys
from pathlib import Path
from typing import Any

import orjson

Table = dict[str, dict[str, list[Any]]]

#: name of the module → folder
MODULES = {
    "k8s.io/api": "api",
    "k8s.io/apimachinery": "apimachinery",
    "k8s.io/apiextensions-apiserver": "apiextensions-apiserver",
    "k8s.io/kube-aggregator": "kube-aggregator",
}
_NOT_SERVED = ("testapigroup",)
_SCALARS = frozenset(("string", "bytes", "bool", "int32", "int64", "uint32", "uint64", "double", "float"))

_PACKAGE = re.compile(r"^package ([\w.]+);", re.M)
_MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.M | re.S)
_PROTO_FIELD = re.compile(r"^  (?:(optional|repeated) ([\w.]+)|map<string, ([\w.]+)>) (\w+) = (\d+);", re.M)
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.M | re.S)
_LIST_TYPE = re.compile(r"^type (\w+) \[\]string$", re.M)
_GO_FIELD = re.compile(r"^\t(?:(\w+)[ \t]+)?(\S+)[ \t]+`([^`]*)`", re.M)


def table_of(release: Path) -> Table:
    """The facts of one release."""
    protos = sorted(release.rglob("generated.proto"))
    list_types = {_qualified(path, name) for path in protos for name in _LIST_TYPE.findall(_go_of(path.parent))}
    table: Table = {}
    for path in protos:
        text = path.read_text()
        package = _package(path)
        structs = dict(_STRUCT.findall(_go_of(path.parent)))
        for message, body in _MESSAGE.findall(text):
            name = f"{package}.{message}"
            if not any(part in name for part in _NOT_SERVED):
                table[name] = _message(package, body, structs.get(message, ""), list_types)
    return table


def _package(path: Path) -> str:
    found = _PACKAGE.search(path.read_text())
    assert found, path
    return found[1]


def _qualified(path: Path, name: str) -> str:
    return f"{_package(path)}.{name}"


def _go_of(folder: Path) -> str:
    files = sorted(
        path for path in folder.glob("*.go") if not path.name.endswith("_test.go") and not path.name.startswith(("generated", "zz_"))
    )
    return "\n".join(path.read_text() for path in files)


def _message(package: str, body: str, struct: str, list_types: set[str]) -> dict[str, list[Any]]:
    go = {}
    for go_name, go_type, tag in _GO_FIELD.findall(struct):
        if 'protobuf:"' not in tag:
            continue
        named = re.search(r'protobuf:"[^"]*name=(\w+)', tag)
        json_tag = re.search(r'json:"([^"]*)"', tag)
        json_name, *options = json_tag[1].split(",") if json_tag else ("", "omitempty")
        if not go_name and not json_name and "inline" not in options:
            options.append("inline")  # as Go's encoder takes an embedded struct without a name
        plain = go_name or go_type.rpartition(".")[2].lstrip("*")
        proto_name = named[1] if named else plain[:1].lower() + plain[1:]
        go[proto_name] = (go_type, json_name or proto_name, options)
    fields = {}
    for label, type_name, map_value, proto_name, number in _PROTO_FIELD.findall(body):
        type_name = type_name or map_value
        if type_name not in _SCALARS and "." not in type_name:
            type_name = f"{package}.{type_name}"
        type_name = type_name.removeprefix(".")
        go_type, json_name, options = go.get(proto_name, ("", proto_name, ["omitempty"]))
        nilable = go_type.startswith("*") or (type_name == "bytes" and label == "optional") or type_name in list_types
        always_said = not {"omitempty", "omitzero"} & set(options)
        single = label != "repeated" and not map_value
        flags = "".join(
            flag
            for flag, holds in (
                ("r", label == "repeated"),
                ("i", "inline" in options),
                ("z", single and (go_type.startswith("*") or always_said)),
                ("p", nilable and not map_value),
            )
            if holds
        )
        fields[json_name] = [int(number), f"map:{type_name}" if map_value else type_name, *([flags] if flags else [])]
    return dict(sorted(fields.items()))


def merge(tables: list[Table]) -> Table:
    merged: Table = {}
    first = tables[0]
    for table in tables:
        for message, fields in table.items():
            known = merged.setdefault(message, {})
            numbers = {row[0] for row in known.values()}
            for name, row in fields.items():
                if name not in known and row[0] not in numbers:
                    known[name] = _not_always_there(row) if message in first and table is not first else row
    return {message: dict(sorted(merged[message].items())) for message in sorted(merged)}


def _not_always_there(row: list[Any]) -> list[Any]:
    """A field that the first release has not is written only where an object has it."""
    number, type_name, *rest = row
    flags = rest[0] if rest else ""
    return row if set(flags) & {"r", "p"} or type_name.startswith("map:") else [number, type_name, flags + "p"]


def main(output: str, *releases: str) -> None:
    table = merge([table_of(Path(release)) for release in releases])
    lines = [b"%b\t%b\n" % (message.encode(), orjson.dumps(fields)) for message, fields in table.items()]
    Path(output).write_bytes(gzip.compress(b"".join(lines), 9, mtime=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
