"""Random values for schemas: mostly such as fit, with everything that does not here and there."""

from __future__ import annotations

import random
from typing import Any

from tests.custom_objects.schemas import Schema
from tests.custom_objects.texts import Raw

_NUMBERS = """
    0 -0 -0.0 0.0 1 1.0 1e0 1e3 1E+2 1.5 2.5 0.1 0.3 0.5 2.49 -1 7 10 11 100 1.50 3.0000000001 2147483647 2147483648 -2147483648
    -2147483649 9007199254740991 9007199254740993 9007199254740993.0 9223372036854775807 9223372036854775808 -9223372036854775808
    -9223372036854775809 18446744073709551616 1e18 1e19 1e21 1e-7 1e-300 1.7976931348623157e308 3.5e38 3.4028234663852886e38
    123456789012345678901234567890 0.1e1 1.0000000000000001 4.0 4 6 2 3
"""
NUMBERS = [Raw(text) for text in _NUMBERS.split()]
TEXTS = [
    *(
        "",
        "a",
        "b",
        "ab",
        "abc",
        "aé",
        "日本語",
        "😀",
        "e\u0301",
        "a\u0000b",
        "\n",
        "x y",
        "null",
        "true",
        "1",
        "-5%",
        "10%",
        "100m",
        "1Gi",
        "t1",
    ),
    *(
        "tx",
        "late",
        "bad",
        "UPPER",
        "Foo",
        "foo bar",
        "a/b",
        "a.b",
        "a-b",
        "\u2028",
        "\u00a0",
        "x" * 30,
        "<&>",
        '"q"',
        "\\",
        "A1",
        "Ünder",
        "42",
    ),
]
BY_FORMAT: dict[str, list[str]] = {
    "bsonobjectid": ["507f1f77bcf86cd799439011", "507f1f77bcf86cd79943901", "507F1F77BCF86CD799439011", "507f1f77bcf86cd79943901g"],
    "uri": [
        "http://a.b/c",
        "a",
        "/a/b",
        "http://[::1]:80/",
        "http://a b",
        "mailto:x",
        "//x",
        "http://%zz",
        "urn:a:b",
        "http://x:y",
        "",
        "*",
    ],
    "email": ["a@b.c", "a", "A <a@b>", "a@b@c", '"x y"@z', "a@[1.2.3.4]", "é@b.c", "a..b@c", "<a@b>", "a@b (c)", "a@", "x@y.z "],
    "hostname": ["a.bc", "a", "-a", "a-", "a_b.com", "1.2.3.4", "é.com", "a..b", "x" * 64 + ".com", "localhost", "a.b.", "A.COM"],
    "ipv4": ["1.2.3.4", "1.2.3", "01.2.3.4", "1.2.3.256", "::1", "::ffff:1.2.3.4", "1.2.3.4/8", " 1.2.3.4"],
    "ipv6": ["::1", "1.2.3.4", "::ffff:1.2.3.4", "fe80::1%eth0", "1::2::3", "ABCD::", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8:9"],
    "cidr": [
        "10.0.0.0/8",
        "10.0.0.1/8",
        "10.0.0.0/33",
        "::/0",
        "10.0.0.0",
        "010.0.0.0/8",
        "10.0.0.0/08",
        "::ffff:1.2.3.4/100",
        "1.2.3.4/-1",
    ],
    "mac": ["00:00:5e:00:53:01", "00-00-5e-00-53-01", "0000.5e00.5301", "00:00:5e:00:53", "02:00:5e:10:00:00:00:01", "0:0:0:0:0:0"],
    "uuid": ["123e4567-e89b-42d3-a456-426614174000", "123e4567e89b42d3a456426614174000", "123E4567-E89B-12D3-A456-426614174000", "x"],
    "isbn": ["0-306-40615-2", "978-0-306-40615-7", "0306406152", "0306406153", "97803064061570", "080442957X", "080442957x"],
    "creditcard": ["4111 1111 1111 1111", "4111111111111112", "378282246310005", "5555-5555-5555-4444", "30569309025904", "0000"],
    "ssn": ["123-45-6789", "123 45 6789", "123456789", "12-345-6789", "123-45-67890"],
    "hexcolor": ["#fff", "fff", "#FFAA00", "#ffff", "#ggg", "#FFF0", "ffaa0"],
    "rgbcolor": ["rgb(1,2,3)", "rgb( 1 , 2 ,3 )", "rgb(256,0,0)", "rgb(01,2,3)", "RGB(1,2,3)", "rgb(1,2)", "rgba(1,2,3)"],
    "byte": ["YQ==", "YQ", "", "YWI=", "a b=", "YWJj\n", "-_-_", "YWJjZA==", "====", "Y===", "YR=="],
    "password": ["x", ""],
    "date": ["2020-02-29", "2021-02-29", "2020-1-1", "0000-01-01", "2020-13-01", "20200101", "2020-02-29T00:00:00Z", "12020-01-01"],
    "duration": [
        "1h",
        "1.5h",
        "1 day",
        "3 weeks",
        "",
        "5",
        "-1h",
        "1h30m",
        "1µs",
        "1us",
        "0",
        "1 fortnight",
        "1d2h",
        "99999999999h",
        ".5s",
        "+1s",
    ],
    "datetime": [
        *("2020-02-29T01:02:03Z", "2020-02-29T01:02:03", "2020-02-29t01:02:03z", "2020-02-29T24:00:00Z", "2020-02-29T01:02:03.123456789Z"),
        *("2020-02-29T01:02:03+01:00", "2020-02-29 01:02:03Z", "2020-02-29T01:02:60Z", "2021-02-29T01:02:03Z", "2020-02-29T01:02:03+0100"),
        *("2031-01-01T00:00:00Z", "2020-02-29T01:02:03,5Z", "2020-02-29T1:02:03Z", "0000-01-01T00:00:00Z", "2020-02-29T01:02:03.Z"),
    ],
    "k8sshortname": ["a", "a-b", "A", "a.b", "-a", "x" * 63, "x" * 64, "", "1"],
    "k8slongname": ["a", "a.b", "a..b", "A", "a-.b", "x" * 64 + ".y", "x" * 254, ""],
}
for _name in ("uuid3", "uuid4", "uuid5"):
    BY_FORMAT[_name] = [
        *BY_FORMAT["uuid"],
        f"123e4567-e89b-{_name[4]}2d3-a456-426614174000",
        f"123e4567-e89b-{_name[4]}2d3-c456-426614174000",
    ]
for _name in ("isbn10", "isbn13"):
    BY_FORMAT[_name] = BY_FORMAT["isbn"]
MATCHING = [
    "abc",
    "42",
    "123",
    "Ab",
    "ABC",
    "a/b",
    "foo",
    "xfoo foo",
    "ababab",
    "a\nb",
    "x\ny",
    "A",
    "é",
    "É",
    "a.b",
    "ſ",
    "K",
    "٣",
    "a\u0301",
    "aba",
    "\na",
]


class Values:
    """``wrong``: how often something that is not of the schema stands in its place."""

    def __init__(self, source: random.Random, wrong: float) -> None:
        self.source = source
        self.wrong = wrong

    def of(self, schema: Schema, fill: float = 0.3) -> Any:
        """``fill``: how many of the properties are there."""
        source = self.source
        if source.random() < self.wrong:
            return self.wild()
        if source.random() < (0.3 if schema.get("nullable") else self.wrong / 2):
            return None
        if schema.get("enum") and source.random() < 0.8:
            return source.choice(schema["enum"])
        if schema.get("x-kubernetes-int-or-string"):
            return source.choice((self.number(False), self.text(schema)))
        match schema.get("type"):
            case "string":
                return self.text(schema)
            case "integer":
                return self.number(True, schema)
            case "number":
                return self.number(False, schema)
            case "boolean":
                return source.random() < 0.5
            case "array":
                return self._list(schema)
            case "object":
                return self._object(schema, fill)
        return self.wild()

    def wild(self, depth: int = 2) -> Any:
        source = self.source
        kind = source.choice("ntifbol" if depth else "ntifb")
        if kind == "o":
            return {
                source.choice(["a", "b", "x", "kind", "metadata", "apiVersion", "é"]): self.wild(depth - 1)
                for _ in range(source.randint(0, 3))
            }
        if kind == "l":
            return [self.wild(depth - 1) for _ in range(source.randint(0, 3))]
        if kind == "b":
            return source.random() < 0.5
        if kind == "n":
            return None
        return source.choice(TEXTS) if kind == "t" else source.choice(NUMBERS)

    def text(self, schema: Schema) -> str:
        source = self.source
        format_ = (schema.get("format") or "").replace("-", "")
        if format_ in BY_FORMAT and source.random() < 0.93:
            return source.choice(BY_FORMAT[format_])
        if schema.get("pattern") and source.random() < 0.8:
            return source.choice(MATCHING)
        return source.choice(TEXTS[:6]) if source.random() < 0.6 else source.choice(TEXTS)

    def number(self, whole: bool, schema: Schema | None = None) -> Any:
        source = self.source
        if source.random() < 0.6:
            return source.randint(0, 9) if whole or source.random() < 0.5 else source.choice((0.5, 1.5, 2.0, 0.3, 0.7, 7.5))
        return source.choice(NUMBERS)

    def _list(self, schema: Schema) -> list[Any]:
        found = [self.of(schema["items"], 0.8) for _ in range(self.source.choice((0, 1, 1, 2, 2, 3, 4)))]
        if found and self.source.random() < 0.07:
            found.append(self.source.choice(found))
        return found

    def _object(self, schema: Schema, fill: float) -> dict[str, Any]:
        source, found = self.source, {}
        required = schema.get("required") or ()
        for name, sub in (schema.get("properties") or {}).items():
            if source.random() < (0.93 if name in required else fill):
                found[name] = self.of(sub, 0.6)
        additional = schema.get("additionalProperties")
        if isinstance(additional, dict):
            for name in source.sample(["a", "b", "k.c", "d/e", "é", ""], source.randint(0, 3)):
                found[name] = self.of(additional, 0.6)
        if schema.get("x-kubernetes-embedded-resource"):
            found |= self.embedded()
        if schema.get("x-kubernetes-preserve-unknown-fields"):
            for name in source.sample(["a", "x", "extra"], source.randint(0, 2)):
                found.setdefault(name, self.wild())
        if source.random() < self.wrong * 2:
            found[source.choice(["unknown", "extra", "é", "", "a.b", "zz"])] = self.wild()
        names = list(found)
        source.shuffle(names)
        return {name: found[name] for name in names}

    def embedded(self) -> dict[str, Any]:
        source, found = self.source, {}
        if source.random() < 0.9:
            found["apiVersion"] = source.choice(("v1", "v1", "apps/v1", "a/b/c", "", 1, None) if source.random() < 0.4 else ("v1",))
        if source.random() < 0.9:
            found["kind"] = source.choice(("Pod", "Foo", "foo bar", "", 1, None, "Ünd") if source.random() < 0.4 else ("Pod",))
        if source.random() < 0.7:
            found["metadata"] = self.metadata(source.choice(("x1", "y", "Bad_", "", "a/b", "x.y")))
        return found

    def metadata(self, name: str | None, often: float = 0.25) -> Any:
        """With faults as often as values have them."""
        source = self.source
        found: dict[str, Any] = {} if name is None else {"name": name}
        if source.random() < self.wrong / 3:
            return self.wild()
        if source.random() < often:
            found["labels"] = (
                self.wild()
                if self._wrong()
                else {
                    source.choice(("l1", "l2", "x/y", "bad key", "", "x" * 64)) if self._wrong() else source.choice(("l1", "l2")): (
                        source.choice(("bad value!", None, 1, "x" * 64, "é", "-a")) if self._wrong() else source.choice(("x", "y", ""))
                    )
                    for _ in range(source.randint(0, 3))
                }
            )
        if source.random() < often:
            found["annotations"] = (
                self.wild()
                if self._wrong()
                else {
                    source.choice(("A/B", "bad key", "", "UP/per")) if self._wrong() else source.choice(("a1", "a2")): (
                        source.choice((None, 1, "😀")) if self._wrong() else source.choice(("x", "y", ""))
                    )
                    for _ in range(source.randint(0, 3))
                }
            )
        if source.random() < often / 2:
            found["finalizers"] = (
                self.wild()
                if self._wrong()
                else [
                    source.choice(("x", "bad!", "", "a.b", "x/y/z", "kubernetes", "orphan", "foregroundDeletion", None, 1, "A/b"))
                    if self._wrong()
                    else source.choice(("x/f1", "x/f2"))
                    for _ in range(source.randint(0, 2))
                ]
            )
        if source.random() < often / 2:
            found["ownerReferences"] = self.wild() if self._wrong() else [self._owner() for _ in range(source.randint(0, 2))]
        if self._wrong():
            found |= source.choice(
                (
                    {"generateName": source.choice(("g-", "", "Bad_", 1))},
                    {"uid": source.choice(("u", "", 1, "{uid}"))},
                    {"generation": source.choice((7, -1, "x", Raw("1.5"), Raw("1.0"), None))},
                    {"creationTimestamp": source.choice(("2020-01-01T00:00:00Z", "x", None, 1, "2020-01-01", "2020-01-01T00:00:00.5Z"))},
                    {"deletionTimestamp": source.choice(("2020-01-01T00:00:00Z", "x", None))},
                    {"deletionGracePeriodSeconds": source.choice((1, -1, "x", None))},
                    {"selfLink": source.choice(("/a", 1, None))},
                    {"namespace": source.choice(("default", "other", "", 1, None, "Bad_"))},
                    {"managedFields": source.choice(([], [{}], None, 1, [{"manager": "x", "operation": "Update", "apiVersion": "v1"}]))},
                    {"clusterName": "x"},
                    {"Name": "x"},
                    {source.choice(("extra", "é", "NAME", "")): self.wild()},
                    {"resourceVersion": source.choice(("1", "", "x", 1, "0", None, "{rv}"))},
                )
            )
        return found

    def _wrong(self) -> bool:
        return self.source.random() < self.wrong

    def _owner(self) -> Any:
        source = self.source
        owner: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "name": source.choice("op"), "uid": source.choice(("u-1", "u-2"))}
        if source.random() < 0.3:
            owner["controller"] = source.random() < 0.8
        if source.random() < 0.2:
            owner["blockOwnerDeletion"] = source.random() < 0.5
        if source.random() < self.wrong * 2:
            key = source.choice(("apiVersion", "kind", "name", "uid", "controller", "extra"))
            owner[key] = source.choice(("", 1, None, "a/b/c", "Event", "events.k8s.io/v1", True))
        return owner
