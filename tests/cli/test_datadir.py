"""What a data directory tells of the server that has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from apiserver.cli.datadir import DataDir, DataDirError, endpoints_in


def test_whoever_finds_it_in_use_learns_where_its_client_port_is(tmp_path: Path) -> None:
    assert endpoints_in(tmp_path) == ()
    held = DataDir(tmp_path)
    assert endpoints_in(tmp_path) == ()
    urls = ("https://127.0.0.1:31190", "http://127.0.0.1:31191")
    held.note_endpoints(urls)
    assert endpoints_in(tmp_path) == urls
    with pytest.raises(DataDirError, match=r"in use by process \d+;"):
        DataDir(tmp_path)
    held.close()
    again = DataDir(tmp_path)
    assert endpoints_in(tmp_path) == ()
    again.close()
