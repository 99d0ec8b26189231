"""KMS v2: a plugin on a Unix socket encrypts a seed, which values' keys are derived from (KEP-3299).

The plugin is asked for its status once a minute (every ten seconds while it is not well), and for the encryption of a new seed at the
start and whenever the key that it tells has changed. Seeds of other servers, and of earlier starts, are decrypted by it when a value of
theirs is first read, and kept. While it is away nothing that was read is lost, and writes go on with the seed for three minutes.

Calls block their thread. Those at the start and of the look-out run beside the event loop; one for a seed that a value on a watch brings
is made on it, at most once for each seed, and with the configured timeout: kube-apiserver's watch cache waits there too.
"""

from __future__ import annotations

import datetime
import hashlib
import logging
import os
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from apiserver.objectstore.encryption import configuration, kms_messages
from apiserver.objectstore.encryption.providers import AesGcm, Cipher, DecryptionError, SeededAesGcm
from apiserver.objectstore.interface import EncryptionError

logger = logging.getLogger(__name__)

HEALTHY_SECONDS = 60.0
UNHEALTHY_SECONDS = 10.0
#: how long a seed may be written with after the plugin was last well
WRITE_SECONDS = 180.0
SEED_BYTES = 32
KEY_ID_BYTES_MAX = 1024
SOURCE_BYTES_MAX = 1024
ANNOTATIONS_BYTES_MAX = 32 * 1024
#: decrypted seeds kept; one for each start of each server, as far as objects of that time are left
SEEDS_MAX = 4096
_DERIVED = 1
_SERVICE = "/v2.KeyManagementService/"


class KmsError(Exception):
    """The plugin did not do it; the text says why. ``away``: it did not answer."""

    def __init__(self, text: str, *, away: bool = False) -> None:
        super().__init__(text)
        self.away = away


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    version: str
    healthz: str
    key_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Encrypted:
    ciphertext: bytes
    key_id: str
    annotations: Mapping[str, bytes]


class Plugin(Protocol):
    """Each call may raise KmsError."""

    def status(self) -> Status: ...
    def encrypt(self, plaintext: bytes) -> Encrypted: ...
    def decrypt(self, ciphertext: bytes, key_id: str, annotations: Mapping[str, bytes]) -> bytes: ...


class GrpcPlugin:
    """Over its socket; the connection is made at the first call, and again when it broke."""

    def __init__(self, config: configuration.Kms) -> None:
        import grpc  # a tenth of a second, for those alone who have such a plugin

        self._timeout_seconds = config.timeout_seconds
        self._error = grpc.RpcError
        target = f"unix-abstract:{config.path[1:]}" if config.path.startswith("@") else f"unix:{config.path}"
        self._channel = grpc.insecure_channel(target, options=(("grpc.enable_http_proxy", 0), ("grpc.max_reconnect_backoff_ms", 2000)))

    def _call(self, method: str, request: bytes) -> kms_messages.Message:
        call = self._channel.unary_unary(_SERVICE + method, request_serializer=None, response_deserializer=None)
        try:
            return kms_messages.decode(call(request, timeout=self._timeout_seconds, wait_for_ready=False))
        except self._error as error:
            code = "".join(part.capitalize() for part in error.code().name.split("_"))
            raise KmsError(
                f"rpc error: code = {code} desc = {error.details()}", away=code in ("Unavailable", "DeadlineExceeded")
            ) from error
        except kms_messages.MessageError as error:
            raise KmsError(str(error)) from error

    def status(self) -> Status:
        found = self._call("Status", b"")
        return Status(version=found.text_of(1), healthz=found.text_of(2), key_id=found.text_of(3))

    def encrypt(self, plaintext: bytes) -> Encrypted:
        found = self._call("Encrypt", kms_messages.encode({1: plaintext, 2: str(uuid.uuid4())}))
        return Encrypted(ciphertext=found.bytes_of(1), key_id=found.text_of(2), annotations=found.map_of(3))

    def decrypt(self, ciphertext: bytes, key_id: str, annotations: Mapping[str, bytes]) -> bytes:
        request = kms_messages.encode({1: ciphertext, 2: str(uuid.uuid4()), 3: key_id, 4: annotations})
        return self._call("Decrypt", request).bytes_of(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seed:
    cipher: Cipher
    encrypted: Encrypted
    expires_at: float


class KmsProvider:
    """``look`` at the start and then again after each ``next_look_seconds``. ``now``: seconds since the epoch."""

    def __init__(self, config: configuration.Kms, plugin: Plugin, now: Callable[[], float] = time.time) -> None:
        self.name = config.name
        self.prefix = f"k8s:enc:kms:v2:{config.name}:".encode()
        self._plugin = plugin
        self._now = now
        self._seed: _Seed | None = None
        self._known: dict[bytes, Cipher] = {}
        #: until when it is not asked for seeds again, since it did not answer, and what it said. Each question waits for its whole
        #: timeout, and there may be a seed for each start that values are left of.
        self._away: tuple[float, str] | None = None
        self._refused_some = False
        #: what is wrong with the plugin, for health checks
        self.problem = "the plugin was not asked yet"

    @property
    def next_look_seconds(self) -> float:
        return UNHEALTHY_SECONDS if self.problem else HEALTHY_SECONDS

    def look(self) -> None:
        """Ask the plugin how it is, and have a new seed encrypted where its key has changed. Blocks."""
        try:
            status = self._plugin.status()
            self._check(status)
            seed = self._seed
            if seed is None or seed.encrypted.key_id != status.key_id:
                self._renew()
            else:
                self._seed = _Seed(cipher=seed.cipher, encrypted=seed.encrypted, expires_at=self._now() + WRITE_SECONDS)
        except KmsError as error:
            self.problem = str(error)
            logger.warning("KMS plugin: provider=%s problem=%s", self.name, error)
        else:
            self.problem = ""
            self._away = None

    def maybe_forget_refusals(self) -> bool:
        """Whether values could not be read for want of the plugin, which is well again: they are to be read again."""
        if self.problem or not self._refused_some:
            return False
        self._refused_some = False
        return True

    def _check(self, status: Status) -> None:
        wrong = []
        if status.healthz != "ok":
            wrong.append(f"got unexpected healthz status: {status.healthz}")
        if status.version not in ("v2", "v2beta1"):
            wrong.append(f"expected KMSv2 API version v2, got {status.version}")
        if not 0 < len(status.key_id) <= KEY_ID_BYTES_MAX:
            wrong.append(f'got invalid KMSv2 KeyID hash "{_hash(status.key_id)}": {_bad_key_id(status.key_id)}')
        if wrong:
            told = wrong[0] if len(wrong) == 1 else f"[{', '.join(wrong)}]"
            raise KmsError(f"kmsv2 Provider {self.name} is not healthy, error: {told}")

    def _renew(self) -> None:
        """A key that the plugin encrypts with, and its status does not tell yet, or no more, is as good."""
        material = os.urandom(SEED_BYTES)
        try:
            encrypted = self._plugin.encrypt(material)
        except KmsError as error:
            raise KmsError(f"failed to encrypt DEK, error: {error}") from error
        problem = _bad_object(encrypted.ciphertext, encrypted.key_id, encrypted.annotations)
        if problem:
            raise KmsError(problem)
        cipher = SeededAesGcm(material)
        self._seed = _Seed(cipher=cipher, encrypted=encrypted, expires_at=self._now() + WRITE_SECONDS)
        self._keep(_cache_key(_DERIVED, encrypted.ciphertext, encrypted.key_id, encrypted.annotations), cipher)
        logger.info("KMS plugin: provider=%s encrypts with a new key: key_id_hash=%s", self.name, _hash(encrypted.key_id))

    def _keep(self, key: bytes, cipher: Cipher) -> None:
        if len(self._known) >= SEEDS_MAX:
            self._known.clear()
        self._known[key] = cipher

    def encrypt(self, data: bytes, where: bytes) -> bytes:
        seed = self._seed
        if seed is None:
            raise EncryptionError(f"kms provider {self.name} has no key to encrypt with: {self.problem}")
        now = self._now()
        if now > seed.expires_at:
            raise EncryptionError(
                f'encryptedDEKSource with keyID hash "{_hash(seed.encrypted.key_id)}" expired at {_rfc3339(seed.expires_at)} '
                f"(current time is {_rfc3339(now)})"
            )
        encrypted = seed.encrypted
        return self.prefix + kms_messages.encode(
            {
                1: seed.cipher.encrypt(data, where),
                2: encrypted.key_id,
                3: encrypted.ciphertext,
                4: encrypted.annotations,
                5: _DERIVED,
            }
        )

    def decrypt(self, data: bytes, where: bytes) -> tuple[bytes, bool]:
        try:
            found = kms_messages.decode(data[len(self.prefix) :])
        except kms_messages.MessageError as error:
            raise DecryptionError(f"proto: cannot parse invalid wire-format data: {error}") from error
        content, key_id, source = found.bytes_of(1), found.text_of(2), found.bytes_of(3)
        annotations, kind = found.map_of(4), found.numbers.get(5, 0)
        problem = _bad_object(source, key_id, annotations)
        if kind not in (0, _DERIVED):
            problem = f"unknown encryptedDEKSourceType: {kind}"
        elif not content:
            problem = "encrypted data is empty"
        if problem:
            raise DecryptionError(problem)
        cache_key = _cache_key(kind, source, key_id, annotations)
        cipher = self._known.get(cache_key)
        if cipher is None:
            cipher = self._fetched(kind, source, key_id, annotations)
            self._keep(cache_key, cipher)
        seed = self._seed
        stale = seed is not None and (key_id != seed.encrypted.key_id or kind != _DERIVED)
        return cipher.decrypt(content, where), stale

    def _fetched(self, kind: int, source: bytes, key_id: str, annotations: Mapping[str, bytes]) -> Cipher:
        if self._away is not None and self._now() < self._away[0]:
            raise DecryptionError(self._away[1])
        try:
            material = self._plugin.decrypt(source, key_id, annotations)
            return SeededAesGcm(material) if kind == _DERIVED else AesGcm(material)
        except KmsError as error:
            text = f"failed to decrypt DEK, error: {error}"
            self._refused_some = True
            if error.away:
                self._away = self._now() + UNHEALTHY_SECONDS, text
            raise DecryptionError(text) from error
        except ValueError as error:
            raise DecryptionError(f"crypto/aes: invalid key size {len(material)}") from error


def _cache_key(kind: int, source: bytes, key_id: str, annotations: Mapping[str, bytes]) -> bytes:
    digest = hashlib.sha256(bytes([kind]))
    for part in (source, key_id.encode(), *(x for key, value in sorted(annotations.items()) for x in (key.encode(), value))):
        digest.update(len(part).to_bytes(4, "big"))
        digest.update(part)
    return digest.digest()


def _bad_object(source: bytes, key_id: str, annotations: Mapping[str, bytes]) -> str:
    if not source:
        return "failed to validate encrypted DEK source: encrypted DEK source is empty"
    if len(source) > SOURCE_BYTES_MAX:
        words = f"encrypted DEK source is {len(source)} bytes, which exceeds the max size of {SOURCE_BYTES_MAX}"
        return f"failed to validate encrypted DEK source: {words}"
    if not 0 < len(key_id) <= KEY_ID_BYTES_MAX:
        return f"failed to validate key id: {_bad_key_id(key_id)}"
    size = sum(len(key) + len(value) for key, value in annotations.items())
    if size > ANNOTATIONS_BYTES_MAX:
        words = f"total size of annotations is {size}, which exceeds the max size of {ANNOTATIONS_BYTES_MAX}"
        return f"failed to validate annotations: {words}"
    return ""


def _bad_key_id(key_id: str) -> str:
    return f"keyID is {len(key_id)} bytes, which exceeds the max size of {KEY_ID_BYTES_MAX}" if key_id else "keyID is empty"


def _hash(key_id: str) -> str:
    return f"sha256:{hashlib.sha256(key_id.encode()).hexdigest()}" if key_id else ""


def _rfc3339(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
