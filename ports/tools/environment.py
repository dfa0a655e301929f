"""The environment of tools: a short list of harmless variables, and those that people allow."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

ALLOWED = tuple(
    "CARGO_HOME GOPATH GOROOT HOME JAVA_HOME LANG LANGUAGE LC_* LD_LIBRARY_PATH LOGNAME NVM_DIR PATH "
    "PYENV_ROOT RUSTUP_HOME SHELL SSL_CERT_DIR SSL_CERT_FILE TMPDIR TZ USER VIRTUAL_ENV "
    "XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_RUNTIME_DIR".split()
)
_SECRET = ("AUTH", "CREDENTIAL", "KEY", "PASS", "PRIVATE", "SECRET", "TOKEN")


def clean_environment(environ: Mapping[str, str], allow: Iterable[str] = ()) -> dict[str, str]:
    """Keep the variables that tools may see.

    `allow` names more of them, or patterns such as `MY_*`. A pattern does not carry a name that
    looks like a secret (`MY_TOKEN`); only the full name does.
    """
    names = (*ALLOWED, *allow)
    patterns = tuple(name for name in names if set(name) & set("*?["))

    def is_allowed(name: str) -> bool:
        if name in names:
            return True
        is_secret = any(word in name.upper() for word in _SECRET)
        return not is_secret and any(fnmatchcase(name, pattern) for pattern in patterns)

    kept = {name: value for name, value in environ.items() if is_allowed(name)}
    return {**kept, "TERM": "dumb"}
