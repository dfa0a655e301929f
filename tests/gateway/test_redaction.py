"""What is recognized as a secret by its form, and what is not."""

import pytest

from steersman.gateway.wording import secret_kind
from steersman.gateway.wording.redaction import Redactor
from steersman.gateway.wording.secret_kind import COVER, KINDS, SecretKind

ORDINARY = """\
a risk-taking-and-long-winded-word, and the token is used: see tokens = 12, max_tokens: 4096000
password: str = field(); token: Optional[str]; password: string; secret: required
def f(token: str, *, secret: SecretKind) -> None: self.token = token
        self.token=token
token = tokenizer.next(); password = get_password2(x); const token = useToken();
connect(password=password, token=self.token, secret=settings.secret)
if password == "abcdefgh" or token != 'abcdefgh': raise ValueError
Bearer authentication and basic functionality, a bearer of news, Basic understanding
550e8400-e29b-41d4-a716-446655440000 da39a3ee5e6b4b0d3255bfef95601890afd80709
sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 1700000000:deadbeef
{"password": {"type": "string"}, "token": null, "secret": true}
npm_config_registry=https://x pypi-attestations SG.something hf_hub_download(x) sk-learn xai-grpc
PASSWORD=${PASSWORD} TOKEN={{ secrets.TOKEN }} password=<your password> api_key: "${KEY}"
https://example.org:8080/a@b http://[::1]:80/ user@host:path 12:34:56 ssh://git@host:22/x
-----BEGIN CERTIFICATE-----
MIIBsjCCAVmgAwIBAgIUQ2
-----END CERTIFICATE-----
eyJ alone, eyJhbGciOiJIUzI1NiJ9 without a second part
PWD=/home/me OLDPWD=/home/me/work1 bypass=enabled compass: 12345678 docker run -u node:node x && pass
3 pass, 1 fail; pass: ok; curl -s https://example.org:443/x -o y; cookies: none, a cookie = crumb
steersman serve --token-file path/to/file1 --password-stdin --api-key-env OPENAI_API_KEY
The secret: it is at 10:30. Authorization: required. Set-Cookie expires.
git commit -m "token: handle secrets" && git log --author="a b" -- "--x"
"""


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_of_secret_is_covered(kind: SecretKind) -> None:
    """Of its example only what stands before the secret is left, also in a line of other text."""
    found = kind.pattern.search(kind.example)
    assert found is not None
    secret = found[0].removeprefix(found[1])
    assert secret not in kind.pattern.sub(rf"\1{COVER}", kind.example)
    shown = Redactor({}).text(f"before\n{kind.example}\nafter")
    assert COVER in shown
    assert secret not in shown
    assert shown.startswith("before\n")
    assert shown.endswith("\nafter") or kind.name == "private key"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_secret_in_a_long_text_is_covered(
    kind: SecretKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it stands, also where one slice of the text ends and the next begins."""
    example = f" {kind.example}\n\n"
    shown = Redactor({}).text(example)
    monkeypatch.setattr(secret_kind, "_SLICE", 600)
    monkeypatch.setattr(secret_kind, "_OVERLAP", 300)
    for lead in range(0, 600, 11):
        text = "." * lead + example * 9
        assert Redactor({}).text(text) == "." * lead + shown * 9


@pytest.mark.parametrize("line", ORDINARY.splitlines())
def test_ordinary_text_stays(line: str) -> None:
    """Hashes, identifiers, code and prose are shown as they are."""
    assert Redactor({}).text(line) == line


@pytest.mark.parametrize(
    "name",
    [
        "api_key",
        "apiKey",
        "client-secret",
        "access_token",
        "PASSWORD",
        "Authorization",
        "Cookie",
        "db_pass",
    ],
)
def test_a_field_with_a_telling_name_is_covered(name: str) -> None:
    """Whatever its value is, and however the name is written."""
    assert Redactor({}).data({name: "word"}) == {name: COVER}


@pytest.mark.parametrize("kind", [list, dict])
def test_data_of_any_depth_is_shown(kind: type) -> None:
    """What lies deeper than anything that draws it could follow is left out."""
    data: object = "end"
    for _ in range(3_000):
        data = [data] if kind is list else {"a": data}
    assert "nested too deeply" in str(Redactor({}).data(data))
