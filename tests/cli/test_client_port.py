"""The store's client port on the command line: what happens where its address is taken, and how etcdctl is told of it."""

from __future__ import annotations

import argparse
import datetime
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from apiserver.cli import client_port
from apiserver.cli.errors import CommandError
from apiserver.cli.pki import Pki
from apiserver.config import StoreConfig

NOW = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)


def bind(urls: tuple[str, ...], *, given: bool) -> tuple[client_port.ClientListener, ...]:
    flags = argparse.Namespace(listen_client_urls=urls if given else None)
    return client_port.bind_all(flags, StoreConfig(data_dir=Path("unused"), listen_client_urls=urls))


@pytest.fixture
def taken() -> Iterator[str]:
    """The URL of an address that somebody listens on."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield f"https://127.0.0.1:{other.getsockname()[1]}"


def test_an_address_that_was_asked_for_must_be_had(taken: str) -> None:
    with pytest.raises(CommandError, match=f"--listen-client-urls {taken}: the address is in use"):
        bind(("http://127.0.0.1:0", taken), given=True)


def test_where_the_default_is_taken_the_server_goes_on_without(taken: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert bind((taken,), given=False) == ()
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and taken in said and "--listen-client-urls" in said


def test_the_line_for_etcdctl_names_where_and_with_what(tmp_path: Path) -> None:
    listeners = bind(("https://0.0.0.0:0", "http://127.0.0.1:0"), given=True)
    ports = [listener.socket.getsockname()[1] for listener in listeners]
    pki = Pki(tmp_path, NOW)
    lines = client_port.etcdctl_lines(listeners, pki)
    assert f"ETCDCTL_ENDPOINTS=https://127.0.0.1:{ports[0]},http://127.0.0.1:{ports[1]} " in lines
    assert f"ETCDCTL_CACERT={tmp_path}/etcd/ca.crt ETCDCTL_CERT={tmp_path}/etcd/client.crt ETCDCTL_KEY={tmp_path}/etcd/client.key" in lines
    assert "ETCDCTL_KEY" not in client_port.etcdctl_lines(listeners[1:], pki)
    assert client_port.etcdctl_lines((), pki) == ""
    for listener in listeners:
        listener.socket.close()


def test_the_line_for_etcdctl_names_the_authority_that_members_share(tmp_path: Path) -> None:
    listeners = bind(("https://127.0.0.1:0",), given=True)
    line = client_port.etcdctl_lines(listeners, Pki(tmp_path / "own", NOW, tmp_path / "shared"))
    listeners[0].socket.close()
    assert f"ETCDCTL_CACERT={tmp_path}/shared/etcd/ca.crt ETCDCTL_CERT={tmp_path}/own/etcd/client.crt" in line
    assert all(Path(value).exists() for value in re.findall(r"ETCDCTL_(?:CACERT|CERT|KEY)=(\S+)", line))
