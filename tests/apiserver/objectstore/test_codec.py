"""The two byte forms of an object."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.objectstore import codec

_TEXT = st.text(max_size=8)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=12,
)
_OBJECTS = st.builds(
    lambda api_version, kind, metadata, rest: {
        **rest,
        "kind": kind,
        "metadata": {"name": "n", **metadata},
        "apiVersion": api_version,
    },
    _TEXT,
    _TEXT,
    st.dictionaries(_TEXT, _JSON, max_size=3),
    st.dictionaries(_TEXT, _JSON, max_size=3),
)


@given(_OBJECTS, st.integers(1, 2**63 - 1), st.integers(1, 2**63 - 1))
def test_a_version_is_spliced_in_and_replaced(obj: dict[str, Any], first: int, second: int) -> None:
    obj["metadata"].pop("resourceVersion", None)
    raw = codec.served(codec.encode(obj), first)
    assert orjson.loads(raw) == {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(first)}}
    again = codec.served_again(raw, second)
    assert orjson.loads(again) == {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(second)}}
    assert raw.startswith(codec.type_prefix(obj["apiVersion"], obj["kind"]))


def test_the_stored_form_has_no_version_and_its_argument_stays() -> None:
    obj = {"kind": "K", "metadata": {"name": "n", "resourceVersion": "7"}, "spec": 1, "apiVersion": "v1"}
    assert codec.encode(obj) == b'{"apiVersion":"v1","kind":"K","metadata":{"name":"n"},"spec":1}'
    assert obj["metadata"] == {"name": "n", "resourceVersion": "7"}


@given(st.dictionaries(st.text(), st.text(), max_size=4), st.dictionaries(_TEXT, _JSON, max_size=4))
def test_labels_and_metadata_are_those_of_the_whole_object(labels: dict[str, str], spec: dict[str, Any]) -> None:
    metadata = {"name": "a", "labels": labels}
    obj = {"apiVersion": "v1", "kind": "Thing", "metadata": metadata, "spec": spec, "metadata2": {"labels": {"x": "y"}}}
    raw = codec.served(codec.encode(obj), 7)
    assert codec.labels_of(raw) == labels
    assert orjson.loads(codec.metadata_of(raw)) == {**metadata, "resourceVersion": "7"}


@pytest.mark.parametrize(
    ("labels", "seen"), [(b'{"a":1,"b":"c"}', {"b": "c"}), (b"[]", None), (b"null", None), (b'{"a":null}', {}), (b'"x"', None)]
)
def test_labels_that_are_none_break_nothing(labels: bytes, seen: dict[str, str] | None) -> None:
    """Somebody wrote them past the API; the changes of all objects come through here."""
    assert codec.labels_of(b'{"apiVersion":"v1","kind":"Thing","metadata":{"name":"a","labels":%b}}' % labels) == seen
