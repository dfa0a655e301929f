"""What of the environment tools see."""

from steersman.ports.tools.environment import clean_environment

ENVIRON = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "LC_TIME": "C",
    "TERM": "xterm-256color",
    "OPENAI_API_KEY": "sk-1",
    "GITHUB_TOKEN": "ghp",
    "AWS_SECRET_ACCESS_KEY": "s",
    "MY_NAME": "me",
    "MY_TOKEN": "t",
    "RANDOM_THING": "x",
    "SSH_AUTH_SOCK": "/tmp/agent",
}


def test_clean_environment():
    """Only well-known names pass, and no terminal is pretended."""
    assert clean_environment(ENVIRON) == {
        "PATH": "/bin",
        "HOME": "/home/me",
        "LC_TIME": "C",
        "TERM": "dumb",
    }


def test_allow():
    """A full name is allowed whatever it is; a pattern carries no secret."""
    cleaned = clean_environment(ENVIRON, ["MY_*", "GITHUB_TOKEN"])

    assert cleaned.keys() == {"PATH", "HOME", "LC_TIME", "TERM", "MY_NAME", "GITHUB_TOKEN"}


def test_allow_everything():
    """Even `*` carries no secret."""
    assert "sk-1" not in clean_environment(ENVIRON, ["*"]).values()
