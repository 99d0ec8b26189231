"""Keys and certificates of a data directory."""

import datetime
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from apiserver.cli import datadir
from apiserver.cli.pki import LEAF_VALIDITY, Pki, PkiError, Subject

NOW = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)


def test_a_second_opening_finds_the_same_ca_and_certificates(tmp_path: Path) -> None:
    first = Pki(tmp_path, NOW).client("admin", Subject("ann", ("dev",))).certificate.read_bytes()
    assert Pki(tmp_path, NOW).client("admin", Subject("ann", ("dev",))).certificate.read_bytes() == first


def test_keys_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    pki = Pki(tmp_path, NOW)
    pki.serving("apiserver", "127.0.0.1", "10.96.0.1")
    pki.service_account_key()
    for key in tmp_path.glob("*.key"):
        assert stat.S_IMODE(key.stat().st_mode) == 0o600, key


def test_a_client_certificate_names_user_and_groups_and_is_signed_by_the_ca(tmp_path: Path) -> None:
    pki = Pki(tmp_path, NOW)
    certificate = x509.load_pem_x509_certificate(pki.client("c", Subject("ann", ("dev", "ops"))).certificate.read_bytes())
    assert certificate.subject.rfc4514_string() == "CN=ann,O=ops,O=dev"
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(pki.ca.certificate.read_bytes()))


def test_a_certificate_about_to_expire_is_made_anew(tmp_path: Path) -> None:
    pair = Pki(tmp_path, NOW).client("admin", Subject("ann"))
    old = pair.certificate.read_bytes()
    later = NOW + LEAF_VALIDITY - datetime.timedelta(days=29)
    assert Pki(tmp_path, later).client("admin", Subject("ann")).certificate.read_bytes() != old


def test_a_new_bind_address_gets_into_the_serving_certificate(tmp_path: Path) -> None:
    pki = Pki(tmp_path, NOW)
    pki.serving("apiserver", "127.0.0.1", "10.96.0.1")
    certificate = x509.load_pem_x509_certificate(pki.serving("apiserver", "127.0.0.7", "10.96.0.1").certificate.read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "127.0.0.7" in [str(a) for a in names.get_values_for_type(x509.IPAddress)]


def test_a_damaged_key_is_named(tmp_path: Path) -> None:
    Pki(tmp_path, NOW)
    (tmp_path / "ca.key").write_text("nonsense")
    with pytest.raises(PkiError, match=r"ca\.key"):
        Pki(tmp_path, NOW)


def test_a_data_directory_has_one_holder_at_a_time(tmp_path: Path) -> None:
    held = datadir.DataDir(tmp_path)
    with pytest.raises(datadir.DataDirError, match="in use by process"):
        datadir.DataDir(tmp_path)
    held.close()
    datadir.DataDir(tmp_path).close()


def test_a_kubeconfig_is_private_and_names_the_server(tmp_path: Path) -> None:
    path = datadir.write_kubeconfig(tmp_path, "https://127.0.0.1:6443", "admin", datadir.ADMIN)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "server: https://127.0.0.1:6443\n" in path.read_text()


def test_a_client_key_that_is_damaged_or_anothers_is_made_anew(tmp_path: Path) -> None:
    pki = Pki(tmp_path, NOW)
    other = pki.client("other", Subject("bob"))
    for wrong in (b"junk", other.key.read_bytes()):
        pair = pki.client("admin", Subject("ann"))
        pair.key.write_bytes(wrong)
        pki.client("admin", Subject("ann"))
        certificate = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
        key = serialization.load_pem_private_key(pair.key.read_bytes(), None)
        assert key.public_key() == certificate.public_key()


def test_the_store_has_an_authority_of_its_own_so_that_no_client_of_the_api_is_one_of_the_store(tmp_path: Path) -> None:
    pki = Pki(tmp_path, NOW)
    api_client = x509.load_pem_x509_certificate(pki.client("admin", Subject("ann")).certificate.read_bytes())
    etcd_ca = x509.load_pem_x509_certificate(pki.etcd_ca().certificate.read_bytes())
    with pytest.raises(ValueError, match="Issuer"):
        api_client.verify_directly_issued_by(etcd_ca)


def test_a_peer_certificate_serves_and_asks_and_names_its_hosts(tmp_path: Path) -> None:
    pair = Pki(tmp_path, NOW).etcd_peer("m1", ("10.0.0.1", "m1.example", "0.0.0.0"))
    certificate = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
    usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert {usage._name for usage in usages} == {"serverAuth", "clientAuth"}
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {"10.0.0.1", "127.0.0.1"} <= {str(a) for a in names.get_values_for_type(x509.IPAddress)}
    assert "0.0.0.0" not in [str(a) for a in names.get_values_for_type(x509.IPAddress)]
    assert {"m1.example", "localhost"} <= set(names.get_values_for_type(x509.DNSName))


def test_members_share_authorities_and_the_service_account_key_and_nothing_else(tmp_path: Path) -> None:
    first, second = (Pki(tmp_path / name / "pki", NOW, tmp_path / "shared") for name in ("m1", "m2"))
    assert first.ca == second.ca and first.etcd_ca() == second.etcd_ca()
    assert first.service_account_key() == second.service_account_key()
    assert first.etcd_peer("m1", ()).key != second.etcd_peer("m2", ()).key
    assert not (tmp_path / "m1" / "pki" / "ca.key").exists()
    found = {str(path.relative_to(tmp_path / "shared")) for path in (tmp_path / "shared").rglob("*.*")}
    assert found == {"ca.crt", "ca.key", "sa.key", "sa.pub", "pki.lock", "etcd/ca.crt", "etcd/ca.key", "etcd/pki.lock"}


def test_members_that_start_at_once_agree_on_the_authority(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda number: Pki(tmp_path / str(number), NOW, tmp_path / "shared").ca.key.read_bytes(), range(8)))
    assert len(set(made)) == 1
