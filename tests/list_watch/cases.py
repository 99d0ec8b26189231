"""Lists and watches in every combination of what decides about their state ("Resource versions" of the API concepts)."""

from __future__ import annotations

import base64
import itertools
import json
from dataclasses import dataclass, field
from typing import Any

#: ``{r1}`` … are the revisions of the writes of ``outcomes.World``, ``{r6}`` its last; ``{token}`` goes on behind the first object.
OLD, NEWEST, FUTURE, COMPACTED = "{r2}", "{r6}", "999999999", "1"


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    query: dict[str, str] = field(default_factory=dict)
    accept: str = "application/json"
    method: str = "GET"
    #: behind the collection; ``watch:`` in front: on the deprecated paths
    path: str = ""


def token(revision: int, start: str, version: str = "meta.k8s.io/v1") -> str:
    text = json.dumps({"v": version, "rv": revision, "start": start})
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _named(query: dict[str, str | None], **more: Any) -> Case:
    given = {key: value for key, value in query.items() if value is not None}
    name = "&".join(f"{key}={value}" for key, value in given.items())
    return Case(f"{more.pop('prefix', '')}{name}", given, **more)


def lists() -> list[Case]:
    cases = [
        _named({"resourceVersion": version, "resourceVersionMatch": match, "limit": limit, "continue": go_on})
        for version, match, limit, go_on in itertools.product(
            (None, "", "0", OLD, NEWEST, COMPACTED, "abc", "-1"),
            (None, "", "Exact", "NotOlderThan", "Odd"),
            (None, "1"),
            (None, "{token}"),
        )
    ]
    cases += [
        _named({"resourceVersion": version, "limit": limit, "labelSelector": labels, "fieldSelector": names})
        for version, limit, labels, names in itertools.product(
            (None, "0", OLD),
            (None, "1"),
            (None, "tier=web", "tier=none"),
            (None, "metadata.name=b", "metadata.name!=b", "metadata.namespace=x"),
        )
    ]
    cases += [
        _named({"resourceVersion": FUTURE, "resourceVersionMatch": match, "limit": limit})
        for match, limit in ((None, None), (None, "1"), ("Exact", None), ("NotOlderThan", "1"))
    ]
    cases += [_named({"limit": "1", "continue": "{token}", "labelSelector": labels}) for labels in ("tier=web", "tier!=web", "!tier")]
    cases += [_named({"limit": limit}) for limit in ("0", "-1", "x", "2", "3", "4", "99999999999999999999", "")]
    cases += [
        Case(f"token {name}", {"limit": "1", "continue": text})
        for name, text in {
            "garbage": "garbage",
            "bad padding": "a===",
            "no json": "bm8",
            "an empty object": "e30",
            "null": "bnVsbA",
            "a list": "W10",
            "without a revision": token(0, "a\0"),
            "without a start": token(5, ""),
            "of another version": token(5, "a\0", "meta.k8s.io/v2"),
            "that climbs": token(5, "../x"),
            "with an empty part": token(5, "a//b"),
            "compacted": token(1, "a\0"),
            "inconsistent": token(-1, "a\0"),
            "very negative": token(-7, "a\0"),
            "at a key, not behind it": token(-1, "b"),
            "from the root": token(-1, "/b"),
            "of the root alone": token(-1, "/"),
            "behind all": token(-1, "zz\0"),
            "of the future": token(999999999, "a\0"),
            "of another namespace": token(-1, "default/a\0"),
        }.items()
    ]
    cases += [
        _named({key: value})
        for key, value in (
            ("labelSelector", "tier in (web, db)"),
            ("labelSelector", "tier notin (web)"),
            ("labelSelector", "tier"),
            ("labelSelector", "!tier"),
            ("labelSelector", "tier=web,tier=db"),
            ("labelSelector", "a in x"),
            ("labelSelector", "a=b=c"),
            ("labelSelector", ","),
            ("labelSelector", "tier>1"),
            ("labelSelector", "tier>x"),
            ("labelSelector", "-bad=x"),
            ("labelSelector", "tier="),
            ("labelSelector", "tier=="),
            ("labelSelector", "tier in ()"),
            ("labelSelector", " tier = web "),
            ("labelSelector", "tier in (web"),
            ("fieldSelector", "metadata.name"),
            ("fieldSelector", "metadata.name==b"),
            ("fieldSelector", "metadata.name=b,metadata.name=a"),
            ("fieldSelector", "metadata.name=b,metadata.name!=b"),
            ("fieldSelector", "="),
            ("fieldSelector", ","),
            ("fieldSelector", "metadata.name=b\\"),
            ("fieldSelector", "metadata.name=a=b"),
            ("fieldSelector", "metadata.name in (a)"),
            ("timeoutSeconds", "x"),
            ("timeoutSeconds", "5"),
            ("sendInitialEvents", "true"),
            ("sendInitialEvents", "false"),
            ("allowWatchBookmarks", "true"),
            ("watch", "false"),
            ("watch", "0"),
            ("unknown", "1"),
        )
    ]
    cases += [
        Case("errors in order: limit, then selector, then match", {"limit": "x", "labelSelector": "a in x", "resourceVersionMatch": "Odd"}),
        Case("errors in order: selector, then match", {"labelSelector": "a in x", "resourceVersionMatch": "Odd"}),
        Case("errors in order: match, then field", {"fieldSelector": "spec.no=x", "resourceVersionMatch": "Odd"}),
        Case("errors in order: field, then token", {"fieldSelector": "metadata.no=x", "continue": "garbage"}),
        Case("errors in order: token, then version", {"resourceVersion": "abc", "continue": "garbage"}),
    ]
    return cases


def gets() -> list[Case]:
    return [
        Case(f"get {name} resourceVersion={version}", {} if version is None else {"resourceVersion": version}, path=f"/{name}")
        for name, version in itertools.product(("b", "none"), (None, "0", OLD, NEWEST, FUTURE))
    ]


TABLE = "application/json;as=Table;v={v};g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


def forms() -> list[Case]:
    cases = []
    for include, version in itertools.product((None, "", "None", "Metadata", "Object", "Odd"), ("v1", "v1beta1")):
        query = {} if include is None else {"includeObject": include}
        accept = TABLE.format(v=version)
        cases.append(Case(f"table {version} includeObject={include}", query, accept))
        cases.append(Case(f"table of a page {version} includeObject={include}", {**query, "limit": "1"}, accept))
        cases.append(Case(f"table of one {version} includeObject={include}", query, accept, path="/b"))
        watch = {**query, "watch": "1", "timeoutSeconds": "1"}
        cases.append(Case(f"watch table {version} includeObject={include}", watch, accept))
        streaming = {**watch, "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
        cases.append(Case(f"streaming table {version} includeObject={include}", streaming, accept))
        cases.append(Case(f"streaming empty table {version} includeObject={include}", {**streaming, "labelSelector": "no=no"}, accept))
    cases.append(Case("metadata list", {}, METADATA_LIST))
    cases.append(Case("metadata list of a page", {"limit": "1"}, METADATA_LIST))
    cases.append(Case("metadata on a list", {}, METADATA))
    cases.append(Case("metadata list on one", {}, METADATA_LIST, path="/b"))
    cases.append(Case("metadata of one", {}, METADATA, path="/b"))
    streaming = {
        "watch": "1",
        "timeoutSeconds": "1",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
    }
    cases.append(Case("streaming metadata", streaming, METADATA))
    cases.append(Case("streaming metadata list", streaming, METADATA_LIST))
    cases.append(Case("watch metadata", {"watch": "1", "timeoutSeconds": "1", "resourceVersion": OLD}, METADATA))
    cases.append(Case("watch table from a version", {"watch": "1", "timeoutSeconds": "1", "resourceVersion": OLD}, TABLE.format(v="v1")))
    return cases


def watches() -> list[Case]:
    cases = [
        _named(
            {
                "watch": "1",
                "timeoutSeconds": "1",
                "resourceVersion": version,
                "sendInitialEvents": initial,
                "resourceVersionMatch": match,
                "allowWatchBookmarks": bookmarks,
            }
        )
        for version, initial, match, bookmarks in itertools.product(
            (None, "", "0", OLD, NEWEST, COMPACTED),
            (None, "true", "false"),
            (None, "NotOlderThan", "Exact"),
            (None, "true"),
        )
    ]
    end = {"watch": "1", "timeoutSeconds": "1"}
    streaming = {**end, "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    long = {"watch": "1", "timeoutSeconds": "5"}
    cases += [_named({**long, **streaming, "timeoutSeconds": "5", "resourceVersion": FUTURE, "allowWatchBookmarks": "true"})]
    cases += [_named({**end, "resourceVersion": FUTURE}), _named({**end, "resourceVersion": FUTURE, "allowWatchBookmarks": "true"})]
    cases += [
        _named({**end, "resourceVersion": version, "labelSelector": labels, "fieldSelector": names})
        for version, labels, names in itertools.product(
            (None, OLD), (None, "tier=web", "tier!=web"), (None, "metadata.name=b", "metadata.name!=b", "metadata.name=none")
        )
    ]
    cases += [_named({**streaming, "allowWatchBookmarks": "true", "labelSelector": labels}) for labels in ("tier=web", "tier=none")]
    cases += [_named({**end, "limit": "1"}), _named({**end, "limit": "x"}), _named({**end, "continue": "{token}"})]
    cases += [_named({**end, "continue": "{token}", "resourceVersion": OLD}), _named({**streaming, "continue": "{token}"})]
    cases += [
        _named({"watch": "1", "timeoutSeconds": "-1"}),
        _named({"watch": "1", "timeoutSeconds": "x"}),
        _named({"watch": "true", "timeoutSeconds": "1"}),
    ]
    cases += [
        _named({**end, "fieldSelector": "spec.no=1"}),
        _named({**end, "labelSelector": "a in b"}),
        _named({**end, "sendInitialEvents": "0"}),
    ]
    seconds = {"timeoutSeconds": "1"}
    for path in ("watch:", "watch:/b", "watch:/none"):
        cases += [
            _named({**seconds, **more}, path=path, prefix=f"{path} ")
            for more in (
                {},
                {"resourceVersion": "0"},
                {"resourceVersion": OLD},
                {"watch": "1"},
                {"allowWatchBookmarks": "true"},
                {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"},
                {"resourceVersionMatch": "Exact", "resourceVersion": OLD},
                {"fieldSelector": "metadata.name=b"},
                {"fieldSelector": "metadata.name=a"},
                {"fieldSelector": "metadata.name!=a"},
                {"labelSelector": "tier=web"},
            )
        ]
    cases.append(Case("watch parameter on one object", {"watch": "1", "timeoutSeconds": "1"}, path="/b"))
    return cases


def deletions() -> list[Case]:
    """In this order, each from a world of its own."""
    return [
        Case(f"delete {name}", query, method="DELETE")
        for name, query in {
            "all": {},
            "a page": {"limit": "1"},
            "by label": {"labelSelector": "tier=web"},
            "by field": {"fieldSelector": "metadata.name=b"},
            "by both": {"labelSelector": "tier=web", "fieldSelector": "metadata.name!=a"},
            "none": {"labelSelector": "tier=none"},
            "behind a token": {"limit": "1", "continue": "{token}"},
            "with a bad token": {"continue": "garbage"},
            "with a bad selector": {"labelSelector": "a in b"},
            "with a bad field": {"fieldSelector": "metadata.no=1"},
            "with a match": {"resourceVersionMatch": "Exact"},
            "with a bad version": {"resourceVersion": "abc"},
            "at an old version": {"resourceVersion": OLD, "resourceVersionMatch": "Exact"},
            "as a list that is streamed": {"sendInitialEvents": "true"},
            "without doing it": {"dryRun": "All"},
        }.items()
    ]
