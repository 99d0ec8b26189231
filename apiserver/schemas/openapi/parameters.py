"""The parameters of requests: name, type and what they do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    name: str
    type: str
    description: str


def _all(*entries: tuple[str, str, str]) -> dict[str, Parameter]:
    return {name: Parameter(name=name, type=type_, description=description) for name, type_, description in entries}


#: of the query string
QUERY = _all(
    ("allowWatchBookmarks", "boolean", 'Asks a watch to send events of type "BOOKMARK". Ignored where the request is not a watch.'),
    ("command", "string", "The command to execute, one parameter for each argument. Not executed within a shell."),
    ("container", "string", "The container of the pod. Defaults to its only one."),
    (
        "continue",
        "string",
        "The token that the previous page of the same list came with; the other parameters must be as they were. A token that is too old "
        "is answered by 410 with another one that continues from the newest state.",
    ),
    ("dryRun", "string", "Says that the change is not to be stored. The one valid value is All: every stage but storing is processed."),
    (
        "fieldManager",
        "string",
        "The name of the actor that makes the change, at most 128 printable characters. Required for apply requests.",
    ),
    ("fieldSelector", "string", "Restricts the objects to those with these fields. Defaults to everything."),
    (
        "fieldValidation",
        "string",
        "What becomes of unknown and duplicate fields. Ignore: they are dropped silently. Warn: they are dropped and named in warnings "
        "(the default). Strict: the request is refused.",
    ),
    ("follow", "boolean", "Follow the log stream of the pod. Defaults to false."),
    ("force", "boolean", "Takes over conflicting fields of other managers. For apply requests alone."),
    (
        "gracePeriodSeconds",
        "integer",
        "Seconds before the object is deleted; zero deletes at once. Defaults to what the object or its type says.",
    ),
    ("insecureSkipTLSVerifyBackend", "boolean", "Do not verify the serving certificate of the kubelet that the log comes from."),
    ("labelSelector", "string", "Restricts the objects to those with these labels. Defaults to everything."),
    (
        "limit",
        "integer",
        "At most how many objects are returned; if there are more, the list's metadata has a continue token for the next page.",
    ),
    ("limitBytes", "integer", "At most how many bytes of the log are returned."),
    ("orphanDependents", "boolean", "Deprecated, use propagationPolicy: whether dependent objects are kept."),
    ("path", "string", "The path to use for the proxied request."),
    ("ports", "integer", "The port to forward to; required for WebSockets."),
    ("previous", "boolean", "Return the log of the previous, terminated container. Defaults to false."),
    (
        "propagationPolicy",
        "string",
        "What becomes of dependent objects: Orphan keeps them, Background deletes them later, Foreground deletes them first.",
    ),
    (
        "resourceVersion",
        "string",
        "Which version of the data the request may be served from. See "
        "https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions for details. Defaults to unset.",
    ),
    (
        "resourceVersionMatch",
        "string",
        "How resourceVersion is applied to a list: Exact or NotOlderThan. See "
        "https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions for details. Defaults to unset.",
    ),
    (
        "sendInitialEvents",
        "boolean",
        "Asks a watch to begin with the objects that exist, followed by a bookmark that says so. Requires resourceVersionMatch.",
    ),
    ("sinceSeconds", "integer", "Return the log of the last so many seconds."),
    ("stderr", "boolean", "Redirect the standard error stream of the container. Defaults to true."),
    ("stdin", "boolean", "Redirect the standard input stream of the container. Defaults to false."),
    ("stdout", "boolean", "Redirect the standard output stream of the container. Defaults to true."),
    ("tailLines", "integer", "Return so many lines from the end of the log."),
    ("timeoutSeconds", "integer", "Limits the duration of the list or watch, whatever happens in it."),
    ("timestamps", "boolean", "Begin every line of the log with an RFC 3339 timestamp. Defaults to false."),
    ("tty", "boolean", "Allocate a terminal for the call. Defaults to false."),
    ("watch", "boolean", "Watch for changes to the objects and return them as a stream of events. Specify resourceVersion."),
)
PRETTY = Parameter(name="pretty", type="string", description="If 'true', then the output is pretty printed.")
_PATH = {
    "namespace": "object name and auth scope, such as for teams and projects",
    "path": "path to the resource",
}


def path_parameters(path: str, kind: str) -> list[Parameter]:
    """Of a path with names in braces; ``kind`` is what ``name`` names."""
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    return [Parameter(name=name, type="string", description=_PATH.get(name, f"name of the {kind}")) for name in sorted(names)]
