"""Takes the cases of the public CEL conformance suite that Kubernetes' CEL can answer into `tests/apiserver/cel/conformance.json`.

    git --git-dir=CEL_SPEC show HEAD:tests/simple/testdata/basic.textproto …    (github.com/google/cel-spec, Apache-2.0)
    python -m tests.cel_differential.conformance DIRECTORY_OF_TEXTPROTO_FILES

Left out: what needs protocol buffer messages, containers, unknown values, and extensions that Kubernetes does not have.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path
from typing import Any

OUTPUT = Path(__file__).parent.parent / "apiserver" / "cel" / "conformance.json"
FILES = [
    "basic", "bindings_ext", "comparisons", "conversions", "fields", "fp_math", "integer_math", "lists", "logic", "macros", "macros2",
    "optionals", "parse", "string", "string_ext", "timestamps", "type_deduction",
]  # fmt: skip
# Kubernetes has the second version of the string extension; cel-go (its engine) takes repeated keys and null as a key
LEFT_OUT = (
    "string_ext/format/",
    "string_ext/format_errors/",
    "string_ext/reverse/",
    "string_ext/value_errors/indexof_out_of_range",
    "string_ext/value_errors/lastindexof_out_of_range",
    "fields/qualified_identifier_resolution/map_key_null",
    "fields/qualified_identifier_resolution/map_value_repeat_key",
)
_TOKEN = re.compile(
    r"""\s+|\#[^\n]*
      |(?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
      |(?P<word>[A-Za-z0-9_.+\-/\[\]]+?(?=[\s{}:,;<>\#"']|$))
      |(?P<mark>[{}:;,<>])""",
    re.DOTALL | re.VERBOSE,
)

Message = dict[str, list[Any]]


def parse(text: str) -> Message:
    """A text protocol buffer as lists of values by field; strings are bytes, other scalars words."""
    tokens: list[tuple[str, str]] = []
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        assert found is not None, text[position : position + 40]
        position = found.end()
        if found.lastgroup:
            tokens.append((found.lastgroup, found.group()))
    message, rest = _message(tokens, 0)
    assert rest == len(tokens)
    return message


def _message(tokens: list[tuple[str, str]], index: int) -> tuple[Message, int]:
    message: Message = {}
    while index < len(tokens) and tokens[index][1] != "}":
        name = tokens[index][1]
        index += 1
        if tokens[index][1] == ":":
            index += 1
        if tokens[index][1] == "{":
            value: Any
            value, index = _message(tokens, index + 1)
            index += 1
        elif tokens[index][0] == "string":
            value = b""
            while index < len(tokens) and tokens[index][0] == "string":
                value += ast.literal_eval("b" + _ascii(tokens[index][1]))
                index += 1
        else:
            value = tokens[index][1]
            index += 1
        message.setdefault(name, []).append(value)
        if index < len(tokens) and tokens[index][1] in (",", ";"):
            index += 1
    return message, index


def _ascii(literal: str) -> str:
    def escaped(found: re.Match[str]) -> str:
        text = found.group()
        if text == "\\?":
            return "?"
        if text[:2] in ("\\u", "\\U"):
            return "".join(f"\\x{byte:02x}" for byte in chr(int(text[2:], 16)).encode())
        return text if text.isascii() else "".join(f"\\x{byte:02x}" for byte in text.encode())

    literal = re.sub(r"\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|\\.|[^\x00-\x7f]", escaped, literal)
    return literal[0] * 3 + literal[1:-1] + literal[0] * 3 if "\n" in literal else literal


class Unsupported(Exception):
    """A value that needs a message."""


def value_of(message: Message) -> Any:
    """An expected or bound value as JSON, with a tag where JSON has no such value."""
    ((kind, values),) = message.items()
    value = values[0]
    if kind == "int64_value":
        return int(value, 0)
    if kind == "uint64_value":
        return {"uint": int(value, 0)}
    if kind == "double_value":
        return {"double": value.lower().replace("infinity", "inf")}
    if kind == "string_value":
        return value.decode("utf-8")
    if kind == "bytes_value":
        return {"bytes": value.hex()}
    if kind == "bool_value":
        return value == "true"
    if kind == "null_value":
        return None
    if kind == "list_value":
        return {"list": [value_of(item) for item in value.get("values", [])]}
    if kind == "map_value":
        return {"map": [[value_of(entry["key"][0]), value_of(entry["value"][0])] for entry in value.get("entries", [])]}
    if kind == "type_value":
        return {"type": value.decode()}
    if kind == "object_value" and "[type.googleapis.com/google.protobuf.Duration]" in value:
        return {"duration": _nanoseconds(value["[type.googleapis.com/google.protobuf.Duration]"][0])}
    if kind == "object_value" and "[type.googleapis.com/google.protobuf.Timestamp]" in value:
        return {"timestamp": _nanoseconds(value["[type.googleapis.com/google.protobuf.Timestamp]"][0])}
    raise Unsupported(kind)


def _nanoseconds(message: Message) -> int:
    return int(message.get("seconds", ["0"])[0]) * 10**9 + int(message.get("nanos", ["0"])[0])


def type_text(message: Message) -> str:
    """A declared type in the words of our signatures."""
    ((kind, values),) = message.items()
    value = values[0]
    if kind == "primitive":
        return {"INT64": "int", "UINT64": "uint"}.get(value, value.lower())
    if kind == "well_known":
        return {"ANY": "dyn"}.get(value, value.lower())
    if kind == "dyn":
        return "dyn"
    if kind == "null":
        return "null"
    if kind == "list_type":
        return f"list({type_text(value['elem_type'][0])})"
    if kind == "map_type":
        return f"map({type_text(value['key_type'][0])}, {type_text(value['value_type'][0])})"
    raise Unsupported(kind)


def case_of(test: Message) -> dict[str, Any]:
    """One test, if ours can be asked it."""
    case: dict[str, Any] = {"expr": test["expr"][0].decode("utf-8")}
    if "container" in test or "unknown" in test or "any_unknowns" in test or "any_eval_errors" in test:
        raise Unsupported("container or unknown")
    if "disable_check" in test or re.search(r"TestAllTypes|google\.protobuf\.\w*Value", case["expr"]):
        raise Unsupported("unchecked or message")
    for declaration in test.get("type_env", []):
        if "ident" not in declaration:
            raise Unsupported("function")
        case.setdefault("types", {})[declaration["name"][0].decode()] = type_text(declaration["ident"][0]["type"][0])
    for binding in test.get("bindings", []):
        value = binding["value"][0].get("value")
        if value is None:
            raise Unsupported("binding")
        case.setdefault("values", {})[binding["key"][0].decode()] = value_of(value[0])
    if "eval_error" in test:
        case["error"] = test["eval_error"][0].get("errors", [{}])[0].get("message", [b""])[0].decode()
    elif "value" in test:
        case["value"] = value_of(test["value"][0])
    elif "typed_result" in test:
        result = test["typed_result"][0]
        if "result" not in result:
            raise Unsupported("type alone")
        case["value"] = value_of(result["result"][0])
    else:
        case["value"] = True
    return case


def main() -> None:
    taken: dict[str, dict[str, Any]] = {}
    skipped = 0
    for name in FILES:
        for section in parse((Path(sys.argv[1]) / f"{name}.textproto").read_text())["section"]:
            for test in section.get("test", []):
                try:
                    if any(f"{name}/{section['name'][0].decode()}/{test['name'][0].decode()}".startswith(each) for each in LEFT_OUT):
                        raise Unsupported("another version")
                    key = f"{name}/{section['name'][0].decode()}/{test['name'][0].decode()}"
                    taken[key] = case_of(test)
                except Unsupported:
                    skipped += 1
    note = "Cases of github.com/google/cel-spec, tests/simple/testdata (Apache License 2.0), translated by conformance.py"
    OUTPUT.write_text(json.dumps({"note": note, "cases": taken}, indent=0, ensure_ascii=False) + "\n")
    print(f"{len(taken)} taken, {skipped} left out")


if __name__ == "__main__":
    main()
