"""What is stored, byte by byte where kube-apiserver has to read it, and what is refused."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.objectstore.encryption.configuration import Key, Keyed, Kms
from apiserver.objectstore.encryption.kms import Encrypted, KmsError, KmsProvider, Status
from apiserver.objectstore.encryption.providers import AesCbc, AesGcm, DecryptionError, SecretBox, SeededAesGcm
from apiserver.objectstore.encryption.transformer import IdentityProvider, KeyedProvider, Provider, Transformer
from apiserver.objectstore.interface import EncryptionError

WHERE = b"/registry/secrets/default/s"
SECRET = b"secret is secure"
LONG = b"abcdefghijklmnopqrstuvwxyz123456"


def keyed(cipher: str = "aesgcm", *names: str, secret: bytes = SECRET) -> KeyedProvider:
    return KeyedProvider(Keyed(cipher=cipher, keys=tuple(Key(name=name, secret=secret) for name in names or ("k1",))))


@pytest.mark.parametrize("cipher", [AesGcm(SECRET), AesCbc(SECRET), AesCbc(LONG), SecretBox(LONG), SeededAesGcm(LONG)])
@given(data=st.binary(max_size=100))
def test_what_is_encrypted_comes_back_and_never_looks_the_same(cipher: AesGcm, data: bytes) -> None:
    one, other = cipher.encrypt(data, WHERE), cipher.encrypt(data, WHERE)
    assert one != other and cipher.decrypt(one, WHERE) == cipher.decrypt(other, WHERE) == data


@pytest.mark.parametrize(
    ("cipher", "words"),
    [
        (AesGcm(SECRET), "cipher: message authentication failed"),
        (SecretBox(LONG), "output array was not large enough for encryption"),
        (SeededAesGcm(LONG), "cipher: message authentication failed"),
    ],
)
def test_a_changed_byte_is_noticed(cipher: AesGcm, words: str) -> None:
    whole = cipher.encrypt(b"{}" * 20, WHERE)
    for position in range(0, len(whole), 7):
        broken = bytearray(whole)
        broken[position] ^= 1
        with pytest.raises(DecryptionError, match=words):
            cipher.decrypt(bytes(broken), WHERE)
    with pytest.raises(DecryptionError, match="shorter than the required size"):
        cipher.decrypt(whole[:10], WHERE)


@given(data=st.binary(max_size=80))
def test_any_bytes_are_decrypted_or_refused_and_nothing_else(data: bytes) -> None:
    for cipher in (AesGcm(SECRET), AesCbc(SECRET), SecretBox(LONG), SeededAesGcm(LONG)):
        with contextlib.suppress(DecryptionError):
            cipher.decrypt(data, WHERE)


def test_the_value_of_another_place_is_refused_where_the_cipher_knows_places() -> None:
    provider = Transformer([keyed()])
    with pytest.raises(DecryptionError, match="message authentication failed"):
        provider.decrypt(provider.encrypt(b"x", WHERE), b"/registry/secrets/default/other")


def test_prefixes_tell_provider_and_key() -> None:
    for cipher, secret in (("aesgcm", SECRET), ("aescbc", SECRET), ("secretbox", LONG)):
        stored = keyed(cipher, "key1", secret=secret).encrypt(b"x", WHERE)
        assert stored.startswith(f"k8s:enc:{cipher}:v1:key1:".encode())


def test_the_first_provider_writes_all_read_and_what_others_wrote_is_stale() -> None:
    old, new = keyed("aescbc"), keyed("aesgcm", "k2", "k1")
    both = Transformer([new, old, IdentityProvider()])
    assert both.encrypt(b"x", WHERE).startswith(b"k8s:enc:aesgcm:v1:k2:")
    assert both.decrypt(new.encrypt(b"x", WHERE), WHERE) == (b"x", False)
    assert both.decrypt(keyed("aesgcm", "k1").encrypt(b"x", WHERE), WHERE) == (b"x", True)
    assert both.decrypt(old.encrypt(b"x", WHERE), WHERE) == (b"x", True)
    assert both.decrypt(b"{}", WHERE) == (b"{}", True)


@pytest.mark.parametrize(
    ("providers", "value", "words"),
    [
        ([IdentityProvider()], keyed().encrypt(b"x", WHERE), "identity transformer tried to read encrypted data"),
        ([keyed()], b"{}", "no matching prefix found"),
        ([keyed("aescbc")], keyed().encrypt(b"x", WHERE), "no matching prefix found"),
        ([keyed("aesgcm", "other")], keyed().encrypt(b"x", WHERE), "no matching key was found for the provided AES transformer"),
        ([keyed("aesgcm", "k1", secret=LONG)], keyed().encrypt(b"x", WHERE), "cipher: message authentication failed"),
    ],
    ids=("identity", "plain", "other provider", "other key", "other secret"),  # each process that collects encrypts anew
)
def test_what_cannot_be_read(providers: list[Provider], value: bytes, words: str) -> None:
    with pytest.raises(DecryptionError) as caught:
        Transformer(providers).decrypt(value, WHERE)
    assert str(caught.value) == words


def test_one_provider_twice_with_different_secrets_under_one_name() -> None:
    both = Transformer([keyed("aescbc", "k1", secret=LONG), keyed("aescbc", "k1")])
    assert both.decrypt(keyed("aescbc").encrypt(b"x", WHERE), WHERE)[0] == b"x"


class Plugin:
    """Encrypts by turning the bytes around."""

    def __init__(self) -> None:
        self.key_id = "key-1"
        self.version = "v2"
        self.healthz = "ok"
        self.away = False
        self.decrypted = 0
        self.asked_in_vain = 0

    def status(self) -> Status:
        if self.away:
            raise KmsError("rpc error: code = Unavailable desc = gone")
        return Status(version=self.version, healthz=self.healthz, key_id=self.key_id)

    def encrypt(self, plaintext: bytes) -> Encrypted:
        return Encrypted(ciphertext=plaintext[::-1], key_id=self.key_id, annotations={"a.example.com": b"1"})

    def decrypt(self, ciphertext: bytes, key_id: str, annotations: object) -> bytes:
        if self.away:
            self.asked_in_vain += 1
            raise KmsError("rpc error: code = Unavailable desc = gone", away=True)
        assert annotations == {"a.example.com": b"1"} and key_id.startswith("key-")
        self.decrypted += 1
        return ciphertext[::-1]


class KmsWorld:
    def __init__(self) -> None:
        self.plugin, self.now = Plugin(), 1000.0
        self.provider = self.new()

    def new(self) -> KmsProvider:
        """As after a restart."""
        provider = KmsProvider(Kms(name="vault", path="/x", timeout_seconds=1), self.plugin, lambda: self.now)
        provider.look()
        return provider


def test_kms_values_are_read_after_a_restart_with_one_call_for_all_of_one_seed() -> None:
    world = KmsWorld()
    stored = [world.provider.encrypt(bytes([n]), WHERE) for n in range(5)]
    assert all(value.startswith(b"k8s:enc:kms:v2:vault:") for value in stored)
    again = world.new()
    assert [again.decrypt(value, WHERE) for value in stored] == [(bytes([n]), False) for n in range(5)]
    assert world.plugin.decrypted == 1


def test_a_new_key_of_the_plugin_is_written_with_and_old_values_are_stale() -> None:
    world = KmsWorld()
    before = world.provider.encrypt(b"x", WHERE)
    world.plugin.key_id = "key-2"
    world.provider.look()
    assert world.provider.decrypt(before, WHERE) == (b"x", True)
    assert world.provider.decrypt(world.provider.encrypt(b"y", WHERE), WHERE) == (b"y", False)
    assert world.plugin.decrypted == 0


def test_while_the_plugin_is_away_reads_go_on_and_writes_for_three_minutes() -> None:
    world = KmsWorld()
    stored = world.provider.encrypt(b"x", WHERE)
    world.plugin.away = True
    world.provider.look()
    assert world.provider.problem == "rpc error: code = Unavailable desc = gone" and world.provider.next_look_seconds == 10
    world.now += 179
    assert world.provider.encrypt(b"y", WHERE) and world.provider.decrypt(stored, WHERE)[0] == b"x"
    world.now += 2
    with pytest.raises(EncryptionError, match=r"^encryptedDEKSource with keyID hash .* expired at 1970-01-01T00:19:40Z"):
        world.provider.encrypt(b"y", WHERE)
    fresh = world.new()
    with pytest.raises(DecryptionError, match="failed to decrypt DEK, error: rpc error: code = Unavailable"):
        fresh.decrypt(stored, WHERE)
    with pytest.raises(EncryptionError):
        fresh.encrypt(b"y", WHERE)
    world.plugin.away = False
    world.provider.look()
    assert world.provider.problem == "" and world.provider.encrypt(b"y", WHERE)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"healthz": "sick"}, "got unexpected healthz status: sick"),
        ({"version": "v1"}, "expected KMSv2 API version v2, got v1"),
        ({"key_id": ""}, "keyID is empty"),
        ({"key_id": "x" * 2000}, "keyID is 2000 bytes, which exceeds the max size of 1024"),
    ],
)
def test_an_unhealthy_plugin(change: dict[str, str], words: str) -> None:
    world = KmsWorld()
    for field, value in change.items():
        setattr(world.plugin, field, value)
    world.provider.look()
    assert words in world.provider.problem


@given(data=st.binary(max_size=60))
def test_garbage_behind_the_prefix_is_refused(data: bytes) -> None:
    world = KmsWorld()
    with pytest.raises(DecryptionError):
        world.provider.decrypt(b"k8s:enc:kms:v2:vault:" + data, WHERE)


def test_a_plugin_that_does_not_answer_is_not_asked_for_each_value() -> None:
    """Each question may wait for its whole timeout: a thousand secrets would hold up a start for an hour."""
    world = KmsWorld()
    values = []
    for n in range(20):
        world.plugin.key_id = f"key-{n}"  # a seed of its own each
        world.provider.look()
        values.append(world.provider.encrypt(b"x", b"k"))
    world.provider = world.new()
    world.plugin.away = True
    for value in values:
        with pytest.raises(DecryptionError, match="Unavailable"):
            world.provider.decrypt(value, b"k")
    assert world.plugin.asked_in_vain == 1
    world.now += 10.0
    with pytest.raises(DecryptionError, match="Unavailable"):
        world.provider.decrypt(values[0], b"k")
    assert world.plugin.asked_in_vain == 2, "after a while it is"
    world.provider.look()
    assert not world.provider.maybe_forget_refusals()
    world.plugin.away = False
    world.provider.look()
    assert world.provider.maybe_forget_refusals() and not world.provider.maybe_forget_refusals()
    assert [world.provider.decrypt(value, b"k")[0] for value in values] == [b"x"] * 20
