"""Authorizers whose answer does not depend on any object."""

from __future__ import annotations

from apiserver.authentication.user import MASTERS
from apiserver.authorization.authorizer import Attributes, Decision


class PrivilegedGroupAuthorizer:
    """Members of ``system:masters`` may do everything, also when roles and bindings are broken or not loaded."""

    def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        if MASTERS in attributes.user.groups:
            return Decision.ALLOW, ""
        return Decision.NO_OPINION, ""


class AlwaysAllow:
    """``--authorization-mode=AlwaysAllow``."""

    def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        return Decision.ALLOW, ""


class AlwaysDeny:
    """``--authorization-mode=AlwaysDeny``: for tests of clients."""

    def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        return Decision.NO_OPINION, "Everything is forbidden."
