"""The end of the controllers' process: it comes in bounded time, whatever the work does."""

from __future__ import annotations

import signal
import subprocess
import sys

HANGS = """
import asyncio, sys, time
from controllers import main
main.END_SECONDS_MAX = 0.2

async def work():
    try:
        print("up", flush=True)
        await asyncio.sleep(3600)
    finally:
        {ending}

sys.exit(main._run(work(), ends_with_stdin=False))
"""


def ended(ending: str) -> tuple[int, str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HANGS.format(ending=ending)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=30)
    return process.returncode, told


def test_work_that_ends_when_told_ends_with_0() -> None:
    assert ended("await asyncio.sleep(0)") == (0, "")


def test_work_that_hangs_or_blocks_shows_where_and_is_ended() -> None:
    for ending in ("await asyncio.sleep(3600)", "time.sleep(3600)"):
        status, told = ended(ending)
        assert status == 1 and "Timeout" in told and "_run" in told, told
