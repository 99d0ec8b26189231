"""``Attributes`` and ``Authorizer`` (apiserver ``authorization/authorizer``)."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Protocol

from apiserver.authentication.user import UserInfo
from apiserver.authorization.selectors import Requirements


class Decision(enum.Enum):
    ALLOW = "allow"
    DENY = "deny"
    NO_OPINION = "no opinion"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """For a resource request ``verb`` … ``name``; else ``verb`` and ``path``."""

    user: UserInfo
    verb: str
    is_resource_request: bool = True
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    path: str = ""
    #: of a list, a watch or a deletecollection
    field_selector: Requirements = ()
    label_selector: Requirements = ()


class EvaluationError(str):
    """A reason that is a fault: an authorizer could not answer. Where nobody allows, this is no refusal but an error (500)."""


class Authorizer(Protocol):
    def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        """The decision and its reason. Answers from memory: it never waits (roles are watched, not fetched). Raises Unanswered where
        another server has to be asked first (``apiserver.request.unanswered``)."""
