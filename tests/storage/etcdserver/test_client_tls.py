"""The client port over TLS: whom it lets in, and certificates that are replaced under it."""

from __future__ import annotations

import asyncio
import datetime
import os
import ssl
from pathlib import Path

import grpc
import grpc.aio
import pytest

from apiserver.cli.pki import Pki
from storage.etcdpb import etcdserverpb as pb
from storage.etcdserver import client_tls
from storage.tls import TlsFiles
from tests.storage.etcdserver.door_fixture import Client, running_door

NOW = datetime.datetime.now(datetime.UTC)


def authority(directory: Path) -> Pki:
    directory.mkdir(parents=True, exist_ok=True)
    return Pki(directory, NOW)


def server_files(pki: Pki) -> TlsFiles:
    pair = pki.etcd_server("m1", [])
    return TlsFiles(certificate=pair.certificate, key=pair.key, trusted_ca=pki.etcd_ca().certificate)


def credentials(pki: Pki, *, trusts: Pki, with_certificate: bool = True) -> grpc.ChannelCredentials:
    client = pki.etcd_client()
    return grpc.ssl_channel_credentials(
        trusts.etcd_ca().certificate.read_bytes(),
        client.key.read_bytes() if with_certificate else None,
        client.certificate.read_bytes() if with_certificate else None,
    )


async def can_read(target: str, how: grpc.ChannelCredentials) -> bool:
    async with grpc.aio.secure_channel(target, how, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        try:
            await Client(channel).unary("/etcdserverpb.KV/Range")(pb.RangeRequest(key=b"k"))
        except grpc.aio.AioRpcError as error:
            assert error.code() == grpc.StatusCode.UNAVAILABLE
            return False
        return True


def replace(files: TlsFiles, by: TlsFiles) -> None:
    """Each at once, as tools that renew certificates do it."""
    for target, source in ((files.certificate, by.certificate), (files.key, by.key), (files.trusted_ca, by.trusted_ca)):
        temporary = target.with_suffix(".new")
        temporary.write_bytes(source.read_bytes())
        os.replace(temporary, target)


@pytest.mark.parametrize("client_cert_auth", [True, False])
async def test_only_clients_of_the_authority_are_let_in(tmp_path: Path, client_cert_auth: bool) -> None:
    ours, others = authority(tmp_path / "ours"), authority(tmp_path / "others")
    context = client_tls.server_context(server_files(ours), client_cert_auth=client_cert_auth)
    async with running_door(tmp_path / "data", context=context) as door:
        assert await can_read(door.target, credentials(ours, trusts=ours))
        assert await can_read(door.target, credentials(others, trusts=ours)) is not client_cert_auth
        assert await can_read(door.target, credentials(ours, trusts=ours, with_certificate=False)) is not client_cert_auth


async def test_a_certificate_of_a_user_of_the_api_is_not_one_of_a_client_of_the_store(tmp_path: Path) -> None:
    """Else every kubelet could read all secrets."""
    pki = authority(tmp_path / "pki")
    from apiserver.cli.pki import Subject

    context = client_tls.server_context(server_files(pki), client_cert_auth=True)
    admin = pki.client("admin", Subject("kubernetes-admin", ("system:masters",)))
    how = grpc.ssl_channel_credentials(pki.etcd_ca().certificate.read_bytes(), admin.key.read_bytes(), admin.certificate.read_bytes())
    async with running_door(tmp_path / "data", context=context) as door:
        assert not await can_read(door.target, how)


async def test_replaced_files_hold_for_new_connections(tmp_path: Path) -> None:
    old, new = authority(tmp_path / "old"), authority(tmp_path / "new")
    files = server_files(old)
    context = client_tls.server_context(files, client_cert_auth=True)
    async with running_door(tmp_path / "data", context=context) as door:
        assert await can_read(door.target, credentials(old, trusts=old))
        assert not await can_read(door.target, credentials(new, trusts=new))
        replace(files, server_files(new))
        assert await can_read(door.target, credentials(new, trusts=new))
        old_client = grpc.ssl_channel_credentials(
            new.etcd_ca().certificate.read_bytes(), old.etcd_client().key.read_bytes(), old.etcd_client().certificate.read_bytes()
        )
        assert not await can_read(door.target, old_client)


async def test_expired_certificates_let_nobody_in_until_they_are_replaced(tmp_path: Path) -> None:
    expired = Pki(tmp_path / "expired", NOW - datetime.timedelta(days=400))
    renewed = Pki(tmp_path / "renewed", NOW, tmp_path / "expired")  # of the same authority
    files = server_files(expired)
    context = client_tls.server_context(files, client_cert_auth=True)
    async with running_door(tmp_path / "data", context=context) as door:
        assert not await can_read(door.target, credentials(renewed, trusts=renewed))
        replace(files, server_files(renewed))
        assert await can_read(door.target, credentials(renewed, trusts=renewed))
        assert not await can_read(door.target, credentials(expired, trusts=renewed)), "a client whose certificate has expired"


@pytest.mark.parametrize(("offered", "chosen"), [(["h2", "http/1.1"], "h2"), (["http/1.1"], "http/1.1"), ([], None)])
async def test_pages_by_what_the_client_offers(tmp_path: Path, offered: list[str], chosen: str | None) -> None:
    pki = authority(tmp_path / "pki")
    client = ssl.create_default_context(cafile=str(pki.etcd_ca().certificate))
    client.load_cert_chain(pki.etcd_client().certificate, pki.etcd_client().key)
    if offered:
        client.set_alpn_protocols(offered)
    context = client_tls.server_context(server_files(pki), client_cert_auth=True)
    async with running_door(tmp_path / "data", context=context) as door:
        reader, writer = await asyncio.open_connection("127.0.0.1", door.port, ssl=client, server_hostname="localhost")
        assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == chosen
        if chosen != "h2":
            writer.write(b"GET /health HTTP/1.1\r\n\r\n")
            assert (await reader.read()).startswith(b"HTTP/1.1 200")
        writer.close()
