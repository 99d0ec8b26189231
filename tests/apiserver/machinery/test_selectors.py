"""Label and field selectors: apimachinery ``labels``, ``fields``."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.machinery import fields, labels


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("a=b", "a=b"),
        ("a==b", "a==b"),
        ("a!=b", "a!=b"),
        ("x=,y=z", "x=,y=z"),
        (" a = b , c ", "a=b,c"),
        ("!a", "!a"),
        ("b,a", "a,b"),
        ("x in (foo,,baz),y,z notin ()", "x in (,baz,foo),y,z notin ()"),
        ("x>1,y<3", "x>1,y<3"),
        ("in in (in)", "in in (in)"),
        ("a=in", "a=in"),
        ("x in (a, )", "x in (,a)"),
    ],
)
def test_a_label_selector_parses(text: str, shown: str) -> None:
    assert str(labels.parse(text)) == shown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x in x", "unable to parse requirement: found 'x' expected: '('"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("x=y=z", "found '=', expected: ',' or 'end of string'"),
        ("go===", "unable to parse requirement: found '=', expected: identifier"),
        (",", "found ',', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("x in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("x in (a", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("x in (a,", "unable to parse requirement: found '', expected: ',', or identifier"),
        ("x in (a(", "unable to parse requirement: found '(', expected: ',' or ')'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a>x", "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer"),
    ],
)
def test_a_label_selector_does_not_parse(text: str, message: str) -> None:
    with pytest.raises(labels.SelectorError) as e:
        labels.parse(text)
    assert str(e.value) == message


def test_keys_and_values_of_a_selector_are_checked() -> None:
    with pytest.raises(labels.SelectorError, match=r"^unable to parse requirement: <nil>: Invalid value: \"-bad\": name part must"):
        labels.parse("-bad=x")
    with pytest.raises(labels.SelectorError, match=r"^unable to parse requirement: values\[0\]\[a\]: Invalid value: \"-\": a valid label"):
        labels.parse("a=-")


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ("a=b", [{"a": "b"}, {"a": "b", "c": "d"}], [{}, {"a": "c"}]),
        ("a!=b", [{}, {"a": "c"}], [{"a": "b"}]),
        ("a", [{"a": ""}], [{}]),
        ("!a", [{}], [{"a": ""}]),
        ("a in (x,y)", [{"a": "x"}, {"a": "y"}], [{}, {"a": "z"}]),
        ("a notin (x,y)", [{}, {"a": "z"}], [{"a": "x"}]),
        ("a>3", [{"a": "4"}], [{}, {"a": "3"}, {"a": "x"}]),
        ("a<3", [{"a": "-2"}], [{"a": "3"}]),
        ("a=", [{"a": ""}], [{}, {"a": "x"}]),
        ("a=b,c=d", [{"a": "b", "c": "d"}], [{"a": "b"}]),
    ],
)
def test_matching(text: str, yes: list[dict[str, str]], no: list[dict[str, str]]) -> None:
    selector = labels.parse(text)
    assert [selector.matches(x) for x in yes] == [True] * len(yes)
    assert [selector.matches(x) for x in no] == [False] * len(no)


def test_everything_and_nothing() -> None:
    assert labels.parse("").empty and labels.parse("").matches(None)
    assert labels.from_label_selector(None) == labels.NOTHING and not labels.NOTHING.matches({"a": "b"}) and not labels.NOTHING.empty
    assert labels.from_label_selector({}).empty
    assert labels.parse("a=b,c").exact_value("a") == "b" and labels.parse("a=b,c").exact_value("c") is None


def test_a_label_selector_object() -> None:
    selector = labels.from_label_selector(
        {
            "matchLabels": {"z": "1"},
            "matchExpressions": [{"key": "a", "operator": "In", "values": ["y", "x"]}, {"key": "b", "operator": "Exists"}],
        }
    )
    assert str(selector) == "a in (x,y),b,z=1"
    with pytest.raises(labels.SelectorError, match=r'^"Near" is not a valid label selector operator$'):
        labels.from_label_selector({"matchExpressions": [{"key": "a", "operator": "Near"}]})
    with pytest.raises(labels.SelectorError, match="values set can't be empty"):
        labels.from_label_selector({"matchExpressions": [{"key": "a", "operator": "In"}]})


def test_validation_of_a_label_selector_object() -> None:
    selector: dict[str, Any] = {
        "matchLabels": {"ok": "fine"},
        "matchExpressions": [
            {"key": "a", "operator": "In"},
            {"key": "a", "operator": "Exists", "values": ["x"]},
            {"key": "", "operator": "Near"},
            {"key": "a", "operator": "In", "values": ["-"]},
        ],
    }
    errors = labels.validate_label_selector(selector, "spec.selector")
    assert [e.field for e in errors] == [
        "spec.selector.matchExpressions[0].values",
        "spec.selector.matchExpressions[1].values",
        "spec.selector.matchExpressions[2].operator",
        "spec.selector.matchExpressions[2].key",
        "spec.selector.matchExpressions[2].key",
        "spec.selector.matchExpressions[3].values[0]",
    ]
    assert errors[0].body() == "Required value: must be specified when `operator` is 'In' or 'NotIn'"
    assert errors[2].body() == 'Invalid value: "Near": not a valid selector operator'
    assert len(labels.validate_label_selector(selector, "s", allow_invalid_values=True)) == 5


@given(st.text(alphabet="abin ot!=<>(),\0-1\t", max_size=20))
def test_a_label_selector_parses_or_is_refused_and_its_text_parses_to_the_same(text: str) -> None:
    try:
        selector = labels.parse(text)
    except labels.SelectorError:
        return
    assert labels.parse(str(selector)) == selector


LABEL_SETS = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["", "1", "x"]))


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["=", "!=", "in", "notin", "exists", "!"]), st.sampled_from(["", "1", "x"])),
        max_size=4,
    ),
    LABEL_SETS,
)
def test_matching_agrees_with_its_definition(terms: list[tuple[str, str, str]], found: dict[str, str]) -> None:
    texts, wanted = [], True
    for key, operator, value in terms:
        if operator in ("in", "notin"):
            texts.append(f"{key} {operator} ({value},q)")
            inside = found.get(key) in (value, "q") if key in found else False
            wanted &= inside if operator == "in" else not inside
        elif operator == "exists":
            texts.append(key)
            wanted &= key in found
        elif operator == "!":
            texts.append("!" + key)
            wanted &= key not in found
        else:
            texts.append(key + operator + value)
            same = key in found and found[key] == value
            wanted &= same if operator == "=" else not same
    assert labels.parse(",".join(texts)).matches(found) is bool(wanted)


# --- field selectors ---


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("metadata.name=a", "metadata.name=a"),
        ("metadata.name==a", "metadata.name=a"),
        ("b!=c,a=1", "a=1,b!=c"),
        ("a=", "a="),
        (",a=1,", "a=1"),
        ("=,!=,a=1", "a=1"),
        (r"a=x\,y\=z\\", r"a=x\,y\=z\\"),
    ],
)
def test_a_field_selector_parses(text: str, shown: str) -> None:
    assert str(fields.parse(text)) == shown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("b=1,a", "invalid selector: 'b=1,a'; can't understand 'a'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        (r"a=b\c", r"invalid field selector: invalid escape sequence: \c"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_a_field_selector_does_not_parse(text: str, message: str) -> None:
    with pytest.raises(fields.SelectorError) as e:
        fields.parse(text)
    assert str(e.value) == message


def test_field_selectors_match_missing_fields_as_empty() -> None:
    selector = fields.parse("status.phase!=Running,spec.nodeName=")
    assert selector.matches({"status.phase": "Pending"})
    assert not selector.matches({"status.phase": "Running"})
    assert not selector.matches({"spec.nodeName": "n1"})
    assert fields.parse("metadata.name=a,x!=y").exact_value("metadata.name") == "a"
    assert fields.parse("metadata.name!=a").exact_value("metadata.name") is None


@given(st.text(alphabet="ab.,=!\\", max_size=15))
def test_a_field_selector_parses_or_is_refused_and_its_text_parses_to_the_same(text: str) -> None:
    try:
        selector = fields.parse(text)
    except fields.SelectorError:
        return
    assert sorted(map(str, fields.parse(str(selector)).terms)) == sorted(map(str, selector.terms))


@given(st.text())
def test_escaping_is_undone(text: str) -> None:
    assert fields.unescape(fields.escape(text)) == text
