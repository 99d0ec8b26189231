"""The providers of a resource, one after the other, told apart by how a value begins (``storage/value/transformer.go``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from apiserver.objectstore.encryption import configuration, providers
from apiserver.objectstore.encryption.providers import Cipher, DecryptionError

ENCRYPTED_START = b"k8s:enc:"
_NO_KEY = {
    "aesgcm": "no matching key was found for the provided AES transformer",
    "aescbc": "no matching key was found for the provided AES transformer",
    "secretbox": "no matching key was found for the provided Secretbox transformer",
}


class Provider(Protocol):
    """``prefix``: how its values begin; empty for those that are not encrypted."""

    prefix: bytes

    def encrypt(self, data: bytes, where: bytes) -> bytes:
        """With the prefix. Raises EncryptionError."""

    def decrypt(self, data: bytes, where: bytes) -> tuple[bytes, bool]:
        """Of data that begins so; whether it is stale. Raises DecryptionError."""


class IdentityProvider:
    prefix = b""

    def encrypt(self, data: bytes, where: bytes) -> bytes:
        return data

    def decrypt(self, data: bytes, where: bytes) -> tuple[bytes, bool]:
        if data.startswith(ENCRYPTED_START):
            raise DecryptionError("identity transformer tried to read encrypted data")
        return data, False


class KeyedProvider:
    """Its first key writes."""

    def __init__(self, config: configuration.Keyed) -> None:
        self._name = config.cipher
        self.prefix = f"k8s:enc:{config.cipher}:v1:".encode()
        make = providers.CIPHERS[config.cipher]
        self._keys: list[tuple[bytes, Cipher]] = [(f"{key.name}:".encode(), make(key.secret)) for key in config.keys]
        self._start = self.prefix + self._keys[0][0]

    def encrypt(self, data: bytes, where: bytes) -> bytes:
        return self._start + self._keys[0][1].encrypt(data, where)

    def decrypt(self, data: bytes, where: bytes) -> tuple[bytes, bool]:
        rest = data[len(self.prefix) :]
        problem: DecryptionError | None = None
        for position, (name, cipher) in enumerate(self._keys):
            if rest.startswith(name):
                try:
                    return cipher.decrypt(rest[len(name) :], where), position > 0
                except DecryptionError as error:
                    problem = error
        raise problem or DecryptionError(_NO_KEY[self._name])


class Transformer:
    def __init__(self, found: Sequence[Provider]) -> None:
        assert found, "no provider"
        self.providers = tuple(found)

    def encrypt(self, data: bytes, where: bytes) -> bytes:
        """What is stored under the key ``where``. Raises EncryptionError."""
        return self.providers[0].encrypt(data, where)

    def decrypt(self, data: bytes, where: bytes) -> tuple[bytes, bool]:
        """The value, and whether another provider or key than the first wrote it. Raises DecryptionError."""
        problems: list[str] = []
        for position, provider in enumerate(self.providers):
            if data.startswith(provider.prefix):
                try:
                    plain, stale = provider.decrypt(data, where)
                except DecryptionError as error:
                    # one provider may be there several times, with different keys
                    problems.append(str(error))
                    continue
                return plain, stale or position > 0
        distinct = list(dict.fromkeys(problems))
        if len(distinct) > 1:
            raise DecryptionError(f"[{', '.join(distinct)}]")
        raise DecryptionError(distinct[0] if distinct else "no matching prefix found")
