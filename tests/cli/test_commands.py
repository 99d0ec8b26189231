"""What ``sampan`` answers to a command that cannot work: one line that says what and how to mend it, 2 for a wrong command line, else 1.

Everything here fails before a server is built, so it runs in this process.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from apiserver.cli import up
from apiserver.cli.main import main
from apiserver.cli.pki import Pki, Subject
from apiserver.config import StoreConfig
from tests.cli.test_pki import NOW


def ended(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str]:
    """The exit status and the one line."""
    try:
        status = main([str(a) for a in arguments])
    except SystemExit as end:
        status = int(str(end.code))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("sampan"), lines
    return status, lines[0]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("", "arguments are required: COMMAND"),
        ("nope", "invalid choice: 'nope'"),
        ("up --nope", "unrecognized arguments: --nope"),
        ("up --secure", "unrecognized arguments: --secure"),  # no abbreviations
        ("up --secure-port 70000", "invalid port '70000'"),
        ("up --bind-address here", "invalid IP address 'here'"),
        ("up --kubernetes-version 1.24", "'1.24'"),
        ("up --nodes 501", "too many"),
        ("up --nodes -1", "invalid number"),
        ("up --service-cluster-ip-range x", "invalid range of addresses"),
        ("up --service-cluster-ip-range 10.0.0.0/16,10.1.0.0/16", "invalid range of addresses"),
        ("up --service-node-port-range 9-1", "invalid range of ports"),
        ("up --node-monitor-grace-period 5", "write for example 40s"),
        ("up --node-monitor-grace-period 5s", "must be longer than --node-monitor-period"),
        ("up --controllers deployment,foo", "unknown controller 'foo'; there are"),
        ("up --authorization-mode RBAC,Foo", '--authorization-mode: "Foo"'),
        ("up --enable-admission-plugins Foo", "admission plugins are unknown: Foo"),
        ("up --tls-cert-file /etc/hosts", "go together"),
        ("up --snapshot-count 0", "--snapshot-count"),
        (
            "apiserver --etcd-servers 127.0.0.1:2379",
            "--etcd-servers: '127.0.0.1:2379' is not the URL of an etcd server; write it as https://",
        ),
        ("apiserver --etcd-servers https://a", "--etcd-servers: 'https://a' names no port"),
        ("apiserver --etcd-servers https://a:1,https://a:1", "--etcd-servers: an etcd server is named twice"),
        ("apiserver --etcd-servers http://a:1 --etcd-cafile /etc/hosts", "certificates for etcd are of no use with http:// servers"),
        ("apiserver --etcd-cafile /etc/hosts", "--etcd-cafile is of use only with --etcd-servers"),
        ("apiserver --etcd-servers https://a:1 --etcd-certfile /etc/hosts", "the certificate and the key for etcd go together"),
        ("up --etcd-servers https://a:1 --listen-client-urls https://b:2", "--listen-client-urls is of the embedded store"),
        ("up --etcd-servers https://a:1 --initial-cluster m=https://b:2", "--etcd-servers and --initial-cluster exclude each other"),
        ("apiserver --etcd-prefix registry", "invalid prefix 'registry': write for example /registry"),
        ("up --election-timeout 1", "--election-timeout"),
        ("controllers --controllers=-foo", "unknown controller 'foo'"),
        ("node Bad_Name", "invalid name 'Bad_Name'"),
    ],
)
def test_a_wrong_command_line_ends_with_2(data: Path, capsys: pytest.CaptureFixture[str], arguments: str, told: str) -> None:
    words = arguments.split()
    if words[:1] == ["up"]:
        words += ["--data-dir", str(data)]
    status, line = ended(capsys, *words)
    assert status == 2 and told in line, line


@pytest.mark.parametrize(
    ("flag", "what"),
    [
        ("--client-ca-file", "there is no certificate in PEM in it"),
        ("--service-account-key-file", "there is no public key in PEM in it"),
        ("--service-account-signing-key-file", "there is no private key without a password in PEM in it"),
    ],
)
def test_files_that_cannot_be_used_are_named_with_their_flag(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: str, what: str
) -> None:
    wrong = tmp_path / "wrong.pem"
    assert ended(capsys, "up", "--data-dir", data, flag, wrong) == (1, f"sampan: {flag} {wrong}: No such file or directory")
    wrong.write_text("nothing of use\n")
    assert ended(capsys, "up", "--data-dir", data, flag, wrong) == (1, f"sampan: {flag} {wrong}: {what}")


def test_files_for_etcd_are_checked_too(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = tmp_path / "wrong.pem"
    command = ("apiserver", "--data-dir", data, "--etcd-servers", "https://127.0.0.1:1", "--etcd-cafile", wrong)
    assert ended(capsys, *command) == (1, f"sampan: --etcd-cafile {wrong}: No such file or directory")
    wrong.write_text("nothing of use\n")
    assert ended(capsys, *command) == (1, f"sampan: --etcd-cafile {wrong}: there is no certificate in PEM in it")


def test_a_serving_certificate_needs_its_own_key(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pki = Pki(tmp_path / "pki", NOW)
    one, other = pki.client("one", Subject("one")), pki.client("other", Subject("other"))
    status, line = ended(capsys, "up", "--data-dir", data, "--tls-cert-file", one.certificate, "--tls-private-key-file", other.key)
    assert status == 1 and f"--tls-cert-file {one.certificate}, --tls-private-key-file {other.key}: not a certificate and its key" in line


def test_a_data_directory_that_cannot_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        status, line = ended(capsys, "up", "--data-dir", place)
        assert status == 1 and f"cannot use the data directory {place}" in line and "--data-dir" in line


def test_a_data_directory_in_use_names_who_uses_it(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from apiserver.cli.datadir import DataDir

    held = DataDir(data)
    try:
        status, line = ended(capsys, "up", "--data-dir", data)
    finally:
        held.close()
    assert status == 1 and f"{data} is in use by process {os.getpid()}" in line


def test_damaged_keys(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Pki(data / "pki", NOW).service_account_key()
    for name in ("sa.key", "ca.key", "ca.crt"):
        path = data / "pki" / name
        good = path.read_bytes()
        path.write_text("junk")
        status, line = ended(capsys, "up", "--data-dir", data)
        assert status == 1 and str(path) in line and "remove the pki directory" in line
        path.write_bytes(good)


@pytest.fixture
def busy_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


def test_a_busy_port(data: Path, busy_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    status, line = ended(capsys, "up", "--data-dir", data, "--secure-port", str(busy_port))
    assert status == 1 and f"port {busy_port} on 127.0.0.1 is in use" in line and "--secure-port" in line


@pytest.mark.parametrize(("command", "more"), [("kubeconfig", ""), ("controllers", ", or give --kubeconfig")])
def test_commands_that_need_a_server_say_how_to_start_one(data: Path, capsys: pytest.CaptureFixture[str], command: str, more: str) -> None:
    status, line = ended(capsys, command, "--data-dir", data)
    assert status == 1 and line.endswith(f"does not exist; start a server with 'sampan up --data-dir {data}' first{more}")


def test_a_kubeconfig_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k"
    assert ended(capsys, "node", "n", "--kubeconfig", path) == (1, f"sampan: cannot read the kubeconfig {path}: No such file or directory")
    for content in (b"", b"a: [", b"\xff\xfe", b"clusters: []"):
        path.write_bytes(content)
        assert ended(capsys, "node", "n", "--kubeconfig", path) == (1, f"sampan: {path} is not a kubeconfig: it names no server")


def test_versions_and_the_kubeconfig_are_printed(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from apiserver.cli.datadir import ADMIN, write_kubeconfig

    assert main(["version"]) == 0
    assert "serves Kubernetes 1.25 to 1.37" in capsys.readouterr().out
    data.mkdir()
    path = write_kubeconfig(data, "https://127.0.0.1:1", "admin", ADMIN)
    assert main(["kubeconfig", "--data-dir", str(data), "--path"]) == 0
    assert capsys.readouterr().out == f"{path}\n"
    assert main(["kubeconfig", "--data-dir", str(data)]) == 0
    assert capsys.readouterr().out == path.read_text()


def test_what_to_do_about_damage_depends_on_whether_there_are_other_members(tmp_path: Path) -> None:
    """A member that goes back to a backup has forgotten what it acknowledged: the others must not be led into that."""
    alone = StoreConfig(data_dir=tmp_path)
    member = StoreConfig(data_dir=tmp_path, listen_peer_urls=("https://127.0.0.1:2380",))
    assert "from a backup" in up.how_to_mend("1.wal: damaged at offset 7", alone)
    assert "member add" in up.how_to_mend("1.wal: damaged at offset 7", member)
    assert "backup" not in up.how_to_mend("1.wal: damaged at offset 7", member)
    assert up.how_to_mend("older than what it promised; remove the member and add it again", member) == ""
