"""``sampan snapshot``: what it prints, what it refuses, and with which exit status."""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path

import pytest

from apiserver.cli import snapshot
from apiserver.cli.datadir import open_pki, share_pki
from apiserver.cli.main import main

SAMPLE = Path(__file__).parents[1] / "storage" / "data" / "etcd-3.5-snapshot.db.gz"


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    path = tmp_path / "snapshot.db"
    path.write_bytes(gzip.decompress(SAMPLE.read_bytes()))
    return path


def test_status_in_each_form(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["snapshot", "status", str(sample), "-w", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "hash": 3789733202,
        "revision": 402,
        "totalKey": 303,
        "totalSize": 651264,
        "version": "",
    }
    assert main(["snapshot", "status", str(sample), "-w", "simple"]) == 0
    assert capsys.readouterr().out == "e1e2bd52, 402, 303, 651 kB, \n"
    assert main(["snapshot", "status", str(sample)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "|   HASH   | REVISION | TOTAL KEYS | TOTAL SIZE | VERSION |"
    assert lines[3] == "| e1e2bd52 |      402 |        303 |     651 kB |         |"
    assert len({len(line) for line in lines}) == 1


def test_restore_then_save_then_restore(sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, saved = tmp_path / "data", tmp_path / "saved.db"
    (data / "pki").mkdir(parents=True)
    assert main(["snapshot", "restore", str(sample), "--data-dir", str(data)]) == 0
    assert capsys.readouterr().out.startswith(f"restored revision 402 to {data}: member ")
    for arguments in (["restore", str(sample)], ["save", str(saved)]):
        elsewhere = ["--data-dir", str(tmp_path / "data2"), "--wal-dir", str(tmp_path / "wal")]
        assert main(["snapshot", *arguments, *elsewhere]) == 0
    assert not (tmp_path / "data2" / "member" / "wal").exists()
    capsys.readouterr()
    assert main(["snapshot", "save", str(saved), "--data-dir", str(tmp_path / "data2")]) == 1
    assert "member/wal: no member is there" in capsys.readouterr().err
    assert main(["snapshot", "save", str(saved), "--data-dir", str(data), "-w", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["revision"] == 402
    assert (
        main(["snapshot", "restore", str(saved), "--data-dir", str(tmp_path / "second"), "--bump-revision", "1000", "--mark-compacted"])
        == 0
    )
    assert capsys.readouterr().out.startswith("restored revision 1402 to ")


def test_what_is_refused_is_said_in_one_line(sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "notes").touch()
    cut = tmp_path / "cut.db"
    cut.write_bytes(sample.read_bytes()[:-4096])
    restore = ["snapshot", "restore", str(sample), "--data-dir"]
    new = str(tmp_path / "new")
    for arguments, status, what in (
        (["snapshot", "status", str(tmp_path / "missing")], 1, "missing: No such file"),
        (["snapshot", "status", str(cut)], 1, "cut short"),
        (["snapshot", "restore", str(cut), "--data-dir", new], 1, "its hash does not fit"),
        ([*restore, str(tmp_path / "used")], 1, "holds notes"),
        ([*restore, new, "--bump-revision", "5"], 2, "--mark-compacted"),
        ([*restore, new, "--name", "m2", "--initial-cluster", "m1=http://127.0.0.1:21501"], 2, "--name"),
        (
            [*restore, new, "--name", "m1", "--initial-cluster", "m1=http://h:1", "--initial-advertise-peer-urls", "http://h:2"],
            2,
            "differ",
        ),
        (["snapshot", "save", new, "--data-dir", str(tmp_path / "nothing")], 1, "no member"),
        (["snapshot", "save", new, "--endpoints", "localhost"], 2, "https://"),
    ):
        assert main(arguments) == status, arguments
        out, err = capsys.readouterr()
        assert not out
        assert what in err, (arguments, err)
        assert err.count("\n") == 1
        assert not Path(new).exists()


def test_a_member_is_asked_with_the_authority_that_members_share(tmp_path: Path) -> None:
    data, shared = tmp_path / "m1", tmp_path / "shared"
    share_pki(data, shared)
    open_pki(data).etcd_client()
    parsed = argparse.Namespace(data_dir=data, cacert=None, cert=None, key=None)
    config = snapshot._client(parsed, ("https://127.0.0.1:2379",))
    assert config.ca_file == shared / "etcd" / "ca.crt"
    assert (config.cert_file, config.key_file) == (data / "pki" / "etcd" / "client.crt", data / "pki" / "etcd" / "client.key")


def test_a_malformed_cluster_is_a_usage_error(sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["snapshot", "restore", str(sample), "--data-dir", str(tmp_path / "new"), "--initial-cluster", "m1"])
    assert "NAME=URL" in capsys.readouterr().err
