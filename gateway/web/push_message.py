"""A message for a browser, as its push service takes it: encrypted (RFC 8291), and signed (RFC 8292).

Needs `cryptography`, the extra `push`. Keys are points of the curve P-256; texts are base64url without
padding, as browsers write them.
"""

from __future__ import annotations

import base64
import json
import os

from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

_CURVE = ec.SECP256R1()
_RECORD = 4096
"""Bytes of a record; a message is one."""
_LAST = b"\x02"
"""What ends the last record."""


def new_key() -> str:
    """Make a private key."""
    number = ec.generate_private_key(_CURVE).private_numbers().private_value
    return coded(number.to_bytes(32, "big"))


def public_key(key: str) -> str:
    """Return the public key of a private one."""
    return coded(_point(_private(key)))


def encrypted(
    data: bytes, browser: bytes, secret: bytes, *, key: str = "", salt: bytes = b""
) -> bytes:
    """Encrypt up to 3,993 bytes for a browser's public key and its authentication secret.

    `key` and `salt` are new ones unless a test gives them. Raises `ValueError` if the key is none.
    """
    theirs = ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, browser)
    own = _private(key or new_key())
    salt = salt or os.urandom(16)
    shared = own.exchange(ec.ECDH(), theirs)
    info = b"WebPush: info\x00" + browser + _point(own)
    base = HKDF(SHA256(), 32, secret, info).derive(shared)
    content = HKDF(SHA256(), 16, salt, b"Content-Encoding: aes128gcm\x00").derive(base)
    nonce = HKDF(SHA256(), 12, salt, b"Content-Encoding: nonce\x00").derive(base)
    sealed = AESGCM(content).encrypt(nonce, data + _LAST, None)
    point = _point(own)
    return salt + _RECORD.to_bytes(4, "big") + bytes((len(point),)) + point + sealed


def authorization(key: str, audience: str, contact: str, expires: int) -> str:
    """Sign who sends: for an origin, until a time in seconds since 1970; `contact` is an address."""
    claims = {"aud": audience, "exp": expires, "sub": contact}
    parts = ({"typ": "JWT", "alg": "ES256"}, claims)
    said = ".".join(coded(json.dumps(part).encode()) for part in parts)
    signed = _private(key).sign(said.encode(), ec.ECDSA(SHA256()))
    pair = (number.to_bytes(32, "big") for number in utils.decode_dss_signature(signed))
    return f"vapid t={said}.{coded(b''.join(pair))}, k={public_key(key)}"


def coded(data: bytes) -> str:
    """Write bytes as browsers do."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decoded(text: str) -> bytes:
    """Read what `coded` wrote. Raises `ValueError`."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _private(key: str) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(int.from_bytes(decoded(key), "big"), _CURVE)


def _point(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
