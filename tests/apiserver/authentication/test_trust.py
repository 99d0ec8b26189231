"""The ConfigMap that tells extension servers whom to trust: what it says, how servers share it, and that it follows the files."""

from __future__ import annotations

import json
import time
from pathlib import Path

from apiserver.authentication_trust import AuthenticationTrust, merged
from apiserver.config import RequestHeaderConfig
from tests.apiserver.api import config_in, running
from tests.fakes.loopback import Authority

PATH = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
ONE, TWO = Authority("one"), Authority("two")


def text(authority: Authority) -> str:
    return authority.pem.decode()


def test_servers_add_what_they_have_and_take_nothing_away() -> None:
    now = time.time()
    there = {"client-ca-file": text(ONE), "requestheader-allowed-names": '["a"]', "own": "x"}
    own = {"client-ca-file": text(TWO), "requestheader-allowed-names": '["b","a"]', "requestheader-username-headers": '["X"]'}
    both = merged(there, own, now)
    assert both["client-ca-file"] == text(ONE) + text(TWO)
    assert both["requestheader-allowed-names"] == '["a","b"]' and both["own"] == "x"
    assert merged(both, own, now) == both and merged(both, there, now) == both, "nothing is written twice"
    assert merged(both, own, now + 10 * 86_400)["client-ca-file"] == "", "what has expired goes"
    assert merged({"client-ca-file": "garbage"}, own, now)["client-ca-file"] == text(TWO)


async def test_the_configmap_follows_the_files(tmp_path: Path) -> None:
    clients, proxies = tmp_path / "clients.crt", tmp_path / "proxies.crt"
    clients.write_bytes(ONE.pem)
    proxies.write_bytes(TWO.pem)
    header = RequestHeaderConfig(client_ca_file=proxies, allowed_names=("front",), username_headers=("X-Remote-User",))
    config = config_in(tmp_path, client_ca_file=clients, request_header=header)
    async with running(config) as api:
        found = (await api.get(PATH)).json
        assert found["data"] == {
            "client-ca-file": text(ONE),
            "requestheader-client-ca-file": text(TWO),
            "requestheader-allowed-names": json.dumps(["front"]),
            "requestheader-username-headers": json.dumps(["X-Remote-User"]),
            "requestheader-group-headers": "[]",
            "requestheader-extra-headers-prefix": "[]",
        }
        trust = AuthenticationTrust(api.server.registry, config, time.time, ())
        await trust.keep()
        assert (await api.get(PATH)).json["metadata"]["resourceVersion"] == found["metadata"]["resourceVersion"]
        clients.write_bytes(ONE.pem + TWO.pem)
        await trust.keep()
        assert (await api.get(PATH)).json["data"]["client-ca-file"] == text(ONE) + text(TWO)
        await api.delete(PATH)
        await trust.keep()
        assert (await api.get(PATH)).status == 200
