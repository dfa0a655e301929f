"""A browser's push service on this machine, which reads what the browser would."""

import json
import os
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from support.loopback import LoopbackRequest, LoopbackServer

from steersman.gateway.web.push_message import coded, decoded, new_key, public_key

CURVE = ec.SECP256R1()


def opened(body: bytes, key: str, secret: bytes) -> bytes:
    """Decrypt a message with a browser's private key and its secret, after RFC 8291."""
    salt, sender, sealed = body[:16], body[21:86], body[86:]
    assert (int.from_bytes(body[16:20], "big"), body[20]) == (4096, 65)
    private = ec.derive_private_key(int.from_bytes(decoded(key), "big"), CURVE)
    theirs = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, sender)
    info = b"WebPush: info\0" + decoded(public_key(key)) + sender
    base = HKDF(SHA256(), 32, secret, info).derive(private.exchange(ec.ECDH(), theirs))
    content = HKDF(SHA256(), 16, salt, b"Content-Encoding: aes128gcm\0").derive(base)
    nonce = HKDF(SHA256(), 12, salt, b"Content-Encoding: nonce\0").derive(base)
    plain = AESGCM(content).decrypt(nonce, sealed, None)
    assert plain.endswith(b"\2")
    return plain[:-1]


def is_signed(authorization: str) -> bool:
    """Whether a header's signature is that of the key that it names."""
    token, key = (
        part.partition("=")[2] for part in authorization.removeprefix("vapid ").split(", ")
    )
    said, _, signature = token.rpartition(".")
    pair = decoded(signature)
    signed = utils.encode_dss_signature(
        int.from_bytes(pair[:32], "big"), int.from_bytes(pair[32:], "big")
    )
    point = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, decoded(key))
    try:
        point.verify(signed, said.encode(), ec.ECDSA(SHA256()))
    except InvalidSignature:
        return False
    return True


class PushService(LoopbackServer):
    """One browser, and the service of its maker on this machine; `status` is what it answers."""

    def __init__(self) -> None:
        super().__init__(_Request)
        self.key = new_key()
        self.auth = os.urandom(16)
        self.told: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.status = 201
        self.name = f"127.0.0.1:{self.server_port}"

    def read(self, body: bytes) -> dict[str, Any]:
        """Decrypt a message as the browser does."""
        return json.loads(opened(body, self.key, self.auth))

    def subscription(self) -> dict[str, str]:
        """Return what a browser tells the page."""
        endpoint = f"{self.url}/send/one"
        return {"endpoint": endpoint, "p256dh": public_key(self.key), "auth": coded(self.auth)}


class _Request(LoopbackRequest):
    server: PushService

    def do_POST(self) -> None:
        """Remember what is pushed."""
        self.server.told.append((dict(self.headers), self.server.read(self.content())))
        self.reply(self.server.status)
