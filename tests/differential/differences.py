"""Where this server answers otherwise than kube-apiserver 1.20 on purpose: the requests by the reason why. The answers are in
``accepted.json``; ``python -m tests.differential accept`` writes them anew, for these requests alone."""

from __future__ import annotations

CHANGED_SINCE = "Kubernetes words or does it otherwise now"
CLIENTS_FAULT = "upstream calls it its own fault (500), or has a bare text; what the client did wrong is told as a 4xx Status here"
MEDIA_TYPES = "the router in front says nothing but the code; here the types are told, as the code behind it would"
HTTP = "a matter of the HTTP library, told as a Status here"

DIFFERENCES: dict[str, tuple[str, ...]] = {
    CHANGED_SINCE: (
        "a match in a watch",
        "a bad key in a label selector",
        "a bad value in a label selector",
        "a long query",
        "timeout that is none",
        "timeout without a unit",
        "unknown dry run",
        "empty dry run",
        "dry run true",
        "unknown dry run of a patch",
        "unknown dry run of a delete",
        "delete with unknown dry run",
        "many, with unknown dry run",
        "a manager that is too long",
        "an unknown kind",
        "an unknown version",
        "metadata that is a text",
        "data that is a number",
        "put another namespace",
        "a merge patch that is no json",
        "a merge patch that is a list",
        "a merge patch of another type",
        "a merge patch of a number",
        "a json patch that is an object",
        "a review without attributes",
        "a review of two things",
        "an object that is too large",
        "a watch of a version that is no number",
        "logs without a log directory",
    ),
    CLIENTS_FAULT: (
        "a group without a user",
        "extra without a user",
        "a version that is no number",
        "a negative version",
        "an object at a version that is no number",
        "put a version that is no number",
        "delete with a body that is no json",
        "delete with a list",
        "delete with another kind",
        "delete with negative grace",
        "bind to no node",
        "a chunk of a wrong size",
    ),
    MEDIA_TYPES: (
        "csv",
        "csv of a list",
        "csv of an absent object",
        "anything of application",
        "anything of text",
        "broken Accept",
        "patch with json",
        "patch with csv",
        "patch without a content type",
    ),
    HTTP: (
        "expects something else",
        "an unknown transfer encoding",
        "a length that is no number",
        "a negative length",
        "two lengths",
        "a header without a colon",
        "a header with a space in its name",
        "a path without a slash",
        "an asterisk",
    ),
}

ACCEPTED = frozenset(name for names in DIFFERENCES.values() for name in names)
#: answers whose bodies are streams, documents of another version, or YAML in another style: their status and headers are compared
LOOSE = frozenset(
    (
        "version with slash",
        "nobody, version",
        "a table of the version",
        "the watch prefix",
        "a watch flag that is no flag",
        "bookmarks flag that is no flag",
        "yaml",
    )
)
