"""``authorizer`` in expressions: what the user of a request, or a service account, may do (apiserver ``cel/library/authz.go``)."""

from __future__ import annotations

from apiserver.admission.interfaces import AdmissionAttributes
from apiserver.authentication.user import UserInfo, service_account_groups, service_account_name
from apiserver.authorization.authorizer import Attributes, Authorizer, Decision
from apiserver.cel.library import authorizer as questions


class UserQuestions:
    """Of one request. ``authorizer`` and ``request_resource`` are the values of the two variables; what was asked once is kept. Where
    another server has to be asked first, Unanswered goes through the expression."""

    def __init__(self, authorizer: Authorizer, attributes: AdmissionAttributes) -> None:
        self._authorizer = authorizer
        self._user = attributes.user
        self._answers: dict[questions.Question, questions.Decision] = {}
        self.authorizer = questions.Authorizer(self._answer)
        info = attributes.info
        asked = questions.Question(
            "",
            group=info.group,
            resource=info.resource,
            subresource=attributes.subresource,
            namespace=attributes.namespace,
            name=attributes.name,
        )
        self.request_resource = self.authorizer.resource_check(asked)

    def _answer(self, question: questions.Question) -> questions.Decision:
        known = self._answers.get(question)
        if known is None:
            decision, reason = self._authorizer.authorize(self._attributes(question))
            known = self._answers[question] = questions.Decision(decision is Decision.ALLOW, reason)
        return known

    def _attributes(self, question: questions.Question) -> Attributes:
        user = self._user if question.service_account is None else _account(*question.service_account)
        if question.path is not None:
            return Attributes(user=user, verb=question.verb, is_resource_request=False, path=question.path)
        return Attributes(
            user=user,
            verb=question.verb,
            group=question.group,
            version="*",
            namespace=question.namespace,
            resource=question.resource,
            subresource=question.subresource,
            name=question.name,
        )


def _account(namespace: str, name: str) -> UserInfo:
    return UserInfo(name=service_account_name(namespace, name), groups=service_account_groups(namespace))
