"""Command lines of kube-apiserver start this server: what has no effect is taken and told, what would be missed is refused."""

from __future__ import annotations

import argparse
import os
import threading
from pathlib import Path

import pytest

from apiserver.cli import feature_gates, flags, rereadable, upstream_flags
from apiserver.cli.go_values import boolean

#: as kubeadm writes it into the manifest of its static pod
KUBEADM = """--advertise-address=192.0.2.10 --allow-privileged=true --authorization-mode=Node,RBAC --client-ca-file=/p/ca.crt
--enable-admission-plugins=NodeRestriction --enable-bootstrap-token-auth=true --etcd-cafile=/p/etcd/ca.crt
--etcd-certfile=/p/client.crt --etcd-keyfile=/p/client.key --etcd-servers=https://127.0.0.1:2379
--kubelet-client-certificate=/p/kubelet.crt --kubelet-client-key=/p/kubelet.key
--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname --proxy-client-cert-file=/p/proxy.crt
--proxy-client-key-file=/p/proxy.key --requestheader-allowed-names=front-proxy-client --requestheader-client-ca-file=/p/front.crt
--requestheader-extra-headers-prefix=X-Remote-Extra- --requestheader-group-headers=X-Remote-Group
--requestheader-username-headers=X-Remote-User --secure-port=6443 --service-account-issuer=https://kubernetes.default.svc.cluster.local
--service-account-key-file=/p/sa.pub --service-account-signing-key-file=/p/sa.key --service-cluster-ip-range=10.96.0.0/12
--tls-cert-file=/p/apiserver.crt --tls-private-key-file=/p/apiserver.key"""


def parsed(*arguments: str) -> argparse.Namespace:
    parser = flags.Parser(prog="sampan apiserver")
    flags.add_server_flags(parser)
    return parser.parse_args(arguments)


def test_a_command_line_of_kubeadm_is_taken() -> None:
    found = parsed(*KUBEADM.split())
    assert (found.advertise_address, found.secure_port) == ("192.0.2.10", 6443)
    assert found.authorization_mode == ("Node", "RBAC")
    told = upstream_flags.warnings(found)
    assert "--allow-privileged has no effect: privileged containers are always allowed" in told
    assert "--kubelet-client-key has no effect: hollow nodes have no kubelet to call" in told
    assert not any("etcd" in line or "tls" in line or "advertise" in line for line in told)


def test_each_flag_is_told_once_and_nothing_without_them() -> None:
    assert upstream_flags.warnings(parsed("-v", "2", "--v=4", "--profiling", "--secure-port", "1")) == [
        f"--v has no effect: {upstream_flags.INERT['v']}",
        f"--profiling has no effect: {upstream_flags.INERT['profiling']}",
    ]
    assert upstream_flags.warnings(parsed()) == []


@pytest.mark.parametrize("flag", ["--token-auth-fil", "--insecure-port=0", "--no-such-flag"])
def test_what_no_server_knows_is_refused(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parsed(flag)
    assert ended.value.code == flags.USAGE_ERROR
    assert "unrecognized arguments" in capsys.readouterr().err


def test_lists_and_maps_add_up() -> None:
    found = parsed(
        "--enable-admission-plugins=A,B", "--enable-admission-plugins=C", "--runtime-config=api/all=false", "--runtime-config=v1=true",
        "--authorization-mode=RBAC",
    )  # fmt: skip
    assert found.enable_admission_plugins == ("A", "B", "C")
    assert found.runtime_config == "api/all=false,v1=true"
    assert found.authorization_mode == ("RBAC",), "the default goes with the first value"
    assert parsed().authorization_mode is None, "told from what is given, since a file may stand in its place"


@pytest.mark.parametrize(
    ("given", "wanted"), [("--anonymous-auth", "true"), ("--anonymous-auth=False", "false"), ("--anonymous-auth=1", "true")]
)
def test_switches_are_read_as_go_reads_them(given: str, wanted: str) -> None:
    assert parsed(given).anonymous_auth == wanted
    with pytest.raises(argparse.ArgumentTypeError, match=r'strconv\.ParseBool: parsing "yes": invalid syntax'):
        boolean("yes")


def test_feature_gates_are_known_and_told() -> None:
    found = parsed("--feature-gates=WatchList=false,kube:AllAlpha=true", "--feature-gates", "CPUManager=0")
    assert found.feature_gates == {"WatchList": False, "AllAlpha": True, "CPUManager": False}
    assert upstream_flags.warnings(found) == [
        "--feature-gates has no effect (WatchList=false, AllAlpha=true, CPUManager=false): features are as they are by default in the "
        "version that is served"
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Bogus=true", "unrecognized feature gate: Bogus"),
        ("WatchList", "missing bool value for WatchList"),
        ("WatchList=on", 'invalid value of WatchList=on, err: strconv.ParseBool: parsing "on": invalid syntax'),
    ],
)
def test_feature_gates_that_are_none(text: str, told: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        feature_gates.parse(text)
    assert str(caught.value) == told


def test_a_pipe_is_read_once_and_can_be_read_again(tmp_path: Path) -> None:
    pipe, file = tmp_path / "pipe", tmp_path / "file"
    os.mkfifo(pipe)
    file.write_text("plain")
    found = argparse.Namespace(token_auth_file=pipe, client_ca_file=file, tls_cert_file=tmp_path / "missing", secure_port=1)
    writer = threading.Thread(target=pipe.write_text, args=("tok,u,u\n" * 20_000,))
    writer.start()
    rereadable.keep(found)
    writer.join()
    for _ in range(2):
        assert found.token_auth_file.read_text() == "tok,u,u\n" * 20_000
    assert found.client_ca_file == file and found.tls_cert_file == tmp_path / "missing"
