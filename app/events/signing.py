"""Standard Webhooks: secrets, signatures, and secrets sealed at rest."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from datetime import datetime

from cryptography.fernet import Fernet

SECRET_PREFIX = "whsec_"  # noqa: S105 - the public prefix of the standard


def new_secret() -> str:
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def _signature(secret: str, content: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    return "v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()


def signed_headers(message_id: str, at: datetime, body: bytes, active_secrets: Sequence[str]) -> dict[str, str]:
    """Return the headers of a message; during a rotation there is one signature for each secret."""
    timestamp = str(int(at.timestamp()))
    content = f"{message_id}.{timestamp}.".encode() + body
    return {
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(_signature(secret, content) for secret in active_secrets),
        "Content-Type": "application/cloudevents+json",
        "User-Agent": "gpuquote-webhooks/1",
    }


class Seal:
    """Encrypts webhook secrets with a key derived from the service's own."""

    def __init__(self, signing_key: bytes) -> None:
        derived = hashlib.sha256(b"webhook secrets\0" + signing_key).digest()
        self._fernet = Fernet(base64.urlsafe_b64encode(derived))

    def close(self, secret: str) -> str:
        return self._fernet.encrypt(secret.encode()).decode()

    def open(self, sealed: str) -> str:
        return self._fernet.decrypt(sealed.encode()).decode()
