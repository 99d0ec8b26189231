"""What becomes of an error that nobody foresaw: logged with its trace, answered with a 500 Status that tells nothing of the inside."""

from __future__ import annotations

import logging

from apiserver.machinery import status
from apiserver.request.request_context import RequestContext

logger = logging.getLogger(__name__)


def recover(context: RequestContext, error: BaseException) -> status.StatusError:
    """The answer for a request that raised ``error``."""
    logger.error(
        "request failed: audit_id=%s method=%s path=%s",
        context.audit_id,
        context.method,
        context.info.path,
        exc_info=error,
    )
    message = "This request caused apiserver to panic. Look in the logs for details."
    return status.StatusError(status.failure(500, "InternalError", message, {"causes": [{"message": f"audit-id: {context.audit_id}"}]}))
