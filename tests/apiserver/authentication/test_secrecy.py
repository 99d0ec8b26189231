"""Credentials that are marked are sent by every way there is; none of them comes out in a log, an audit event, a metric or an answer."""

from __future__ import annotations

import base64
import json
import logging
import time
from pathlib import Path

import jwt
import pytest

from apiserver.authentication import service_account
from apiserver.authentication.websocket import PREFIX
from apiserver.config import AuditConfig, WebhookConfig
from apiserver.metrics import Exposition
from tests.apiserver.api import Answer, config_in, running
from tests.fakes.loopback import LoopbackServer, Reply, Seen, reply

MARK = "marked5ecret"
PODS = "/api/v1/namespaces/default/pods"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
EVERYTHING = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "RequestResponse"}]}


@pytest.mark.parametrize("broken", [False, True], ids=["a webhook that answers", "a webhook that repeats what it was sent"])
async def test_what_is_secret_stays_so(tmp_path: Path, caplog: pytest.LogCaptureFixture, broken: bool) -> None:
    caplog.set_level(logging.DEBUG)

    def answered(seen: Seen) -> Reply:
        if broken:
            return Reply(status=500, body=seen.body)
        return reply({"kind": "TokenReview", "status": {"authenticated": False}})

    hook = LoopbackServer(tmp_path / "hook", answered)
    config_file = hook.kubeconfig(tmp_path / "hook.kubeconfig", {"token": f"{MARK}-of-the-server"})
    webhook = WebhookConfig(config_file=config_file, version="v1", authorized_ttl_seconds=60, unauthorized_ttl_seconds=60)
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps(EVERYTHING))
    audit = AuditConfig(log_path=tmp_path / "audit.log", policy_file=policy)
    answers: list[Answer] = []
    secrets: list[str] = [MARK]
    try:
        async with running(config_in(tmp_path, authentication_token_webhook=webhook, audit=audit)) as api:
            config = api.server.config
            key = service_account.load_private_key(config.service_account_signing_key_file.read_bytes())
            algorithm = service_account.algorithm_of(key)
            base = {"iss": config.service_account_issuer[0], "aud": [config.service_account_issuer[0]], "sub": MARK, "exp": 1}
            forged = [
                jwt.encode(base, key, algorithm=algorithm),
                jwt.encode({**base, "exp": time.time() + 99, "kubernetes.io": {"namespace": "x"}}, key, algorithm=algorithm),
                jwt.encode({**base, "iss": service_account.LEGACY_ISSUER}, key, algorithm=algorithm),
                jwt.encode(base, MARK * 4, algorithm="HS256"),
            ]
            tokens = [f"{MARK}-token", f"{MARK[:6]}.{MARK}0000", *forged]
            secrets += [token.split(".")[-1] for token in tokens] + forged
            for token in tokens:
                answers.append(await api.get(PODS, token=token))
                answers.append(await api.post(REVIEWS, {"spec": {"token": token}}))
                protocol = PREFIX + base64.urlsafe_b64encode(token.encode()).rstrip(b"=").decode()
                upgrade = {"connection": "upgrade", "upgrade": "websocket", "sec-websocket-protocol": f"v4, {protocol}"}
                answers.append(await api.get(PODS, token="", headers=upgrade))
                secrets.append(protocol)
            basic = base64.b64encode(f"admin:{MARK}".encode()).decode()
            secrets.append(basic)
            for scheme in (f"Basic {basic}", f"Bearer  {MARK}", f"Digest {MARK}", MARK):
                answers.append(await api.get(PODS, token="", headers={"authorization": scheme, "cookie": f"session={MARK}"}))
            account = await api.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "robot"}})
            assert account.status == 201
            issued = await api.post("/api/v1/namespaces/default/serviceaccounts/robot/token", {"spec": {}})
            secrets.append(issued.json["status"]["token"])
            out = Exposition()
            api.server.access.metrics.expose(out)
    finally:
        hook.close()
    told = {"log": caplog.text, "metrics": out.text()}
    # what is reviewed stands in the answer of a review, as it does on any Kubernetes, and nowhere else
    told["answers"] = "".join(answer.body.decode() for answer in answers if b'"TokenReview"' not in answer.body)
    told["audit"] = (tmp_path / "audit.log").read_text()
    assert told["audit"].count("\n") > len(answers), "all of it was noted"
    for where, text in told.items():
        for secret in secrets:
            assert len(secret) >= len(MARK) and secret not in text, (where, secret[:12], text[max(0, text.find(secret) - 200) :][:300])
