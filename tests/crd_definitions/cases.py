"""All cases, and those that are recorded for the tests of every change."""

from __future__ import annotations

import zlib

from tests.crd_definitions.definition_cases import definition_cases
from tests.crd_definitions.exchange import Case
from tests.crd_definitions.schema_cases import keyword_cases, place_cases
from tests.crd_definitions.text_cases import text_cases

#: one case in that many is recorded: a few seconds of them
_KEPT = 9


def all_cases() -> list[Case]:
    found = [*keyword_cases(), *place_cases(), *definition_cases(), *text_cases()]
    assert len({case.name for case in found}) == len(found)
    return found


def recorded_cases() -> list[Case]:
    kept = [case for case in (*keyword_cases(), *place_cases()) if zlib.crc32(case.name.encode()) % _KEPT == 0]
    return [*kept, *definition_cases(), *(case for case in text_cases() if not case.name.endswith("-nested"))]
