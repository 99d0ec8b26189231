"""Semantic versions (Kubernetes' library/semverlib.go, since 1.33; parsing as github.com/blang/semver does)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from apiserver.cel import types
from apiserver.cel.declarations import Overload, overload
from apiserver.cel.errors import EvaluationError
from apiserver.cel.runtime_types import register
from apiserver.machinery import go_json

SINCE = 33
_NUMERIC = re.compile("[0-9]+").fullmatch
_IDENTIFIER = re.compile("[0-9A-Za-z-]+").fullmatch
_NUMBER_MAX = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Semver:
    """A version. What comes after `+` has no part in comparisons."""

    numbers: tuple[int, int, int]
    pre: tuple[int | str, ...]

    def key(self) -> tuple[object, ...]:
        """Orders versions: a pre-release is before its release, numbers are before words."""
        return (self.numbers, not self.pre, [(0, part, "") if isinstance(part, int) else (1, 0, part) for part in self.pre])


register(Semver, types.SEMVER)


def parse(text: str) -> Semver:
    """A version of three numbers, or an error in the library's words."""
    if not text:
        raise EvaluationError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise EvaluationError("No Major.Minor.Patch elements found")
    major = _number("major", "Major", parts[0])
    minor = _number("minor", "Minor", parts[1])
    patch, plus, build = parts[2].partition("+")
    patch, dash, pre = patch.partition("-")
    third = _number("patch", "Patch", patch)
    labels = tuple(_pre_release(label) for label in pre.split(".")) if dash else ()
    if plus:
        for label in build.split("."):
            if not label:
                raise EvaluationError("Build meta data is empty")
            if not _IDENTIFIER(label):
                raise EvaluationError(f"Invalid character(s) found in build meta data {go_json.quote(label)}")
    return Semver((major, minor, third), labels)


def _number(lower: str, upper: str, text: str) -> int:
    if text and not _NUMERIC(text):
        raise EvaluationError(f"Invalid character(s) found in {lower} number {go_json.quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise EvaluationError(f"{upper} number must not contain leading zeroes {go_json.quote(text)}")
    return _unsigned(text)


def _unsigned(text: str) -> int:
    try:
        return go_json.parse_uint(text)
    except go_json.GoError as error:
        raise EvaluationError(str(error)) from None


def _pre_release(label: str) -> int | str:
    if not label:
        raise EvaluationError("Prerelease is empty")
    if _NUMERIC(label):
        if len(label) > 1 and label[0] == "0":
            raise EvaluationError(f"Numeric PreRelease version must not contain leading zeroes {go_json.quote(label)}")
        return _unsigned(label)
    if not _IDENTIFIER(label):
        raise EvaluationError(f"Invalid character(s) found in prerelease {go_json.quote(label)}")
    return label


def _normalized(text: str) -> Semver:
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[index] = stripped if stripped[:1].isdigit() and stripped[:1].isascii() else "0" + stripped
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise EvaluationError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return parse(".".join(parts))


def _semver(text: str, normalize: bool = False) -> Semver:
    return _normalized(text) if normalize else parse(text)


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        _semver(text, normalize)
    except EvaluationError:
        return False
    return True


def _compare(left: Semver, right: Semver) -> int:
    first, second = left.key(), right.key()
    return int(first > second) - int(first < second)


def overloads(minor: int) -> list[Overload]:
    """The functions, where the version has them."""
    if minor < SINCE:
        return []
    return [
        overload("string_to_semver semver(string): Semver", _semver),
        overload("string_bool_to_semver semver(string, bool): Semver", _semver),
        overload("is_semver_string isSemver(string): bool", _is_semver),
        overload("is_semver_string_bool isSemver(string, bool): bool", _is_semver),
        overload("semver_is_greater_than Semver.isGreaterThan(Semver): bool", lambda left, right: _compare(left, right) > 0),
        overload("semver_is_less_than Semver.isLessThan(Semver): bool", lambda left, right: _compare(left, right) < 0),
        overload("semver_compare_to Semver.compareTo(Semver): int", _compare),
        overload("semver_major Semver.major(): int", lambda of: of.numbers[0]),
        overload("semver_minor Semver.minor(): int", lambda of: of.numbers[1]),
        overload("semver_patch Semver.patch(): int", lambda of: of.numbers[2]),
    ]
