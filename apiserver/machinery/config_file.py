"""Configuration files of the API server (apiserver.config.k8s.io): YAML or JSON, read strictly.

A ``Section`` is an object of the file. Whoever reads asks it for fields by name and type; what is asked for and has another type, and what
nobody asked for, is a problem with its path, told all at once. Fields of one section that are read under a condition only must still be
asked for in any case.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

#: of one file; the largest configurations have some dozen KiB
FILE_BYTES_MAX = 4 * 1024 * 1024


class ConfigFileError(ValueError):
    """The file cannot be used. ``problems``: a line each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


class Section:
    def __init__(self, values: dict[str, Any], path: str, problems: list[str], children: list[Section]) -> None:
        self._values = values
        self._path = path
        self._problems = problems
        self._asked: set[str] = set()
        self._children = children
        children.append(self)

    def path(self, field: str = "") -> str:
        return ".".join(part for part in (self._path, field) if part)

    def problems(self) -> list[str]:
        """Of this section and all below it: once everything was read."""
        unasked = ((each, name) for each in self._children for name in map(str, each._values) if name not in each._asked)
        unknown = [f'unknown field "{each.path(name)}"' for each, name in unasked]
        return [*self._problems, *unknown]

    def has(self, field: str) -> bool:
        return self._values.get(field) is not None

    def text(self, field: str) -> str:
        """ "" where there is none."""
        return self.optional_text(field) or ""

    def optional_text(self, field: str) -> str | None:
        value: str | None = self._typed(field, str, "a text")
        return value

    def flag(self, field: str, default: bool = False) -> bool:
        value = self._typed(field, bool, "true or false")
        return default if value is None else value

    def number(self, field: str) -> int | None:
        value: int | None = self._typed(field, int, "a whole number")
        return value

    def fields(self) -> list[str]:
        """What is there, by name."""
        return list(self._values)

    def texts(self, field: str) -> tuple[str, ...]:
        value = self._typed(field, list, "a list") or []
        for position, item in enumerate(value):
            if not isinstance(item, str):
                self._problems.append(f"{self.path(field)}[{position}]: must be a text")
        return tuple(item for item in value if isinstance(item, str))

    def section(self, field: str) -> Section | None:
        value = self._typed(field, dict, "an object")
        return None if value is None else self._child(value, self.path(field))

    def required_section(self, field: str) -> Section:
        """An empty one where there is none: what it should have is missed then."""
        return self.section(field) or self._child({}, self.path(field))

    def sections(self, field: str) -> list[Section]:
        value = self._typed(field, list, "a list") or []
        found: list[Section] = []
        for position, item in enumerate(value):
            at = f"{self.path(field)}[{position}]"
            if isinstance(item, dict):
                found.append(self._child(item, at))
            else:
                self._problems.append(f"{at}: must be an object")
        return found

    def _child(self, values: dict[str, Any], path: str) -> Section:
        return Section(values, path, self._problems, self._children)

    def _typed(self, field: str, wanted: type, called: str) -> Any:
        self._asked.add(field)
        value = self._values.get(field)
        if value is None or (isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))):
            return value
        self._problems.append(f"{self.path(field)}: must be {called}")
        return None


def load_yaml(text: str | bytes) -> Any:
    """The first document. Raises ConfigFileError, of one line, for whatever the text does to the reader: bad syntax, impossible dates,
    nesting beyond what the stack bears."""
    import yaml

    if len(text) > FILE_BYTES_MAX:
        raise ConfigFileError([f"the file has more than {FILE_BYTES_MAX} bytes"])
    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except RecursionError as error:
        raise ConfigFileError(["it is nested too deeply"]) from error
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigFileError([" ".join(str(error).split())]) from error


def read_config(text: str, group: str, versions: Sequence[str], kind: str) -> Section:
    """The root of a file of this kind; of no kind, as the files of old are, without a group. Raises ConfigFileError."""
    try:
        document = load_yaml(text)
    except ConfigFileError as error:
        raise ConfigFileError([f"it is no YAML: {error}"]) from error
    if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
        raise ConfigFileError(["it is no object"])
    if not group:
        return Section(document, "", [], [])
    accepted = [f"{group}/{version}" for version in versions]
    if document.get("apiVersion") not in accepted or document.get("kind") != kind:
        raise ConfigFileError([f"it must be of apiVersion {' or '.join(accepted)} and kind {kind}"])
    root = Section(document, "", [], [])
    root.text("apiVersion"), root.text("kind")
    return root
