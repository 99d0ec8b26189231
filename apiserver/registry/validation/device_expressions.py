"""Whether the expression that selects devices compiles (kubernetes ``pkg/apis/resource/validation`` and its ``cel``)."""

from __future__ import annotations

import functools

from apiserver import cel
from apiserver.machinery.field_errors import invalid
from apiserver.registry.validation.common import Errors


@functools.cache
def _environment() -> cel.Environment:
    by_domain = {
        "attributes": cel.map_of(cel.STRING, cel.map_of(cel.STRING, cel.ANY)),
        "capacity": cel.map_of(cel.STRING, cel.map_of(cel.STRING, cel.QUANTITY)),
    }
    device = cel.ObjectType("kubernetes.DRADevice", {"driver": cel.STRING, "allowMultipleAllocations": cel.BOOL, **by_domain})
    return cel.Environment({"device": device}, bindings=True)


def check(out: Errors, path: str, source: str) -> None:
    try:
        found = _environment().compile(source).result_type
    except cel.ProgramError as error:
        out.append(invalid(path, source, f"program instantiation failed: {error}"))
    except cel.CompileError as error:
        out.append(invalid(path, source, f"compilation failed: {error}"))
    else:
        if found not in (cel.BOOL, cel.ANY):
            out.append(invalid(path, source, f"must evaluate to bool or the unknown type, not {found}"))
