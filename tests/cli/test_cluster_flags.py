"""Flags of a member among others: what they come to, and that what cannot work is told in one line."""

from __future__ import annotations

import argparse
import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from apiserver.cli import cluster, cluster_flags, flags, kubeconfig
from apiserver.cli.datadir import DataDir
from apiserver.cli.errors import CommandError, UsageError
from apiserver.cli.pki import Pki, Subject
from apiserver.cli.settings import server_config

THREE = "m1=https://127.0.0.1:21201,m2=https://127.0.0.1:21202,m3=https://127.0.0.1:21203"
NOW = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)


def parse(*arguments: str) -> argparse.Namespace:
    parser = flags.Parser(prog="sampan")
    flags.add_server_flags(parser)
    return parser.parse_args(arguments)


def settings(tmp_path: Path, *arguments: str) -> dict[str, Any]:
    return cluster_flags.store_settings(parse(*arguments), Pki(tmp_path, NOW))


def test_a_member_alone_has_no_peers_and_the_usual_client_port(tmp_path: Path) -> None:
    found = settings(tmp_path)
    assert "listen_peer_urls" not in found
    assert found["listen_client_urls"] == found["advertise_client_urls"] == ("https://127.0.0.1:2379",)
    assert found["client_cert_auth"] is True and found["cert_file"] == tmp_path / "etcd" / "server.crt"


def test_one_of_three_listens_where_the_others_look_for_it(tmp_path: Path) -> None:
    found = settings(tmp_path, "--name", "m2", "--initial-cluster", THREE, "--listen-client-urls", "")
    assert found["listen_peer_urls"] == found["initial_advertise_peer_urls"] == ("https://127.0.0.1:21202",)
    assert list(found["initial_cluster"]) == ["m1", "m2", "m3"]
    assert found["peer_cert_file"] == tmp_path / "etcd" / "peer.crt" and found["peer_trusted_ca_file"] == tmp_path / "etcd" / "ca.crt"
    assert found["listen_client_urls"] == () and "cert_file" not in found


def test_it_may_listen_elsewhere(tmp_path: Path) -> None:
    found = settings(tmp_path, "--name", "m2", "--initial-cluster", THREE, "--listen-peer-urls", "https://0.0.0.0:21202")
    assert found["listen_peer_urls"] == ("https://0.0.0.0:21202",)
    assert found["initial_advertise_peer_urls"] == ("https://127.0.0.1:21202",)


def test_a_member_may_start_alone_and_get_others_later(tmp_path: Path) -> None:
    found = settings(tmp_path, "--listen-peer-urls", "https://127.0.0.1:21204")
    assert found["initial_cluster"] == {"default": ("https://127.0.0.1:21204",)}


def test_a_name_may_have_several_urls() -> None:
    text = "m1=https://10.0.0.1:2380,m1=https://10.1.0.1:2380"
    assert cluster_flags.initial_cluster(text) == {"m1": ("https://10.0.0.1:2380", "https://10.1.0.1:2380")}


def test_plain_peers_are_for_loopback_and_need_no_certificates(tmp_path: Path) -> None:
    found = settings(tmp_path, "--listen-peer-urls", "http://127.0.0.1:21204", "--listen-client-urls", "http://127.0.0.1:21205")
    assert "peer_cert_file" not in found and "cert_file" not in found


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--initial-cluster", THREE), "--initial-cluster names m1, m2, m3, but not this member: --name default"),
        (
            ("--name", "m1", "--initial-cluster", THREE, "--initial-advertise-peer-urls", "https://127.0.0.1:1"),
            "--initial-cluster has m1=https://127.0.0.1:21201, but --initial-advertise-peer-urls is https://127.0.0.1:1: they must be",
        ),
        (
            ("--name", "m1", "--initial-cluster", THREE, "--listen-peer-urls", "https://m1.example:21201"),
            "--listen-peer-urls https://m1.example:21201: expected IP in URL for binding",
        ),
        (("--listen-peer-urls", "http://10.0.0.1:2380"), "http:// is for loopback addresses only"),
        (("--listen-peer-urls", "127.0.0.1:2380"), "URL scheme must be http or https"),
        (("--listen-peer-urls", "https://127.0.0.1"), 'does not have the form "host:port"'),
        (("--listen-client-urls", "http://10.0.0.1:2379"), "--listen-client-urls http://10.0.0.1:2379: http:// is for loopback"),
        (("--name", "m1", "--initial-cluster", "m1=ftp://127.0.0.1:1"), "URL scheme must be http or https: ftp://127.0.0.1:1"),
        (("--initial-cluster-state", "existing"), "--initial-cluster-state existing needs --initial-cluster"),
        (("--election-timeout", "60000"), "--election-timeout (60000 ms) is too long"),
        (("--listen-peer-urls", "https://127.0.0.1:1", "--peer-cert-file", "x"), "--peer-cert-file and --peer-key-file go together"),
        (("--key-file", "x"), "--cert-file and --key-file go together"),
        (("--cert-file", "/nonexistent", "--key-file", "x"), "--cert-file /nonexistent: No such file or directory"),
        (("--trusted-ca-file", "/nonexistent"), "--trusted-ca-file /nonexistent: No such file or directory"),
    ],
)
def test_flags_that_cannot_work_are_told(tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    with pytest.raises(CommandError) as caught:
        settings(tmp_path, *arguments)
    assert told in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["m1", "m1=", "=https://127.0.0.1:1"])
def test_an_initial_cluster_that_is_none_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse("--initial-cluster", text)
    assert "invalid member" in capsys.readouterr().err


def test_members_without_shared_authorities_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    data_dir = DataDir(tmp_path / "m1")
    with pytest.raises(UsageError, match="--pki-dir"):
        server_config(parse("--name", "m1", "--initial-cluster", THREE), data_dir)
    assert not (tmp_path / "m1" / "pki").exists()
    data_dir.close()


def test_the_shared_directory_is_remembered(tmp_path: Path) -> None:
    data_dir = DataDir(tmp_path / "m1")
    cluster_of_three = ("--name", "m1", "--initial-cluster", THREE)
    first = server_config(parse(*cluster_of_three, "--pki-dir", str(tmp_path / "shared")), data_dir)
    second = server_config(parse(*cluster_of_three), data_dir)
    data_dir.close()
    assert first == second
    assert first.client_ca_file == tmp_path / "shared" / "ca.crt"
    assert first.store.peer_cert_file == tmp_path / "m1" / "pki" / "etcd" / "peer.crt"


def test_one_address_for_two_members_is_refused(tmp_path: Path) -> None:
    data_dir = DataDir(tmp_path / "m1")
    twice = "m1=https://127.0.0.1:21201,m2=https://127.0.0.1:21201"
    with pytest.raises(UsageError, match="for both m1 and m2"):
        server_config(parse("--name", "m1", "--initial-cluster", twice, "--pki-dir", str(tmp_path / "shared")), data_dir)
    data_dir.close()


# -- sampan cluster


def test_each_member_has_ten_ports_of_its_own() -> None:
    first, second, third = cluster.plans(3, 21200, Path("/d"))
    assert (first.api_port, first.peer_url, first.client_url) == (21200, "https://127.0.0.1:21201", "https://127.0.0.1:21202")
    assert (second.api_port, third.api_port) == (21210, 21220)
    command = cluster.command(second, (first, second, third), Path("/d/pki"), ("--nodes", "1"))
    assert command[command.index("--name") + 1] == "m2"
    assert (
        command[command.index("--initial-cluster") + 1]
        == "m1=https://127.0.0.1:21201,m2=https://127.0.0.1:21211,m3=https://127.0.0.1:21221"
    )


@pytest.mark.parametrize("base_port", [0, 65530])
def test_ports_that_do_not_exist_are_told(base_port: int) -> None:
    with pytest.raises(UsageError, match="--base-port"):
        cluster.plans(3, base_port, Path("/d"))


def test_a_kubeconfig_of_several_servers_has_a_context_for_each(tmp_path: Path) -> None:
    pki = Pki(tmp_path, NOW)
    path = kubeconfig.write_several(
        tmp_path / "all.kubeconfig",
        servers={"m1": "https://127.0.0.1:1", "m2": "https://127.0.0.1:2"},
        ca=pki.ca.certificate,
        client=pki.client("admin", Subject("ann")),
        user="ann",
    )
    found = yaml.safe_load(path.read_text())
    servers = {entry["name"]: entry["cluster"]["server"] for entry in found["clusters"]}
    assert {c["name"]: (servers[c["context"]["cluster"]], c["context"]["user"]) for c in found["contexts"]} == {
        "m1": ("https://127.0.0.1:1", "ann"),
        "m2": ("https://127.0.0.1:2", "ann"),
    }
    assert found["current-context"] == "m1"


def test_certificates_that_are_given_are_used(tmp_path: Path) -> None:
    given = Pki(tmp_path / "given", NOW)
    pair, server = given.etcd_peer("m1", ("127.0.0.1",)), given.etcd_server("m1", ())
    authority = str(given.etcd_ca().certificate)
    found = settings(
        tmp_path / "own", "--listen-peer-urls", "https://127.0.0.1:21204",
        "--peer-cert-file", str(pair.certificate), "--peer-key-file", str(pair.key), "--peer-trusted-ca-file", authority,
        "--cert-file", str(server.certificate), "--key-file", str(server.key), "--trusted-ca-file", authority,
    )  # fmt: skip
    assert (found["peer_cert_file"], found["peer_key_file"]) == (pair.certificate, pair.key)
    assert (found["cert_file"], found["key_file"]) == (server.certificate, server.key)
    assert str(found["peer_trusted_ca_file"]) == str(found["trusted_ca_file"]) == authority


def test_a_certificate_without_a_word_on_whom_to_trust_is_refused(tmp_path: Path) -> None:
    pair = Pki(tmp_path / "given", NOW).etcd_peer("m1", ())
    with pytest.raises(UsageError, match="--peer-cert-file needs --peer-trusted-ca-file"):
        settings(
            tmp_path / "own", "--listen-peer-urls", "https://127.0.0.1:21204", "--peer-cert-file", str(pair.certificate),
            "--peer-key-file", str(pair.key),
        )  # fmt: skip


def test_a_key_of_another_certificate_is_refused(tmp_path: Path) -> None:
    pki = Pki(tmp_path / "given", NOW)
    pair, other = pki.etcd_peer("m1", ()), pki.etcd_server("m1", ())
    with pytest.raises(CommandError, match="not a certificate and its key"):
        settings(tmp_path / "own", "--cert-file", str(pair.certificate), "--key-file", str(other.key))


def test_a_member_that_is_there_already_is_not_held_against_the_first_clusters_flags(tmp_path: Path) -> None:
    """As etcd ignores them: members have come and gone since."""
    moved = ("--name", "m2", "--initial-cluster", THREE, "--initial-advertise-peer-urls", "https://127.0.0.1:21299")
    gone = ("--name", "m9", "--initial-cluster", THREE, "--listen-peer-urls", "https://127.0.0.1:21209")
    for arguments, listens in ((moved, "https://127.0.0.1:21299"), (gone, "https://127.0.0.1:21209")):
        with pytest.raises(UsageError):
            settings(tmp_path, *arguments)
        found = cluster_flags.store_settings(parse(*arguments), Pki(tmp_path, NOW), has_member=True)
        assert found["listen_peer_urls"] == (listens,)
    # where it listened is known to the flags alone
    with pytest.raises(UsageError, match="but not this member"):
        cluster_flags.store_settings(parse("--name", "m9", "--initial-cluster", THREE), Pki(tmp_path, NOW), has_member=True)
    alone = cluster_flags.store_settings(parse("--initial-cluster-state", "existing"), Pki(tmp_path, NOW), has_member=True)
    assert "listen_peer_urls" not in alone
