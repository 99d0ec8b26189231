"""Record what a real API server answers: ``python -m tests.list_watch URL TOKEN FILE [--builtin]``.

The server has to serve custom resources (apiextensions-apiserver of the version in the file's name); ``--builtin``: config maps are asked
for instead. Revision 1 has to be compacted, as it is some minutes after a server's start.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import ssl
from pathlib import Path
from typing import Any

import aiohttp

from tests.list_watch import outcomes
from tests.list_watch.outcomes import Ask, Server

SECONDS_MAX = 60
#: kube-apiserver holds the first creations of a new resource back for two seconds.
ESTABLISHED_SECONDS = 3

DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.differential.example.com"},
    "spec": {
        "group": "differential.example.com",
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "kind": "Gadget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
GROUP = "/apis/differential.example.com/v1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def over(session: aiohttp.ClientSession, url: str) -> Ask:
    async def ask(method: str, path: str, query: dict[str, str], accept: str, body: Any) -> tuple[int, list[Any]]:
        async with session.request(method, url + path, params=query, headers={"accept": accept}, json=body) as answer:
            return answer.status, outcomes.parsed(await answer.read())

    return ask


async def record(url: str, token: str, builtin: bool) -> dict[str, Any]:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    headers = {"authorization": f"Bearer {token}"}
    timeout = aiohttp.ClientTimeout(total=SECONDS_MAX)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context, limit=0), headers=headers, timeout=timeout) as session:
        ask = over(session, url)
        if builtin:
            return await outcomes.everything(Server(ask, "/api/v1", "configmaps", "ConfigMap", "kube-public"))
        server = Server(ask, GROUP, "gadgets", "Gadget")
        await ask("POST", DEFINITIONS, {}, "application/json", DEFINITION)
        await outcomes.until_served(server)
        await asyncio.sleep(ESTABLISHED_SECONDS)
        try:
            return await outcomes.everything(server)
        finally:
            await ask("DELETE", f"{DEFINITIONS}/{DEFINITION['metadata']['name']}", {}, "application/json", None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("token")
    parser.add_argument("file", type=Path)
    parser.add_argument("--builtin", action="store_true")
    flags = parser.parse_args()
    found = asyncio.run(record(flags.url, flags.token, flags.builtin))
    flags.file.write_text(json.dumps(found, indent=0, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
