"""A flood of requests from a process of its own: many clients that ask again as soon as they are answered.

``python -m tests.robustness.flood PORT TOKEN PATH CLIENTS SECONDS`` prints how many answers had each status, as JSON.
"""

from __future__ import annotations

import asyncio
import collections
import json
import ssl
import sys


async def _client(port: int, request: bytes, context: ssl.SSLContext, statuses: collections.Counter[str]) -> None:
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        except OSError:
            await asyncio.sleep(0.2)
            continue
        try:
            while True:
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                statuses[head.split(b" ", 2)[1].decode()] += 1
                length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
                await reader.readexactly(int(length.split(b":")[1]))
        except (OSError, asyncio.IncompleteReadError):
            statuses["cut"] += 1
        finally:
            writer.close()


async def flood(port: int, token: str, path: str, clients: int, seconds: float) -> dict[str, int]:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    request = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    statuses: collections.Counter[str] = collections.Counter()
    tasks = [asyncio.create_task(_client(port, request, context, statuses)) for _ in range(clients)]
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    return dict(statuses)


if __name__ == "__main__":
    port, token, path, clients, seconds = sys.argv[1:6]
    print(json.dumps(asyncio.run(flood(int(port), token, path, int(clients), float(seconds)))))
