"""A Matrix server on loopback (Synapse, in an environment of its own), and people who use plain HTTP.

`.ci/synapse` installs the server; `STEERSMAN_TEST_SYNAPSE` names the Python of another installation.
"""

import hashlib
import hmac
import itertools
import json
import os
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote

from support.patience import seconds
from support.server_program import ServerProgram

ROOT = Path(__file__).resolve().parents[2]
NAME = "chat.test"
SECRET = "only for tests"
_numbers = itertools.count(1)

Json = dict[str, Any]


def python() -> Path | None:
    """Return the Python that has Synapse, if there is one."""
    own = ROOT / ".venv" / "synapse" / "bin" / "python"
    chosen = Path(os.environ.get("STEERSMAN_TEST_SYNAPSE", own))
    return chosen if (chosen.parent / "synapse_homeserver").exists() else None


class Refused(Exception):
    """The server answers with an error."""

    def __init__(self, status: int, body: Json) -> None:
        super().__init__(f"{status} {body}")
        self.status, self.body = status, body


class MatrixServer(ServerProgram):
    """A server in a folder; it can be killed and started again there, on the same port."""

    def __init__(self, folder: Path, *, is_limited: bool = False) -> None:
        super().__init__(folder)
        self.address = f"http://127.0.0.1:{self.port}"
        (folder / "homeserver.yaml").write_text(json.dumps(self._settings(is_limited)))
        (folder / "log.yaml").write_text(json.dumps(_LOG))

    def _settings(self, is_limited: bool) -> Json:
        lax = {"per_second": 1000, "burst_count": 1000}
        rates: Json = {
            "rc_message": {"per_second": 0.5, "burst_count": 2} if is_limited else lax,
            "rc_registration": lax,
            "rc_admin_redaction": lax,
            "rc_login": {"address": lax, "account": lax, "failed_attempts": lax},
            "rc_joins": {"local": lax, "remote": lax},
            "rc_joins_per_room": lax,
            "rc_invites": {"per_room": lax, "per_user": lax, "per_issuer": lax},
            "rc_room_creation": lax,
            "rc_media_create": lax,
        }
        listener: Json = {
            "bind_addresses": ["127.0.0.1"],
            "port": self.port,
            "type": "http",
            "tls": False,
            "resources": [{"names": ["client", "media"], "compress": False}],
        }
        return rates | {
            "server_name": NAME,
            "pid_file": f"{self.folder}/pid",
            "listeners": [listener],
            "database": {"name": "sqlite3", "args": {"database": f"{self.folder}/data.db"}},
            "log_config": f"{self.folder}/log.yaml",
            "media_store_path": f"{self.folder}/media",
            "signing_key_path": f"{self.folder}/signing.key",
            "registration_shared_secret": SECRET,
            "macaroon_secret_key": SECRET,
            "form_secret": SECRET,
            "report_stats": False,
            "trusted_key_servers": [],
            "suppress_key_server_warning": True,
            "federation_domain_whitelist": [],
            "url_preview_enabled": False,
            "push": {"enabled": False},
            "presence": {"enabled": False},
            "bcrypt_rounds": 4,
        }

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        found = python()
        assert found is not None
        command = [found, "-m", "synapse.app.homeserver", "-c", f"{self.folder}/homeserver.yaml"]
        if not (self.folder / "signing.key").exists():
            subprocess.run([*command, "--generate-keys"], check=True, capture_output=True)
        self.launch(*command, cwd=self.folder)

    def ask(self) -> None:
        """Raise `OSError` while it does not answer."""
        call(f"{self.address}/_matrix/client/versions")

    def person(self, name: str, *, shown: str = "") -> "Person":
        """Register somebody; the name gets a number, so that each is new."""
        address = f"{self.address}/_synapse/admin/v1/register"
        user, password = f"{name}{next(_numbers)}", "correct horse"
        nonce = call(address)["nonce"]
        text = "\0".join((nonce, user, password, "notadmin")).encode()
        mac = hmac.new(SECRET.encode(), text, hashlib.sha1).hexdigest()
        body = {"nonce": nonce, "username": user, "password": password, "mac": mac}
        made = call(address, "POST", body | {"displayname": shown or name})
        return Person(self.address, made["user_id"], made["access_token"], password)


class Person:
    """Somebody with an account, who knows nothing but HTTP."""

    def __init__(self, address: str, user: str, token: str, password: str) -> None:
        self.address, self.id, self.token, self.password = address, user, token, password
        self._transactions = itertools.count(1)

    def ask(self, path: str, method: str = "GET", body: Json | None = None) -> Json:
        """Make a request, and return the answer; raises `Refused`."""
        return call(f"{self.address}/_matrix/client/v3/{path}", method, body, token=self.token)

    def room(self, *others: "Person", **options: Any) -> str:
        """Make a room with others invited, and return its id."""
        invited = [other.id for other in others]
        return self.ask("createRoom", "POST", {"invite": invited} | options)["room_id"]

    def join(self, room: str) -> None:
        """Enter a room."""
        self.ask(f"join/{quote(room)}", "POST", {})

    def send(self, room: str, content: Json | str, kind: str = "m.room.message") -> str:
        """Send an event, and return its id; a text is a message."""
        if isinstance(content, str):
            content = {"msgtype": "m.text", "body": content}
        path = f"rooms/{quote(room)}/send/{kind}/t{next(self._transactions)}"
        return self.ask(path, "PUT", content)["event_id"]

    def react(self, room: str, message: str, key: str) -> str:
        """React to a message."""
        relation = {"rel_type": "m.annotation", "event_id": message, "key": key}
        return self.send(room, {"m.relates_to": relation}, "m.reaction")

    def edit(self, room: str, message: str, text: str) -> str:
        """Change a message."""
        new = {"msgtype": "m.text", "body": text}
        relation = {"rel_type": "m.replace", "event_id": message}
        return self.send(
            room, new | {"body": f"* {text}", "m.new_content": new, "m.relates_to": relation}
        )

    def redact(self, room: str, message: str) -> None:
        """Take a message back."""
        path = f"rooms/{quote(room)}/redact/{quote(message)}/t{next(self._transactions)}"
        self.ask(path, "PUT", {})

    def upload(self, content: bytes, mimetype: str = "text/plain") -> str:
        """Upload a file, and return its address."""
        address = f"{self.address}/_matrix/media/v3/upload"
        return call(address, "POST", content, token=self.token, kind=mimetype)["content_uri"]

    def read(self, room: str, most: int = 200) -> list[Json]:
        """Return the latest events of a room, oldest first."""
        return self.ask(f"rooms/{quote(room)}/messages?dir=b&limit={most}")["chunk"][::-1]

    def texts(self, room: str) -> list[str]:
        """Return the bodies of a room's messages, oldest first."""
        return [e["content"]["body"] for e in self.read(room) if "body" in e["content"]]


def call(
    address: str,
    method: str = "GET",
    body: Json | bytes | None = None,
    *,
    token: str = "",
    kind: str = "application/json",
) -> Json:
    """Make a request, and return the JSON of the answer; raises `Refused` and `OSError`."""
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    headers = {"Content-Type": kind} | ({"Authorization": f"Bearer {token}"} if token else {})
    request = urllib.request.Request(address, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=seconds(20)) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            raise Refused(error.code, json.loads(error.read() or b"{}")) from error


_LOG: Json = {
    "version": 1,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"level": "WARNING", "handlers": ["console"]},
    "disable_existing_loggers": False,
}
