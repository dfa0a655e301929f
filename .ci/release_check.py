"""Build a release and prove it: that it is what the commit says, and that it installs and runs.

`make release-check` runs it; then `dist/` has the packages, and the list of what they were tested with.
The checks are those of `CHECKS`, in their order; a table says what each found. Their tools are locked in
`.ci/release.lock` and installed into `.venv/release`.

No byte depends on when and where it is built: all is made from the files of the commit, with its time.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import urllib.request
import zipfile
from collections.abc import Mapping
from pathlib import Path

from notes import section

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ROOT / ".venv" / "release"
DIST = ROOT / "dist"
LOCK = ROOT / ".ci" / "user.lock"
"""What is listed and audited: the versions that `make chat` installs."""
IMAGE_LOCK = ROOT / ".ci" / "image.lock"
NOBODY = 65534
HASHED = ("--require-hashes", "--no-deps", "--only-binary", ":all:", "--requirement")
SCRIPT = '[[answer]]\nmatch = "there"\ntext = "I am here."\n'
SETTINGS = (
    '[models.main]\nprovider = "scripted"\nscript = "{}"\n[agents.assistant]\nmodel = "main"\n'
)
UNREACHED = re.compile(r"requests\.exceptions|blocking this service")
FOR_SHELLS = re.compile(r"/share/(?:man|bash-completion|fish|zsh)/")


class CheckFailed(Exception):
    """A check that does not hold; the text says why."""


def run(
    *words: str | Path, timeout: float = 300, env: Mapping[str, str] | None = None, **more
) -> str:
    """Run a program to its end and return what it printed.

    Raises:
        CheckFailed: It failed, with the end of what it printed.
    """
    done = subprocess.run(
        [str(word) for word in words],
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        **more,
    )
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise CheckFailed("\n".join([f"`{Path(words[0]).name} {words[1]} …`:", *lines[-15:]]))
    return done.stdout


def tool(name: str) -> Path:
    """Where a tool of the lock file is."""
    return TOOLS / "bin" / name


def digest(path: Path) -> str:
    """The hash of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def install_tools() -> None:
    """Make the environment of the tools, unless it is there as the lock file says."""
    lock, mark = ROOT / ".ci" / "release.lock", TOOLS / "made"
    if mark.exists() and mark.read_text() == digest(lock):
        return
    shutil.rmtree(TOOLS, ignore_errors=True)
    run(sys.executable, "-m", "venv", "--without-pip", TOOLS)
    pip = (sys.executable, "-m", "pip", "--python", tool("python"), "install", "--quiet")
    run(*pip, "--disable-pip-version-check", *HASHED, lock)
    mark.write_text(digest(lock))


class Release:
    """What is built of a commit; `scratch` is a folder that is removed in the end."""

    def __init__(self, scratch: Path, tag: str) -> None:
        self.scratch = scratch
        self.tag = tag
        self.project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
        self.version: str = self.project["version"]
        self.epoch = int(run("git", "-C", ROOT, "log", "-1", "--format=%ct"))
        self.wheel = DIST / f"steersman-{self.version}-py3-none-any.whl"
        self.source = DIST / f"steersman-{self.version}.tar.gz"
        self.bill = DIST / f"steersman-{self.version}.cdx.json"
        self.user: tuple[str, ...] = ()
        self.place = scratch / "user"

    # What the commit says

    def check_version(self) -> str:
        """The changelog has a section for the version; a tag has the same one, and a date."""
        heading, body = section(self.version)
        if self.tag and self.tag != f"v{self.version}":
            raise CheckFailed(
                f"the tag is {self.tag}, the version in pyproject.toml {self.version}"
            )
        if self.tag and not re.search(r"\d{4}-\d\d-\d\d", heading):
            raise CheckFailed(f"no date of the release in CHANGELOG.md: `## {heading}`")
        hints = (ROOT / "workflows" / "extras.py").read_text("utf-8")
        if self.tag and "\nRELEASED: bool = True\n" not in hints:
            raise CheckFailed("hints and pages do not name the package: `RELEASED` in extras.py")
        return f"{heading}: {len(body.splitlines())} lines in CHANGELOG.md"

    # What is built

    def _checked_out(self, name: str) -> Path:
        """Write the files of the commit to a folder of that name."""
        folder = self.scratch / name / "steersman-source"
        folder.mkdir(parents=True)
        archive = self.scratch / name / "source.tar"
        run("git", "-C", ROOT, "archive", "--output", archive, "HEAD")
        with tarfile.open(archive) as files:
            files.extractall(folder, filter="tar")
        return folder

    def _built(self, folder: Path, *formats: str, **env: str) -> list[Path]:
        """Build a folder and return what came out, with all times and owners those of the commit."""
        out = folder.parent / "out"
        given = {"SOURCE_DATE_EPOCH": str(self.epoch), **env}
        build = (tool("python"), "-m", "build", "--no-isolation", "--outdir", out)
        run(*build, *formats, folder, env=given)
        for path in out.glob("*.tar.gz"):
            path.write_bytes(self._timeless(path))
        return sorted(out.iterdir())

    def _timeless(self, archive: Path) -> bytes:
        """Return a source distribution again: setuptools gives it the time of the build."""
        packed = io.BytesIO()
        with (
            tarfile.open(archive) as old,
            gzip.GzipFile("", "wb", 9, packed, self.epoch) as zipped,
            tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as new,
        ):
            for member in sorted(old.getmembers(), key=lambda member: member.name):
                member.uid = member.gid = 0
                member.uname = member.gname = ""
                member.mtime = self.epoch
                member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
                member.pax_headers = {}
                new.addfile(member, old.extractfile(member) if member.isfile() else None)
        return packed.getvalue()

    def check_builds(self) -> str:
        """Two builds, in other folders, time zones and orders of hashes, are the same bytes."""
        both = ("--sdist", "--wheel")
        env = {"TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7", "LC_ALL": "C"}
        first = self._built(self._checked_out("one"), *both, TZ="UTC", PYTHONHASHSEED="1")
        second = self._built(self._checked_out("a second one"), *both, **env)
        for one, other in zip(first, second, strict=True):
            if digest(one) != digest(other):
                raise CheckFailed(f"two builds of {one.name} differ")
        shutil.rmtree(DIST, ignore_errors=True)
        DIST.mkdir()
        for path in first:
            shutil.copy(path, DIST)
        return "; ".join(
            f"{path.name}, {path.stat().st_size:,} bytes, {digest(path)[:12]}…" for path in first
        )

    def check_source(self) -> str:
        """The wheel that is built from the source distribution is the same as that of the commit."""
        folder = self.scratch / "from source"
        with tarfile.open(self.source) as files:
            files.extractall(folder, filter="data")
        (unpacked,) = folder.iterdir()
        (wheel,) = self._built(unpacked, "--wheel")
        if digest(wheel) != digest(self.wheel):
            raise CheckFailed("the wheel from the source distribution is another one")
        with tarfile.open(self.source) as files:
            return f"the same wheel from its {len(files.getnames())} files"

    def check_metadata(self) -> str:
        """The index takes both files, and can show the README."""
        run(tool("twine"), "check", "--strict", self.wheel, self.source)
        return "twine check --strict passed both"

    def check_content(self) -> str:
        """Manual pages and completions for shells are in the wheel, if the project has any."""
        with zipfile.ZipFile(self.wheel) as archive:
            names = archive.namelist()
        held = {Path(name).name for name in names if FOR_SHELLS.search(name)}
        listed = run("git", "-C", ROOT, "ls-files", "docs/man", "docs/completions").splitlines()
        wanted = {Path(name).name for name in listed}
        if wanted - held:
            raise CheckFailed(f"not in the wheel: {', '.join(sorted(wanted - held))}")
        return f"{len(names)} files, of these {len(held)} manual pages and completions"

    # What it stands on

    def check_bill(self) -> str:
        """The locked dependencies are listed with their hashes, as CycloneDX."""
        listing = ("--mc-type", "application", "--pyproject", ROOT / "pyproject.toml")
        quiet = (tool("python"), "-W", "ignore", "-m", "cyclonedx_py", "requirements", LOCK)
        run(*quiet, *listing, "--output-reproducible", "--output-file", self.bill)
        listed = json.loads(self.bill.read_text())
        if len(listed["components"]) != len(
            re.findall(r"^[\w.-]+==", LOCK.read_text(), re.MULTILINE)
        ):
            raise CheckFailed(f"{self.bill.name} has not every package of {LOCK.name}")
        return f"CycloneDX {listed['specVersion']}: {len(listed['components'])} packages"

    def check_audit(self) -> str:
        """No locked version has a known vulnerability, as far as the service of PyPI answers."""
        found = self.scratch / "audit.json"
        words = ("--disable-pip", *HASHED[:1], "--requirement", LOCK, "--progress-spinner", "off")
        try:
            run(tool("pip-audit"), *words, "--timeout", "10", "--format", "json", "--output", found)
        except CheckFailed as error:
            if not found.exists():
                if not UNREACHED.search(str(error)):
                    raise
                return f"skipped: no service: {str(error).splitlines()[-1][:100]}"
        rows = json.loads(found.read_text())["dependencies"]
        known = [row for row in rows if "skip_reason" not in row]
        if not known:
            return f"skipped: the service knows none of {len(rows)} packages; it is another index"
        if faults := [f"{row['name']} {row['version']}" for row in known if row["vulns"]]:
            raise CheckFailed(f"known to be vulnerable: {', '.join(faults)}")
        return f"{len(known)} of {len(rows)} packages known, none vulnerable"

    # What runs elsewhere

    def check_workflows(self) -> str:
        """The workflows of the forge have no known weakness."""
        folder = ROOT / ".github" / "workflows"
        run(tool("zizmor"), "--offline", "--quiet", "--no-progress", folder)
        return f"zizmor found nothing in {len(list(folder.iterdir()))} files"

    def check_image(self) -> str:
        """The file of the image keeps the rules of its linter."""
        if not tool("hadolint").exists():
            return f"skipped: no hadolint for {sys.platform} {platform.machine()}"
        run(tool("hadolint"), "--no-color", ROOT / "Containerfile")
        return "hadolint found nothing"

    # What people do with it

    def check_installation(self) -> str:
        """Another user installs the wheel into an empty environment, with what the image has."""
        wheels = self.scratch / "wheels"
        wheels.mkdir()
        pip = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check")
        run(*pip, "--dest", wheels, *HASHED, IMAGE_LOCK)
        (own,) = TOOLS.glob("lib/python*/site-packages/pip")
        shutil.copytree(own, self.place / "tools" / "pip")
        shutil.copy(self.wheel, wheels)
        python = self._other_user()
        self._as_user(python, "-m", "venv", "--without-pip", "env")
        install = ("-m", "pip", "install", "--no-index", "--no-cache-dir", "--find-links", wheels)
        path = {"PYTHONPATH": str(self.place / "tools")}
        words = (*install, "--quiet", "--disable-pip-version-check", "steersman[mcp,web]")
        self._as_user(self.place / "env/bin/python", *words, env=path)
        who = f"user {NOBODY}" if self.user else "the same user"
        installed = len(list(self.place.glob("env/lib/python*/site-packages/*.dist-info")))
        version = self._as_user(self.place / "env/bin/python", "--version").strip()
        return f"{installed} packages, by {who}, with {version}"

    def _other_user(self) -> str:
        """Choose the user, and an interpreter that he can run; the checkout he cannot change."""
        minor = f"python{sys.version_info.major}.{sys.version_info.minor}"
        if os.getuid() == 0 and shutil.which("setpriv"):
            ids = (f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
            self.user = ("setpriv", *ids, "--")
            for path in (Path(sys.executable).resolve(), Path("/usr/bin") / minor):
                try:
                    run(*self.user, "env", path, "-c", "import venv")
                except CheckFailed:
                    continue
                for folder in (self.place, *self.place.iterdir()):
                    os.chown(folder, NOBODY, NOBODY)
                return str(path)
            self.user = ()
        return sys.executable

    def _as_user(
        self, *words: str | Path, cwd: Path | None = None, env: Mapping[str, str] = {}
    ) -> str:
        """Run a program as the user, with no more than a home of its own."""
        clean = {"HOME": str(self.place), "LANG": "C.UTF-8", **env}
        path = ["PATH=/usr/bin:/bin", *(f"{name}={value}" for name, value in clean.items())]
        return run(*self.user, "env", "-i", *path, *words, cwd=cwd or self.place)

    def check_use(self) -> str:
        """It chats from `/` and from a checkout that cannot be written, and `doctor` is content."""
        checkout = self._checked_out("read only")
        run("chmod", "-R", "a-w", checkout)
        home = self.place / "home"
        program = self.place / "env/bin/steersman"
        settings = SETTINGS.format(self.place / "script.toml")
        for name, text in (("script.toml", SCRIPT), ("home/config.toml", settings)):
            self._as_user("sh", "-c", f'mkdir -p home && printf %s "$0" >{name}', text)

        def used(*words: str, cwd: Path = Path("/")) -> str:
            return self._as_user(program, *words, cwd=cwd, env={"STEERSMAN_HOME": str(home)})

        if (said := used("--version").strip()) != f"steersman {self.version}":
            raise CheckFailed(f"`steersman --version` says {said}")
        checked = len(used("doctor").splitlines())
        for folder in (Path("/"), checkout):
            if "I am here." not in (answer := used("chat", "Are you there?", cwd=folder)):
                raise CheckFailed(f"a chat in {folder} answered {answer}")
        sessions = len(json.loads(used("sessions", "list", "--json"))["sessions"])
        return f"--version, doctor ({checked} lines), {sessions} chats with a scripted model"

    def check_server(self) -> str:
        """The server begins and is well, as the health check of the image asks; afterwards it is not."""
        program = self.place / "env/bin/steersman"
        env = {"STEERSMAN_HOME": str(self.place / "home")}
        address = self._as_user(program, "serve", env=env).strip()
        try:
            with urllib.request.urlopen(f"{address}/healthz", timeout=10) as answer:
                code = answer.status
            health = Path(shutil.copy(ROOT / ".ci" / "image_health.py", self.scratch))
            health.chmod(0o644)
            status = json.loads(self._as_user(program, "serve", "status", "--json", env=env))
            asked = (self.place / "env/bin/python", health, str(status["pid"]))
            self._as_user(*asked, env=env)
        finally:
            self._as_user(program, "serve", "stop", env=env)
        return f"`GET /healthz` {code}, and the health check of the image passed"


CHECKS = (
    ("version", Release.check_version),
    ("two builds", Release.check_builds),
    ("from the source", Release.check_source),
    ("metadata", Release.check_metadata),
    ("content", Release.check_content),
    ("bill of materials", Release.check_bill),
    ("vulnerabilities", Release.check_audit),
    ("workflows", Release.check_workflows),
    ("image", Release.check_image),
    ("installation", Release.check_installation),
    ("use", Release.check_use),
    ("server", Release.check_server),
)


def main() -> int:
    """Run every check, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--tag", default="", help="the tag of the release, which has to fit")
    tag = parser.parse_args().tag
    os.umask(0o022)
    began = time.monotonic()
    install_tools()
    print(
        f"{'tools':18} {time.monotonic() - began:5.1f} s  {len(list(tool('').iterdir()))} programs"
    )
    failed = 0
    with tempfile.TemporaryDirectory(prefix="steersman-release-") as folder:
        Path(folder).chmod(0o755)
        release = Release(Path(folder), tag)
        (release.place / "tools").mkdir(parents=True)
        if run("git", "-C", ROOT, "status", "--porcelain"):
            print("what is not committed is not in it")
        for name, check in CHECKS:
            start = time.monotonic()
            try:
                found = check(release)
            except (
                CheckFailed,
                OSError,
                LookupError,
                ValueError,
                subprocess.SubprocessError,
            ) as error:
                found = f"FAILED: {error}"
                failed += 1
            print(f"{name:18} {time.monotonic() - start:5.1f} s  {found}", flush=True)
        run("chmod", "-R", "u+w", folder)
    names = " ".join(path.name for path in sorted(DIST.iterdir())) if DIST.exists() else "nothing"
    print(f"{len(CHECKS) - failed} passed, {failed} failed in {time.monotonic() - began:.0f} s")
    print(f"dist/ has {names}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
