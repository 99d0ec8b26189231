"""Bodies that are refused, and requests that no HTTP library would send."""

from __future__ import annotations

from tests.differential.exchange import Ask
from tests.differential.words import CM, DEPLOY, PODS, config_map, patch

_STALE = {"metadata": {"name": "a", "resourceVersion": "1"}}
BODIES = (
    Ask(name="no body", method="POST", path=CM, headers={"Content-Type": "application/json", "Content-Length": "0"}),
    Ask(name="no json", method="POST", path=CM, body=b"nonsense"),
    Ask(name="half a json", method="POST", path=CM, body=b'{"metadata":'),
    Ask(name="a list", method="POST", path=CM, body=b"[]"),
    Ask(name="null", method="POST", path=CM, body=b"null"),
    Ask(name="a text", method="POST", path=CM, body=b'"text"'),
    Ask(name="an empty object", method="POST", path=CM, body={}),
    Ask(name="another kind", method="POST", path=CM, body={"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}),
    Ask(name="another group", method="POST", path=CM, body={"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}}),
    Ask(name="an unknown kind", method="POST", path=CM, body={"apiVersion": "v1", "kind": "Bogus", "metadata": {"name": "x"}}),
    Ask(name="an unknown version", method="POST", path=CM, body={"apiVersion": "v9", "kind": "ConfigMap", "metadata": {"name": "x"}}),
    Ask(name="a bad apiVersion", method="POST", path=CM, body={"apiVersion": "a/b/c", "kind": "ConfigMap", "metadata": {"name": "x"}}),
    Ask(name="a list of the kind", method="POST", path=CM, body={"apiVersion": "v1", "kind": "ConfigMapList", "items": []}),
    Ask(name="metadata that is a text", method="POST", path=CM, body={"metadata": "x"}),
    Ask(name="data that is a number", method="POST", path=CM, body={"metadata": {"name": "x"}, "data": {"a": 1}}),
    Ask(name="no name", method="POST", path=CM, body={"metadata": {}}),
    Ask(name="a bad name", method="POST", path=CM, body=config_map("A_b")),
    Ask(name="an existing name", method="POST", path=CM, body=config_map("a")),
    Ask(name="another namespace", method="POST", path=CM, body={"metadata": {"name": "x", "namespace": "other"}}),
    Ask(name="an absent namespace", method="POST", path="/api/v1/namespaces/absent/configmaps", body=config_map("x11")),
    Ask(name="a version in a create", method="POST", path=CM, body={"metadata": {"name": "x", "resourceVersion": "12"}}),
    Ask(
        name="a cluster-wide object with a namespace",
        method="POST",
        path="/apis/rbac.authorization.k8s.io/v1/clusterroles",
        body={"metadata": {"name": "x", "namespace": "other"}},
    ),
    Ask(name="a namespaced kind without a namespace", method="POST", path="/api/v1/configmaps", body=config_map("x12")),
    Ask(name="put another name", method="PUT", path=f"{CM}/a", body=config_map("b")),
    Ask(name="put without a name", method="PUT", path=f"{CM}/a", body={"metadata": {}}),
    Ask(name="put another namespace", method="PUT", path=f"{CM}/a", body={"metadata": {"name": "a", "namespace": "other"}}),
    Ask(name="put what is absent", method="PUT", path=f"{CM}/absent", body=config_map("absent")),
    Ask(name="put a stale version", method="PUT", path=f"{CM}/a", body=_STALE),
    Ask(name="put a version that is no number", method="PUT", path=f"{CM}/a", body={"metadata": {"name": "a", "resourceVersion": "x"}}),
    Ask(
        name="put another uid",
        method="PUT",
        path=f"{CM}/a",
        body={"metadata": {"name": "a", "uid": "11111111-1111-1111-1111-111111111111"}},
    ),
    Ask(name="put no body", method="PUT", path=f"{CM}/a", headers={"Content-Type": "application/json", "Content-Length": "0"}),
    Ask(name="put another kind", method="PUT", path=f"{CM}/a", body={"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}),
    Ask(name="put a scale of another kind", method="PUT", path=f"{DEPLOY}/d/scale", body={"apiVersion": "apps/v1", "kind": "Deployment"}),
    Ask(name="put an empty scale", method="PUT", path=f"{DEPLOY}/d/scale", body={}),
    Ask(
        name="put a negative scale",
        method="PUT",
        path=f"{DEPLOY}/d/scale",
        body={"metadata": {"name": "d", "namespace": "answers"}, "spec": {"replicas": -1}},
    ),
    patch("patch what is absent", "merge-patch+json", f"{CM}/absent", {}),
    patch("a merge patch that is no json", "merge-patch+json", f"{CM}/a", b"x"),
    patch("a merge patch that is a list", "merge-patch+json", f"{CM}/a", b"[]"),
    patch("a merge patch of another type", "merge-patch+json", f"{CM}/a", {"data": []}),
    patch("a merge patch of a number", "merge-patch+json", f"{CM}/a", {"data": {"a": 1}}),
    patch("a merge patch of the name", "merge-patch+json", f"{CM}/a", {"metadata": {"name": "z"}}),
    patch("a merge patch of a stale version", "merge-patch+json", f"{CM}/a", {"metadata": {"resourceVersion": "1"}}),
    patch("a json patch that is an object", "json-patch+json", f"{CM}/a", b"{}"),
    patch("a json patch without op", "json-patch+json", f"{CM}/a", [{"path": "/data"}]),
    patch("a json patch of a missing path", "json-patch+json", f"{CM}/a", [{"op": "remove", "path": "/data/nope"}]),
    patch("a json patch test that fails", "json-patch+json", f"{CM}/a", [{"op": "test", "path": "/data/a", "value": "9"}]),
    patch("a strategic patch that is a list", "strategic-merge-patch+json", f"{DEPLOY}/d", b"[]"),
    patch("a strategic patch with an unknown directive", "strategic-merge-patch+json", f"{DEPLOY}/d", {"spec": {"$patch": "bogus"}}),
    patch(
        "a strategic patch without a merge key",
        "strategic-merge-patch+json",
        f"{DEPLOY}/d",
        {"spec": {"template": {"spec": {"containers": [{"image": "x"}]}}}},
    ),
    Ask(name="delete what is absent", method="DELETE", path=f"{CM}/absent"),
    Ask(name="delete with a body that is no json", method="DELETE", path=f"{CM}/a", body=b"x"),
    Ask(name="delete with a list", method="DELETE", path=f"{CM}/a", body=b"[]"),
    Ask(name="delete with another kind", method="DELETE", path=f"{CM}/a", body={"apiVersion": "v1", "kind": "ConfigMap"}),
    Ask(
        name="delete with another uid",
        method="DELETE",
        path=f"{CM}/a",
        body={"preconditions": {"uid": "11111111-1111-1111-1111-111111111111"}},
    ),
    Ask(name="delete with a stale version", method="DELETE", path=f"{CM}/a", body={"preconditions": {"resourceVersion": "1"}}),
    Ask(name="delete with both policies", method="DELETE", path=f"{CM}/a", body={"propagationPolicy": "Orphan", "orphanDependents": True}),
    Ask(name="delete with unknown dry run", method="DELETE", path=f"{CM}/a", body={"dryRun": ["Some"]}),
    Ask(name="delete with negative grace", method="DELETE", path=f"{CM}/a", body={"gracePeriodSeconds": "x"}),
    Ask(name="delete a namespace that is absent", method="DELETE", path="/api/v1/namespaces/absent"),
    Ask(name="delete the default namespace", method="DELETE", path="/api/v1/namespaces/default"),
    Ask(name="a body with a get", method="GET", path=f"{CM}/a", body=b"nonsense"),
    Ask(name="bind to no node", method="POST", path=f"{PODS}/p/binding", body={"metadata": {"name": "p"}, "target": {}}),
    Ask(
        name="evict what is absent",
        method="POST",
        path=f"{PODS}/absent/eviction",
        body={"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": "absent", "namespace": "answers"}},
        quiet=True,
    ),
    Ask(
        name="a review without attributes",
        method="POST",
        path="/apis/authorization.k8s.io/v1/subjectaccessreviews",
        body={"spec": {"user": "u"}},
    ),
    Ask(
        name="a review without a user",
        method="POST",
        path="/apis/authorization.k8s.io/v1/subjectaccessreviews",
        body={"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}},
    ),
    Ask(
        name="a review of two things",
        method="POST",
        path="/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        body={"spec": {"resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"verb": "get", "path": "/"}}},
    ),
    Ask(name="a token review without a token", method="POST", path="/apis/authentication.k8s.io/v1/tokenreviews", body={"spec": {}}),
    Ask(
        name="a local review of elsewhere",
        method="POST",
        path="/apis/authorization.k8s.io/v1/namespaces/answers/localsubjectaccessreviews",
        body={"spec": {"user": "u", "resourceAttributes": {"namespace": "other", "verb": "get", "resource": "pods"}}},
    ),
    Ask(name="a body that is too large", method="POST", path=CM, body={"metadata": {"name": "x"}, "data": {"a": "x" * 3_200_000}}),
    Ask(name="an object that is too large", method="POST", path=CM, body={"metadata": {"name": "x"}, "data": {"a": "x" * 1_100_000}}),
)

_JSON = b"Accept: application/json\r\nConnection: close\r\nContent-Type: application/json\r\n"
_DRY = f"{CM}?dryRun=All"
_BODY = b'{"metadata":{"name":"raw"}}'
WIRE = (
    Ask(
        name="a chunked body",
        method="POST",
        path=_DRY,
        raw=_JSON
        + b"Transfer-Encoding: chunked\r\n\r\n5\r\n"
        + _BODY[:5]
        + b"\r\n"
        + f"{len(_BODY) - 5:x}\r\n".encode()
        + _BODY[5:]
        + b"\r\n0\r\n\r\n",
    ),
    Ask(
        name="expects to go on",
        method="POST",
        path=_DRY,
        raw=_JSON + b"Expect: 100-continue\r\nContent-Length: " + str(len(_BODY)).encode() + b"\r\n\r\n" + _BODY,
    ),
    Ask(
        name="expects something else",
        method="POST",
        path=_DRY,
        raw=_JSON + b"Expect: miracles\r\nContent-Length: " + str(len(_BODY)).encode() + b"\r\n\r\n" + _BODY,
    ),
    Ask(name="a chunk of a wrong size", method="POST", path=_DRY, raw=_JSON + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
    Ask(name="an unknown transfer encoding", method="POST", path=_DRY, raw=_JSON + b"Transfer-Encoding: rot13\r\n\r\n"),
    Ask(name="a length that is no number", method="POST", path=_DRY, raw=_JSON + b"Content-Length: abc\r\n\r\n"),
    Ask(name="a negative length", method="POST", path=_DRY, raw=_JSON + b"Content-Length: -1\r\n\r\n"),
    Ask(name="two lengths", method="POST", path=_DRY, raw=_JSON + b"Content-Length: 27\r\nContent-Length: 28\r\n\r\n" + _BODY),
    Ask(name="a header without a colon", method="GET", path=f"{CM}/a", raw=b"Accept application/json\r\nConnection: close\r\n\r\n"),
    Ask(
        name="a header with a space in its name",
        method="GET",
        path=f"{CM}/a",
        raw=b"Acc ept: application/json\r\nConnection: close\r\n\r\n",
    ),
    Ask(name="no headers", method="GET", path=f"{CM}/a", raw=b"Connection: close\r\n\r\n"),
    Ask(name="a path without a slash", method="GET", path="nope", raw=b"Connection: close\r\n\r\n"),
    Ask(name="an asterisk", method="OPTIONS", path="*", raw=b"Connection: close\r\n\r\n"),
    Ask(name="a whole url", method="GET", path=f"https://example.com{CM}/a", raw=b"Connection: close\r\n\r\n"),
    Ask(name="a long path", method="GET", path=f"{CM}/{'a' * 9000}", raw=b"Connection: close\r\n\r\n"),
    Ask(
        name="a long query",
        method="GET",
        path=f"{CM}?labelSelector={'a' * 9000}",
        raw=b"Accept: application/json\r\nConnection: close\r\n\r\n",
    ),
)
