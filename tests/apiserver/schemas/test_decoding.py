"""Decoding as Kubernetes' strict decoder does it. The texts are those of a real server."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.apiextensions import internal_form
from apiserver.machinery import quantity
from apiserver.schemas import decoding, json_bodies, json_syntax
from apiserver.schemas.decoding import Decoded, DecodeError
from apiserver.schemas.json_bodies import DEPTH_MAX
from apiserver.schemas.schema_set import SchemaSet

SCHEMAS = SchemaSet.load("1.37")
POD = ("", "v1", "Pod")
DEPLOYMENT = ("apps", "v1", "Deployment")
SECRET = ("", "v1", "Secret")


def decode(kind: tuple[str, str, str], source: Any) -> Decoded:
    return decoding.decode(SCHEMAS.type_of(*kind), source, SCHEMAS.validator_of(*kind))


def refusal(kind: tuple[str, str, str], source: Any) -> str:
    with pytest.raises(DecodeError) as caught:
        decode(kind, source)
    return str(caught.value)


def into(word: str, field: str, go_type: str) -> str:
    return f"json: cannot unmarshal {word} into Go struct field {field} of type {go_type}"


QUANTITY_ERROR = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def container(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c", **fields}]}}


def test_a_good_object_comes_back_as_it_is() -> None:
    pod = {"metadata": {"name": "a"}, **container(image="nginx", resources={"limits": {"cpu": "100m"}})}
    assert decode(POD, pod).obj is pod
    assert decode(POD, orjson.dumps(pod)) == Decoded(obj=pod)


def test_unknown_fields_are_dropped_and_named() -> None:
    source = {
        "spec": {"nodename": "a", "containers": [{"name": "a"}, {"name": "c", "imag": 1}]},
        "metadata": {"labels": {"a": "b"}, "x": {}},
        "top": 1,
    }
    decoded = decode(POD, source)
    assert decoded.obj == {"spec": {"containers": [{"name": "a"}, {"name": "c"}]}, "metadata": {"labels": {"a": "b"}}}
    assert decoded.strict_errors == (
        'unknown field "spec.nodename"',
        'unknown field "spec.containers[1].imag"',
        'unknown field "metadata.x"',
        'unknown field "top"',
    )
    assert source["top"] == 1


def test_duplicate_fields_are_named_and_the_last_counts() -> None:
    body = b'{"metadata":{"labels":{"l":"1","l":"2"}},"spec":{"nodeName":"a","nodeName":"b","x":1},"kind":"Pod","kind":"Pod"}'
    decoded = decode(POD, body)
    assert decoded.strict_errors == (
        'duplicate field "metadata.labels.l"',
        'duplicate field "spec.nodeName"',
        'unknown field "spec.x"',
        'duplicate field "kind"',
    )
    assert decoded.obj == {"metadata": {"labels": {"l": "2"}}, "spec": {"nodeName": "b"}, "kind": "Pod"}
    assert type(decoded.obj["metadata"]["labels"]) is dict


def test_duplicate_objects_are_merged() -> None:
    decoded = decode(POD, b'{"spec":{"nodeName":"a"},"spec":{"hostname":"b"}}')
    assert decoded.obj == {"spec": {"nodeName": "a", "hostname": "b"}}
    assert decoded.strict_errors == ('duplicate field "spec"',)


@pytest.mark.parametrize(
    "body", [b'{"metadata":{"name":"a","n\\u0061me":"b"}}', b'{"metadata":{"annotations":{"a":"\\u0022","b":"x","b":"y"}}}']
)
def test_duplicates_hidden_by_escapes_are_found(body: bytes) -> None:
    assert len(decode(POD, body).strict_errors) == 1


def test_duplicates_of_a_patch_are_found_wherever_they_are() -> None:
    parsed = json_bodies.parse(b'[{"op":"a","op":"b","value":{"x":[{"y":1,"y":{"z":1,"z":2}}]}},{"op":1}]')
    assert json_bodies.duplicate_fields(parsed.value) == ["[0].op", "[0].value.x[0].y", "[0].value.x[0].y.z"]
    assert json_bodies.duplicate_fields(json_bodies.parse(b'{"spec":{"a":1,"a":2,"a":3}}').value) == ["spec.a"]
    assert type(json_bodies.plain(parsed.value)[0]) is dict


def test_strict_errors_are_bounded_and_not_repeated() -> None:
    many = {"spec": {f"x{i}": 1 for i in range(1000)}}
    assert len(decode(POD, many).strict_errors) == decoding.STRICT_ERRORS_MAX


@pytest.mark.parametrize(
    ("kind", "source", "text"),
    [
        (DEPLOYMENT, {"spec": {"replicas": "3"}}, into("string", "DeploymentSpec.spec.replicas", "int32")),
        (POD, container(image=5), into("number", "Container.spec.containers.image", "string")),
        (POD, {"metadata": {"labels": {"a": 1}}}, into("number", "ObjectMeta.metadata.labels", "string")),
        (POD, {"spec": {"containers": {}}}, into("object", "PodSpec.spec.containers", "[]v1.Container")),
        (POD, {"spec": []}, into("array", "Pod.spec", "v1.PodSpec")),
        (POD, {"spec": {"hostNetwork": "yes"}}, into("string", "PodSpec.spec.hostNetwork", "bool")),
        (POD, container(command=[True]), into("bool", "Container.spec.containers.command", "string")),
        (
            POD,
            container(ports=[{"containerPort": 2**31}]),
            into("number 2147483648", "ContainerPort.spec.containers.ports.containerPort", "int32"),
        ),
        (SECRET, {"data": {"a": 1}}, into("number", "Secret.data", "[]uint8")),
        (SECRET, {"data": {"a": "!!!!"}}, "illegal base64 data at input byte 0"),
        (
            POD,
            {"metadata": {"creationTimestamp": "now"}},
            'parsing time "now" as "2006-01-02T15:04:05Z07:00": cannot parse "now" as "2006"',
        ),
        (POD, container(resources={"limits": {"cpu": "lots"}}), QUANTITY_ERROR),
        (
            POD,
            container(ports=[{"containerPort": 1, "protocol": 6}]),
            into("number", "ContainerPort.spec.containers.ports.protocol", "v1.Protocol"),
        ),
        (POD, container(livenessProbe={"httpGet": {"port": True}}), "json: cannot unmarshal bool into Go value of type int32"),
        (
            POD,
            container(resources={"limits": "x"}),
            into("string", "ResourceRequirements.spec.containers.resources.limits", "v1.ResourceList"),
        ),
        (
            ("", "v1", "PersistentVolumeClaim"),
            {"spec": {"accessModes": [1]}},
            into("number", "PersistentVolumeClaimSpec.spec.accessModes", "v1.PersistentVolumeAccessMode"),
        ),
        (POD, b"[]", "json: cannot unmarshal array into Go value of type v1.Pod"),
        (
            POD,
            b'{"spec":{"terminationGracePeriodSeconds":1.50}}',
            into("number 1.50", "PodSpec.spec.terminationGracePeriodSeconds", "int64"),
        ),
    ],
)
def test_wrong_types_are_refused_in_the_words_of_kubernetes(kind: tuple[str, str, str], source: Any, text: str) -> None:
    assert refusal(kind, source) == text


def test_the_first_wrong_value_is_the_one_named() -> None:
    assert "spec.nodeName" in refusal(POD, {"spec": {"nodeName": 1, "hostname": 2}})


@pytest.mark.parametrize("number", [b"9223372036854775807", b"-9223372036854775808"])
def test_64_bit_integers_survive(number: bytes) -> None:
    body = b'{"spec":{"activeDeadlineSeconds":%s}}' % number
    assert orjson.dumps(decode(POD, body).obj) == body


@pytest.mark.parametrize("number", ["9223372036854775808", "1e3", "1.0", "123456789012345678901234567890"])
def test_numbers_that_are_no_64_bit_integers_are_refused_as_they_were_written(number: str) -> None:
    body = b'{"spec":{"activeDeadlineSeconds":%s}}' % number.encode()
    assert refusal(POD, body).startswith(f"json: cannot unmarshal number {number} into Go struct field PodSpec.spec.activeDeadlineSeconds")


def test_nulls_go_away() -> None:
    source = {
        "metadata": {"creationTimestamp": None, "labels": None},
        "spec": {"nodeName": None, "containers": [None, {"name": "c", "args": ["a", None]}]},
    }
    assert decode(POD, source).obj == {"metadata": {}, "spec": {"containers": [{"name": ""}, {"name": "c", "args": ["a", ""]}]}}
    assert decode(SECRET, {"stringData": {"a": None}}).obj == {"stringData": {"a": ""}}


def test_a_null_in_a_list_or_map_of_structs_is_an_empty_struct() -> None:
    """Decoded once: with what Go always writes of it."""
    assert decode(POD, {"spec": {"containers": [None]}}) == decode(POD, {"spec": {"containers": [{}]}})
    assert decode(POD, {"spec": {"containers": [None]}}).obj == {"spec": {"containers": [{"name": ""}]}}


def test_zeros_that_go_cannot_tell_from_absent_are_left_out() -> None:
    spec = {"hostNetwork": False, "nodeName": "", "enableServiceLinks": False, "terminationGracePeriodSeconds": 0}
    source = {"spec": {**spec, "containers": [{"name": "", "tty": False, "env": [{"name": "a", "value": ""}]}]}}
    assert decode(POD, source).obj == {
        "spec": {"enableServiceLinks": False, "terminationGracePeriodSeconds": 0, "containers": [{"name": "", "env": [{"name": "a"}]}]}
    }
    assert decode(DEPLOYMENT, {"spec": {"paused": False, "replicas": 0}}).obj["spec"] == {
        "replicas": 0,
        "template": {"metadata": {}, "spec": {}},
    }


def test_what_go_always_writes_gets_the_zero_of_its_type() -> None:
    pod = {"spec": {"containers": [{"ports": [{}], "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "a"}]}}}]}}
    assert decode(POD, pod).obj == {
        "spec": {
            "containers": [
                {
                    "name": "",
                    "ports": [{"containerPort": 0}],
                    "livenessProbe": {"httpGet": {"port": 0, "httpHeaders": [{"name": "a", "value": ""}]}},
                }
            ]
        }
    }
    assert "selector" not in decode(DEPLOYMENT, {"spec": {}}).obj["spec"], "a pointer"
    assert decode(POD, b'{"spec":{"nodeName":"a","nodeName":""}}').obj == {"spec": {}}


def test_empty_optional_lists_and_maps_are_left_out_and_empty_structs_stay() -> None:
    source = {
        "metadata": {"labels": {}, "finalizers": []},
        "spec": {"containers": [], "volumes": [{"name": "v", "emptyDir": {}}], "securityContext": {}, "nodeSelector": {}},
    }
    expected = {"metadata": {}, "spec": {"containers": [], "volumes": [{"name": "v", "emptyDir": {}}], "securityContext": {}}}
    assert decode(POD, source).obj == expected


@pytest.mark.parametrize(
    ("written", "stored"), [("1000m", "1"), ("0.5", "500m"), ("1024Mi", "1Gi"), (2, "2"), (0.1, "100m"), ("1500m", "1500m"), (None, "0")]
)
def test_quantities_become_canonical(written: Any, stored: str) -> None:
    decoded = decode(POD, container(resources={"requests": {"cpu": written}}))
    assert decoded.obj["spec"]["containers"][0]["resources"]["requests"] == {"cpu": stored}


def test_times_become_utc_and_whole_seconds() -> None:
    assert (
        decode(POD, {"metadata": {"creationTimestamp": "2024-02-29T12:00:00.75+02:00"}}).obj["metadata"]["creationTimestamp"]
        == "2024-02-29T10:00:00Z"
    )
    lease = decode(("coordination.k8s.io", "v1", "Lease"), {"spec": {"renewTime": "2024-01-31T12:00:00.000001+02:00"}})
    assert lease.obj["spec"]["renewTime"] == "2024-01-31T10:00:00.000001Z"


@pytest.mark.parametrize(("written", "stored"), [("aGk=", "aGk="), ("aG\nk=", "aGk="), ("aGl=", "aGk="), ("", "")])
def test_base64_becomes_canonical(written: str, stored: str) -> None:
    assert decode(SECRET, {"data": {"k": written}}).obj == {"data": {"k": stored}}


@pytest.mark.parametrize(("written", "position"), [("a", 0), ("aGk", 0), ("aGk=x", 4), ("a$k=", 1), ("aG k", 2), ("é", 0)])
def test_bad_base64_is_refused_with_its_place(written: str, position: int) -> None:
    assert refusal(SECRET, {"data": {"k": written}}) == f"illegal base64 data at input byte {position}"


def test_free_values_are_kept_whole() -> None:
    data: Any = {"apiVersion": "x/v1", "a": None, "b": [], "c": {"d": 1.5}}
    decoded = decode(("apps", "v1", "ControllerRevision"), {"data": data, "revision": 1, "x": 0})
    assert decoded.obj == {"data": data, "revision": 1}


def test_schemas_in_unions_lose_unknown_fields_silently() -> None:
    def definition(schema: Any) -> Any:
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        return {"spec": {"group": "x.y", "scope": "Cluster", "names": {"plural": "as", "kind": "A"}, "versions": [version]}}

    kind = ("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    decoded = decode(kind, definition({"type": "array", "items": {"type": "string", "odd": 1}, "strange": 1, "additionalProperties": True}))
    assert decoded.obj == definition({"type": "array", "items": {"type": "string"}, "additionalProperties": True})
    assert decoded.strict_errors == ('unknown field "spec.versions[0].schema.openAPIV3Schema.strange"',)


def a_definition(**schema: Any) -> Any:
    return {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"properties": {"a": schema}}}}]}}


DEFINITION = ("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


@pytest.mark.parametrize(
    ("field", "said", "text"),
    [
        ("additionalProperties", "yes", "boolean or JSON schema expected"),
        ("additionalItems", [], "boolean or JSON schema expected"),
        ("items", ["x"], "json: cannot unmarshal string into Go value of type v1.JSONSchemaProps"),
        ("items", {"type": 1}, "json: cannot unmarshal number into Go struct field JSONSchemaProps.type of type string"),
        ("dependencies", {"a": [1]}, "json: cannot unmarshal number into Go value of type string"),
    ],
)
def test_what_is_neither_a_schema_nor_the_other_of_a_union_is_refused(field: str, said: Any, text: str) -> None:
    assert refusal(DEFINITION, a_definition(**{field: said})).endswith(text)


@pytest.mark.parametrize("said", ["x", 1, True, 1.5])
def test_items_that_are_no_schema_are_said_but_not_stored(said: Any) -> None:
    decoded, without = (decode(DEFINITION, a_definition(type="array", **more)).obj for more in ({"items": said}, {}))
    assert decoded["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["a"]["items"] == ()
    internal_form.drop_empty(decoded)
    assert decoded == without


def test_a_dependency_that_is_nothing_is_left_out_of_no_map() -> None:
    decoded = decode(DEFINITION, a_definition(dependencies={"a": "x", "b": ["c"]})).obj
    assert decoded["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["a"]["dependencies"] == {"a": None, "b": ["c"]}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "unexpected end of JSON input"),
        (b'{"a":', "unexpected end of JSON input"),
        (b"not json", "invalid character 'o' in literal null (expecting 'u')"),
        (b"{bad}", "invalid character 'b' looking for beginning of object key string"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
        (b"[1 2]", "invalid character '2' after array element"),
        (b'{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        (b"[1,]", "invalid character ']' looking for beginning of value"),
        (b"{} x", "invalid character 'x' after top-level value"),
        (b'{"a":"\n"}', "invalid character '\\n' in string literal"),
        (b'{"a":"\\x"}', "invalid character 'x' in string escape code"),
        (b'{"a":"\\u00g0"}', "invalid character 'g' in \\u hexadecimal character escape"),
        (b'{"a":-}', "invalid character '}' in numeric literal"),
        (b'{"a":01}', "invalid character '1' after object key:value pair"),
        (b'{"a":1.}', "invalid character '}' after decimal point in numeric literal"),
        (b'{"a":1e}', "invalid character '}' in exponent of numeric literal"),
        (b"'a'", "invalid character '\\'' looking for beginning of value"),
        (b"NaN", "invalid character 'N' looking for beginning of value"),
        (b"\xff", "invalid character '\xff' looking for beginning of value"),
    ],
)
def test_what_is_not_json_is_said_as_go_says_it(body: bytes, text: str) -> None:
    assert refusal(POD, body) == text


def test_what_is_not_utf8_is_replaced_as_go_does() -> None:
    assert decode(POD, b'{"metadata":{"annotations":{"a":"x\xffy","b":"\\ud800"}}}').obj["metadata"]["annotations"] == {
        "a": "x\ufffdy",
        "b": "\ufffd",
    }


@pytest.mark.parametrize("depth", [DEPTH_MAX + 1, 5000])
def test_deep_nesting_is_refused(depth: int) -> None:
    assert refusal(POD, b'{"a":' * depth + b"1" + b"}" * depth) == "exceeded max depth"
    assert refusal(POD, b'{"a":' + b"[" * depth + b"]" * depth + b"}") == "exceeded max depth"


def test_depth_up_to_the_limit_is_walked() -> None:
    schema: dict[str, Any] = {"type": "string", "odd": 1}
    for _ in range(DEPTH_MAX // 2 - 10):
        schema = {"properties": {"p": schema}}
    kind = ("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    decoded = decode(kind, {"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}})
    assert len(decoded.strict_errors) == 1


@given(st.from_regex(r"\A[0-9]{1,14}(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi|)\Z"))
def test_quantities_that_pass_unchanged_are_canonical(text: str) -> None:
    source = container(resources={"limits": {"memory": text}})
    if SCHEMAS.validator_of(*POD).accepts(source):
        assert quantity.canonical(text) == text


@pytest.mark.parametrize("text", ["0", "100m", "1500m", "16393242Ki", "32768123", "1001", "64Gi", "3001Mi"])
def test_usual_quantities_pass_unchanged(text: str) -> None:
    assert SCHEMAS.validator_of(*POD).accepts(container(resources={"limits": {"memory": text}}))


@given(st.datetimes(min_value=datetime(1000, 1, 1), max_value=datetime(9999, 12, 31)))
def test_times_pass_unchanged_but_for_leap_days(moment: datetime) -> None:
    text = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    accepted = SCHEMAS.validator_of(*POD).accepts({"metadata": {"creationTimestamp": text}})
    assert accepted == ((moment.month, moment.day) != (2, 29))


@pytest.mark.parametrize("text", ["2023-02-30T00:00:00Z", "2023-04-31T00:00:00Z", "2023-13-01T00:00:00Z", "2023-01-01T24:00:00Z"])
def test_times_that_do_not_exist_do_not_pass(text: str) -> None:
    assert not SCHEMAS.validator_of(*POD).accepts({"metadata": {"creationTimestamp": text}})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(json_values)
def test_good_json_has_no_fault_and_cut_json_has_one(value: Any) -> None:
    body = json.dumps(value).encode()
    assert json_syntax.explain(body) == ""
    if isinstance(value, (dict, list, str)):
        assert json_syntax.explain(body[:-1]) == json_syntax.END


@given(st.binary(max_size=40))
def test_any_bytes_are_decoded_or_refused(body: bytes) -> None:
    try:
        decode(POD, body)
    except DecodeError as e:
        assert str(e)


@given(st.dictionaries(st.sampled_from(["metadata", "spec", "status", "kind", "x"]), json_values, max_size=4), st.data())
def test_decoding_is_idempotent_and_the_validator_only_says_what_the_walk_would(source: dict[str, Any], data: st.DataObject) -> None:
    source = {
        **source,
        "spec": {
            **container()["spec"],
            **data.draw(st.dictionaries(st.sampled_from(sorted(SCHEMAS.type_of(*POD).fields["spec"].fields)), json_values, max_size=3)),
        },
    }
    type_ = SCHEMAS.type_of(*POD)
    before = json.dumps(source)
    try:
        walked = decoding.decode(type_, source)
    except DecodeError:
        assert not SCHEMAS.validator_of(*POD).accepts(source)
        return
    assert json.dumps(source) == before
    if SCHEMAS.validator_of(*POD).accepts(source):
        assert walked == Decoded(obj=source)
    assert decoding.decode(type_, walked.obj) == Decoded(obj=walked.obj)
