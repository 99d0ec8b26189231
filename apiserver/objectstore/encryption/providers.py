"""One cipher each: from bytes to what is stored behind the key's name, and back. ``where``: the key in the store, which aesgcm binds the
value to, so that one secret's value put in another's place is refused."""

from __future__ import annotations

import os
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher as BlockCipher
from cryptography.hazmat.primitives.ciphers import algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

_NONCE_BYTES = 12
_TAG_BYTES = 16
_BLOCK_BYTES = 16
_BOX_NONCE_BYTES = 24
_INFO_BYTES = 32

_TOO_SHORT = "the stored data was shorter than the required size"


class DecryptionError(Exception):
    """The value cannot be decrypted: in Go's words."""


class Cipher(Protocol):
    def encrypt(self, data: bytes, where: bytes) -> bytes: ...

    def decrypt(self, data: bytes, where: bytes) -> bytes:
        """Raises DecryptionError."""


class AesGcm:
    def __init__(self, key: bytes) -> None:
        self._aead = AESGCM(key)

    def encrypt(self, data: bytes, where: bytes) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._aead.encrypt(nonce, data, where)

    def decrypt(self, data: bytes, where: bytes) -> bytes:
        if len(data) < _NONCE_BYTES + _TAG_BYTES:
            raise DecryptionError(_TOO_SHORT)
        try:
            return self._aead.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], where)
        except InvalidTag as error:
            raise DecryptionError("cipher: message authentication failed") from error


class AesCbc:
    """No check value: a wrong key shows itself by its padding, mostly."""

    def __init__(self, key: bytes) -> None:
        self._algorithm = algorithms.AES(key)

    def encrypt(self, data: bytes, where: bytes) -> bytes:
        vector = os.urandom(_BLOCK_BYTES)
        missing = _BLOCK_BYTES - len(data) % _BLOCK_BYTES
        encryptor = BlockCipher(self._algorithm, modes.CBC(vector)).encryptor()
        return vector + encryptor.update(data + bytes([missing]) * missing) + encryptor.finalize()

    def decrypt(self, data: bytes, where: bytes) -> bytes:
        if len(data) < _BLOCK_BYTES:
            raise DecryptionError(_TOO_SHORT)
        if len(data) % _BLOCK_BYTES:
            raise DecryptionError("the stored data is not a multiple of the block size")
        decryptor = BlockCipher(self._algorithm, modes.CBC(data[:_BLOCK_BYTES])).decryptor()
        plain = decryptor.update(data[_BLOCK_BYTES:]) + decryptor.finalize()
        added = plain[-1] if plain else 0
        if not 0 < added <= min(len(plain), _BLOCK_BYTES):
            raise DecryptionError("invalid PKCS7 data (empty or not padded)")
        if plain[-added:] != bytes([added]) * added:
            raise DecryptionError("invalid padding on input")
        return plain[:-added]


class SecretBox:
    """XSalsa20 and Poly1305, by libsodium."""

    def __init__(self, key: bytes) -> None:
        import nacl.secret

        self._box = nacl.secret.SecretBox(key)

    def encrypt(self, data: bytes, where: bytes) -> bytes:
        return bytes(self._box.encrypt(data, os.urandom(_BOX_NONCE_BYTES)))

    def decrypt(self, data: bytes, where: bytes) -> bytes:
        import nacl.exceptions

        if len(data) < _BOX_NONCE_BYTES:
            raise DecryptionError(_TOO_SHORT)
        try:
            return self._box.decrypt(data)
        except nacl.exceptions.CryptoError as error:
            raise DecryptionError("output array was not large enough for encryption") from error


class SeededAesGcm:
    """AES-GCM with a key of its own for each value: HKDF-Expand(SHA-256) of a seed and of 32 random bytes, which stand in front of what
    AES-GCM makes. So no number of values wears the seed out."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed

    def _derived(self, info: bytes) -> AesGcm:
        return AesGcm(HKDFExpand(algorithm=hashes.SHA256(), length=32, info=info).derive(self._seed))

    def encrypt(self, data: bytes, where: bytes) -> bytes:
        info = os.urandom(_INFO_BYTES)
        return info + self._derived(info).encrypt(data, where)

    def decrypt(self, data: bytes, where: bytes) -> bytes:
        if len(data) < _INFO_BYTES:
            raise DecryptionError(_TOO_SHORT)
        return self._derived(data[:_INFO_BYTES]).decrypt(data[_INFO_BYTES:], where)


CIPHERS: dict[str, type[AesGcm] | type[AesCbc] | type[SecretBox]] = {"aesgcm": AesGcm, "aescbc": AesCbc, "secretbox": SecretBox}
