"""The Common Expression Language as Kubernetes uses it: parse, check, compile to closures, run with a bounded cost.

    environment = Environment({"self": ObjectType("Spec", {"min": INT, "max": INT})})
    program = environment.compile("self.min <= self.max", expected=BOOL)     # CompileError tells what is wrong, in cel-go's words
    program.evaluate({"self": {"min": 1, "max": 2}}, Budget())               # True; EvaluationError or CostExceededError otherwise

Values are plain JSON; the declared types say what a text or a number is. The caller gives values of the declared types (what does not
fit ends in `no such overload`). Environments and programs are immutable. Nothing here reads a clock, a file or a socket.
"""

from __future__ import annotations

from apiserver.cel.budget import CALL_LIMIT, REQUEST_LIMIT, Budget
from apiserver.cel.environment import NEWEST_MINOR, Environment
from apiserver.cel.errors import CelError, CompileError, CostExceededError, EvaluationError, Issue, ProgramError
from apiserver.cel.estimate import CostEstimate, SizeEstimate, Sizes, sizes_by_type
from apiserver.cel.library.authorizer import Authorizer, Decision, Question
from apiserver.cel.names import escape, unescape
from apiserver.cel.program import Program
from apiserver.cel.types import (
    ANY,
    AUTHORIZER,
    BOOL,
    BYTES,
    CIDR,
    DECISION,
    DOUBLE,
    DURATION,
    DYN,
    FORMAT,
    INT,
    IP,
    NULL,
    QUANTITY,
    SEMVER,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    URL,
    ObjectType,
    Type,
    list_of,
    map_of,
    optional_of,
)
from apiserver.cel.values import NONE, Duration, OptionalValue, Timestamp, Uint

__all__ = [
    "ANY",
    "AUTHORIZER",
    "BOOL",
    "BYTES",
    "CALL_LIMIT",
    "CIDR",
    "DECISION",
    "DOUBLE",
    "DURATION",
    "DYN",
    "FORMAT",
    "INT",
    "IP",
    "NEWEST_MINOR",
    "NONE",
    "NULL",
    "QUANTITY",
    "REQUEST_LIMIT",
    "SEMVER",
    "STRING",
    "TIMESTAMP",
    "TYPE",
    "UINT",
    "URL",
    "Authorizer",
    "Budget",
    "CelError",
    "CompileError",
    "CostEstimate",
    "CostExceededError",
    "Decision",
    "Duration",
    "Environment",
    "EvaluationError",
    "Issue",
    "ObjectType",
    "OptionalValue",
    "Program",
    "ProgramError",
    "Question",
    "SizeEstimate",
    "Sizes",
    "Timestamp",
    "Type",
    "Uint",
    "escape",
    "list_of",
    "map_of",
    "optional_of",
    "sizes_by_type",
    "unescape",
]  # fmt: skip
