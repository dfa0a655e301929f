"""The table of programs that permission rules know: which options and operands are safe. Data only.

Safe is what reads or checks, writes nothing but what the program is for, and runs nothing that an
argument names. An option that is not listed is not known as safe, whatever it does. Each row was
compared with the program's own documentation. A key is a program and its subcommand, as they are typed.

Options are listed with what follows them: `-k=` has a value (`-k1`, `-k 1`, `--key=1`), `--color?` may
have one in the same word, `-L#` a number in the same word, `-#` is a number itself, and `-x=y` is a
whole word. `--` is listed where all that follows it are operands; where it begins the arguments of
another program, these have a row of their own (`npm test --`).
"""

from ...machines.value import Value

_NAME = r"[A-Za-z_][\w.:-]*"
_INSIDE = r"(?![/~])(?!(?:.*/)?\.\.(?:/|$)).+"
_NO_FILE_OF_ARGUMENTS = "[^@].*"


class KnownProgram(Value):
    """What is safe for a program, or for its subcommand.

    `is_any`: every word. `operands` are patterns for them in order, of which the last one repeats
    unless `is_closed`. `named` counts the operands that an offer names. `is_group`: it needs a
    subcommand. `has_words`: its options are words, never letters of one word (`-name`).
    """

    options: str = ""
    operands: tuple[str, ...] = (".*",)
    is_closed: bool = False
    named: int = 0
    is_any: bool = False
    is_group: bool = False
    has_words: bool = False


_ANY = KnownProgram(is_any=True)
_NONE = KnownProgram(operands=(), is_closed=True)


def _group(options: str = "") -> KnownProgram:
    return KnownProgram(options=options, is_group=True)


def _bare(options: str) -> KnownProgram:
    """Make the row of a program that has no operands."""
    return KnownProgram(options=options, operands=(), is_closed=True)


def _names(options: str, named: int = 1) -> KnownProgram:
    """Make the row of a program whose only operand is the name of what it runs."""
    return KnownProgram(options=options, operands=(_NAME,), is_closed=True, named=named)


_GIT_DIFF = """-p -u -s --patch --no-patch -U= --unified= --raw --patch-with-raw --minimal --patience
            --histogram --anchored= --diff-algorithm= --stat? --stat-width= --compact-summary
            --numstat --shortstat --dirstat? --summary --patch-with-stat -z --name-only
            --name-status --color? --no-color --color-moved? --no-color-moved --word-diff?
            --word-diff-regex= --color-words? --no-renames --check --full-index --binary --abbrev?
            -B? -M? -C? --find-renames? --find-copies? --find-copies-harder -D --diff-filter= -S=
            -G= --find-object= --pickaxe-all --pickaxe-regex -R --relative? --no-relative -a --text
            --ignore-cr-at-eol --ignore-space-at-eol -b --ignore-space-change -w --ignore-all-space
            --ignore-blank-lines --inter-hunk-context= -W --function-context --exit-code --quiet -q
            --no-ext-diff --no-textconv --src-prefix= --dst-prefix= --no-prefix --line-prefix=
            --ita-invisible-in-index --cc -c -m --"""
_GIT_LOG = f"""{_GIT_DIFF} -# -n= --max-count= --skip= --since= --after= --until= --before= --author=
            --committer= --grep= --all-match --invert-grep -i --regexp-ignore-case -E
            --extended-regexp -F --fixed-strings -P --perl-regexp --merges --no-merges
            --min-parents= --max-parents= --first-parent --not --all --branches? --tags? --remotes?
            --glob= --exclude= --reflog -g --walk-reflogs --cherry-mark --cherry-pick --left-only
            --right-only --cherry --boundary --simplify-by-decoration --full-history --dense
            --sparse --simplify-merges --ancestry-path? --date-order --author-date-order
            --topo-order --reverse --pretty? --format= --abbrev-commit --no-abbrev-commit --oneline
            --encoding= --notes? --no-notes --relative-date --date= --parents --children
            --left-right --graph --no-graph --follow --no-decorate --decorate? --decorate-refs=
            --decorate-refs-exclude= --source --log-size -L= --mailmap --no-mailmap --use-mailmap
            --full-diff --clear-decorations"""
_CARGO = """-p= --package= --workspace --all --exclude= --lib --bin= --bins --example= --examples
            --test= --tests --bench= --benches --all-targets -F= --features= --all-features
            --no-default-features -r --release --profile= --keep-going -j= --jobs= -v -q --verbose
            --quiet --color= --message-format= --locked --offline --frozen"""
_GO = "-v -x -n -a -p= -race -tags= -trimpath -json"
_LISTED = "-a --all -q --quiet --no-trunc -f= --filter= --format= --digests --tree"
_GH = "-R= --repo= --json= -q= --jq= -t= --template="
_GH_LIST = (
    f"{_GH} -L= --limit= -s= --state= -A= --author= -a= --assignee= -l= --label= -S= --search="
)
_KUBECTL = "-n= --namespace= --context= -l= --selector="

_READERS = """basename cat cd cksum cmp column comm cut df diff dirname du echo egrep expand false
            fgrep fold free grep groups head hexdump id join jq ls lscpu md5sum nl nproc od paste
            printenv ps pwd readlink realpath rev seq sha1sum sha256sum sha512sum shellcheck sleep
            stat strings tac tail tr true type uname unexpand uptime wc which whoami"""
"""Programs that only read, whatever their arguments."""

_VERSIONS = """cargo docker gcc git go java make node npm pip pnpm pytest python python3 ruby rustc tsc
            yarn"""

PROGRAMS: dict[str, KnownProgram] = {
    **dict.fromkeys(_READERS.split(), _ANY),
    **{f"{name} --version": _NONE for name in _VERSIONS.split()},
    **{f"{name} -v": _NONE for name in ("node", "npm", "pnpm")},
    **{f"{name} -V": _NONE for name in ("python", "python3", "rustc", "cargo")},
    "printf": KnownProgram(options="--"),  # not -v, whose operand bash evaluates
    "date": KnownProgram(
        options="-u -R -I? -d= -r= --date= --reference= --utc --iso-8601? --rfc-3339= --rfc-email",
        operands=(r"\+.*",),
        is_closed=True,
    ),
    "file": KnownProgram(
        options="""-b -i -L -h -k -N -0 -r -s -v --brief --mime --mime-type --mime-encoding --dereference
            --no-dereference --keep-going --no-pad --print0 --raw --special-files --extension
            --version --"""
    ),
    "find": KnownProgram(
        has_words=True,
        options="""-H -L -P -amin= -anewer= -atime= -cmin= -cnewer= -ctime= -daystart -depth -empty
            -executable -false -follow -fstype= -gid= -group= -ilname= -iname= -inum= -ipath=
            -iregex= -iwholename= -links= -lname= -ls -maxdepth= -mindepth= -mmin= -mount -mtime=
            -name= -newer= -newermt= -nogroup -noleaf -nouser -path= -perm= -print -print0 -printf=
            -prune -quit -readable -regex= -regextype= -samefile= -size= -true -type= -uid= -used=
            -user= -wholename= -writable -xdev -xtype= -a -o -not -and -or""",
    ),
    "sort": KnownProgram(
        options="""-b -d -f -g -h -i -M -n -R -r -V -c -C -m -s -u -z -k= -t= -S= --ignore-leading-blanks
            --dictionary-order --ignore-case --general-numeric-sort --human-numeric-sort
            --ignore-nonprinting --month-sort --numeric-sort --random-sort --reverse --version-sort
            --check? --merge --stable --unique --zero-terminated --key= --field-separator=
            --buffer-size= --parallel= --sort= --debug --"""
    ),
    "uniq": KnownProgram(
        options="""-c -d -D -i -u -z -f= -s= -w= --count --repeated --all-repeated? --group? --ignore-case
            --unique --zero-terminated --skip-fields= --skip-chars= --check-chars=""",
        is_closed=True,
    ),
    "tree": KnownProgram(
        options="""-a -d -l -f -x -L# -P= -I= --gitignore --matchdirs --ignore-case --prune --noreport
            --filelimit= -q -N -Q -p -u -g -s -h --si --du -D -F --inodes --device -v -t -c -U -r
            --dirsfirst --filesfirst --sort= -i -A -S -n -C -X -J --version"""
    ),
    "rg": KnownProgram(
        options="""-# -A= -B= -C= -E= -F -H -I -L -M= -N -P -S -T= -U -a -b -c -d= -e= -f= -g= -h -i -j=
            -l
            -m= -n -o -p -q -r= -s -t= -u -v -w -x --after-context= --before-context= --context=
            --encoding= --fixed-strings --with-filename --no-filename --follow --max-columns=
            --no-line-number --pcre2 --smart-case --type-not= --multiline --multiline-dotall --text
            --byte-offset --count --count-matches --max-depth= --regexp= --file= --glob= --iglob=
            --ignore-case --threads= --files-with-matches --files-without-match --max-count=
            --line-number --only-matching --pretty --quiet --replace= --case-sensitive --type=
            --type-list --unrestricted --invert-match --word-regexp --line-regexp --color= --colors=
            --column --files --heading --no-heading --hidden --no-hidden --ignore-file= --no-ignore
            --no-ignore-vcs --no-config --json --max-filesize= --no-messages --null --passthru
            --sort= --sortr= --stats --trim --version --vimgrep -. --"""
    ),
    "fd": KnownProgram(
        options="""-H -I -u -s -i -g -F -a -l -L -p -0 -1 -q -d= -t= -e= -E= -S= -c= -j= --hidden
            --no-ignore --no-ignore-vcs --unrestricted --case-sensitive --ignore-case --glob --regex
            --fixed-strings --absolute-path --list-details --follow --full-path --print0 --quiet
            --max-depth= --min-depth= --exact-depth= --type= --extension= --exclude= --size=
            --changed-within= --changed-before= --owner= --color= --threads= --max-results= --prune
            --strip-cwd-prefix? --version"""
    ),
    # git --------------------------------------------------------------------------------------------
    "git": _group("--no-pager -P --no-optional-locks --literal-pathspecs"),
    **{f"git {name}": _group() for name in ("config", "stash", "submodule", "worktree")},
    **{
        f"git {name}": _ANY
        for name in "add describe ls-files ls-tree merge-base rev-parse status".split()
    },
    **{
        f"git {name}": KnownProgram(options=_GIT_LOG)
        for name in ("log", "show", "rev-list", "stash list")
    },
    "git diff": KnownProgram(
        options=f"""{_GIT_DIFF} -0 -1 -2 -3 --cached --staged --merge-base --no-index --ours
            --theirs --base"""
    ),
    "git stash show": KnownProgram(options=f"{_GIT_DIFF} -u --include-untracked --only-untracked"),
    "git grep": KnownProgram(
        options="""-# -i -w -v -h -H -E -G -P -F -n -l -L -z -o -c -p -W -q -a -I -r -A= -B= -C= -m= -f=
            -e= --ignore-case --word-regexp --invert-match --full-name --extended-regexp
            --basic-regexp --perl-regexp --fixed-strings --line-number --column --files-with-matches
            --name-only --files-without-match --null --only-matching --count --color? --no-color
            --break --heading --show-function --after-context= --before-context= --context=
            --function-context --max-count= --threads= --and --or --not --all-match --quiet --cached
            --untracked --no-index --exclude-standard --no-exclude-standard --recurse-submodules
            --recursive --no-recursive --max-depth= --text --"""
    ),
    "git branch": KnownProgram(
        options="""-a --all -r --remotes -v --verbose -l --list --show-current --contains --no-contains
            --merged --no-merged --sort= --points-at= --format= --column? --no-column --color?
            --no-color -i --ignore-case --abbrev= --no-abbrev -q --quiet -t --track? --no-track"""
    ),
    "git commit": KnownProgram(
        options="""-m= --message= -a --all -F= --file= -v --verbose -q --quiet --amend --no-edit -s
            --signoff --allow-empty --author= --date= --dry-run --short --porcelain --long -i
            --include -o --only --fixup= --squash= -C= --reset-author --no-status --status
            --cleanup= -u? --untracked-files? -p --patch --"""
    ),
    "git blame": KnownProgram(
        options="""-b --root --show-stats -L= -l -t -S= --reverse -p --porcelain --line-porcelain
            --incremental -c -f --show-name -n --show-number -s -e --show-email -w --abbrev= --date=
            -M? -C? --color-lines --color-by-age --ignore-rev= --ignore-revs-file= --"""
    ),
    "git shortlog": KnownProgram(
        options="""-s -n -e -c --summary --numbered --email --committer --group= --since= --until=
            --no-merges --all"""
    ),
    "git cat-file": KnownProgram(options="-t -s -e -p"),
    "git reflog": _bare("-# -n= --oneline --date= --all"),
    "git remote": _bare("-v --verbose"),
    "git remote get-url": KnownProgram(options="--push --all"),
    "git tag": KnownProgram(
        options="""-l --list -n? --sort= --contains --no-contains --merged --no-merged --points-at=
            --format= --column? --no-column -i --ignore-case -a --annotate -m= --message="""
    ),
    "git worktree list": _bare("--porcelain -v --verbose -z"),
    "git submodule status": KnownProgram(options="--cached --recursive"),
    "git config --list": _bare(
        "--show-origin --show-scope --name-only -z --global --local --system"
    ),
    "git config --get": KnownProgram(options="", operands=(_NAME,), is_closed=True),
    "git switch": KnownProgram(
        options="""-c= --create= -q --quiet -t --track? --no-track -d --detach --guess --no-guess
            --progress""",
        operands=(r"[\w./@{}^~-]+",),
    ),
    "git fetch": KnownProgram(
        options="""-v --verbose -q --quiet --all -t --tags -n --no-tags -p --prune -j= --jobs= --dry-run
            --depth= --deepen= --unshallow --progress -4 -6 --ipv4 --ipv6""",
        operands=(r"[A-Za-z][\w.-]*", r"[\w./-]+"),
    ),
    "git pull": KnownProgram(
        options="""-v --verbose -q --quiet --rebase? -r --no-rebase --ff-only --ff --no-ff --autostash -p
            --prune -t --tags""",
        operands=("origin|upstream", r"[\w./-]+"),
    ),
    "git push": KnownProgram(
        options="""-v --verbose -q --quiet -u --set-upstream -n --dry-run --tags --follow-tags --progress
            --porcelain""",
        operands=("origin|upstream", r"[\w./-]+"),
    ),
    # Python -----------------------------------------------------------------------------------------
    **dict.fromkeys(
        ("pytest", "python -m pytest", "python3 -m pytest", "uv run pytest"),
        KnownProgram(
            options="""-k= -m= -x -v -q -s -l -r= -n= -V -h -pno:cacheprovider --exitfirst --maxfail=
            --verbose
            --quiet --showlocals --tb= --lf --last-failed --ff --failed-first --nf --new-first --sw
            --stepwise --collect-only --co --durations= --durations-min= --no-header --no-summary
            --color= --capture= --numprocesses= --dist= --timeout= --cov? --cov-branch
            --cov-fail-under= --cov-report=term --cov-report=term-missing --no-cov --strict-markers
            --strict-config --disable-warnings --fixtures --markers --setup-show --setup-plan
            --deselect= --ignore= --ignore-glob= --runxfail --full-trace --import-mode= --help --""",
            operands=(_NO_FILE_OF_ARGUMENTS,),
        ),
    ),
    **dict.fromkeys(
        ("python -m unittest", "python3 -m unittest"),
        KnownProgram(
            options="-v -q -f -b -c -k= --verbose --quiet --failfast --buffer --catch --locals"
        ),
    ),
    "ruff": _group(),
    "ruff check": KnownProgram(
        options="""--no-fix --diff --select= --ignore= --extend-select= --extend-ignore= --statistics
            --show-files --show-settings --output-format= --exit-zero -q --quiet -v --verbose -s
            --silent -n --no-cache --preview --no-preview --target-version= --line-length=
            --exclude= --extend-exclude= --respect-gitignore --no-respect-gitignore --force-exclude
            -w --watch --"""
    ),
    "ruff format": KnownProgram(
        options="""--check --diff -q --quiet -v --verbose -n --no-cache --preview --no-preview
            --line-length= --target-version= --exclude= --respect-gitignore --force-exclude""",
        operands=(_INSIDE,),
    ),
    "black": KnownProgram(
        options="""--check --diff -q --quiet -v --verbose --color --no-color -l= --line-length= -t=
            --target-version= -S""",
        operands=(_INSIDE,),
    ),
    "isort": KnownProgram(
        options="-c --check --check-only --diff -q --quiet -v --verbose --profile=",
        operands=(_INSIDE,),
    ),
    "flake8": KnownProgram(
        options="""--max-line-length= --select= --ignore= --extend-select= --extend-ignore= --count
            --statistics --show-source --exclude= --max-complexity= -q -v -j= --version"""
    ),
    "pylint": KnownProgram(
        options="""-E --errors-only -d= --disable= -e= --enable= -j= --jobs= -r= --reports= -s= --score=
            --recursive= --output-format=text --output-format=json --output-format=colorized
            --version""",
        operands=(_NO_FILE_OF_ARGUMENTS,),
    ),
    **dict.fromkeys(
        ("mypy", "python -m mypy"),
        KnownProgram(
            options="""--strict --ignore-missing-imports --no-error-summary --show-error-codes
            --hide-error-codes --pretty --no-pretty --python-version= --platform= --follow-imports=
            --check-untyped-defs --disallow-untyped-defs --disallow-any-generics
            --no-implicit-optional --warn-unused-ignores --warn-return-any --warn-unreachable
            --warn-redundant-casts --show-error-context --show-column-numbers --no-incremental
            --explicit-package-bases --namespace-packages -p= -m= --package= --module= --exclude= -v
            --verbose -V --version --color-output --no-color-output --disable-error-code=
            --enable-error-code= --show-traceback --no-site-packages""",
            operands=(_NO_FILE_OF_ARGUMENTS,),
        ),
    ),
    "pyright": KnownProgram(
        options="""--outputjson --stats --verbose --warnings --level= --pythonversion= --pythonplatform=
            --version"""
    ),
    **dict.fromkeys(("pip", "pip3", "uv", "uv pip"), _group()),
    **{
        f"{name} list": _bare(
            """-o --outdated -u --uptodate -e --editable -l --local --user --format= --not-required
            --exclude= -v -q"""
        )
        for name in ("pip", "pip3", "python -m pip", "uv pip")
    },
    **{
        f"{name} show": KnownProgram(options="-f --files -v -q")
        for name in ("pip", "pip3", "python -m pip", "uv pip")
    },
    **{
        f"{name} freeze": _bare("-l --local --user --all --exclude-editable")
        for name in ("pip", "pip3", "uv pip")
    },
    **{f"{name} check": _NONE for name in ("pip", "pip3", "uv pip")},
    # JavaScript -------------------------------------------------------------------------------------
    **dict.fromkeys(("npm", "pnpm", "yarn"), _group("-s --silent")),
    **dict.fromkeys(
        ("npm test", "npm t", "pnpm test", "yarn test"),
        KnownProgram(
            options="""-s --silent --if-present -w= --workspace= --workspaces -r --recursive --filter="""
        ),
    ),
    **dict.fromkeys(
        ("npm test --", "pnpm test --"),
        KnownProgram(
            options="""--watch --watchAll --coverage --verbose --silent --run --ci --bail
            --runInBand -t= --grep="""
        ),
    ),
    **dict.fromkeys(
        ("npm run", "npm run-script", "pnpm run", "yarn run"),
        _names("-s --silent --if-present -w= --workspace= --workspaces -r --recursive --filter="),
    ),
    **dict.fromkeys(("yarn build", "yarn lint", "pnpm build", "pnpm lint"), _NONE),
    **dict.fromkeys(
        ("npm ls", "npm list", "pnpm ls", "pnpm list", "yarn list"),
        KnownProgram(
            options="""-a --all --depth= --json -l --long -p --parseable -g --global --prod --dev --omit=
            --include="""
        ),
    ),
    **dict.fromkeys(
        (
            "npm outdated",
            "npm view",
            "npm info",
            "pnpm outdated",
            "yarn outdated",
            "yarn why",
            "npm explain",
        ),
        KnownProgram(options="--json --long --all"),
    ),
    **dict.fromkeys(("npm audit",), _bare("--json --omit= --production --audit-level=")),
    "eslint": KnownProgram(
        options="""--ext= --quiet --max-warnings= --no-inline-config --color --no-color -v --version
            --report-unused-disable-directives --no-error-on-unmatched-pattern --format=json
            --format=stylish"""
    ),
    "prettier": KnownProgram(
        options="-c --check -l --list-different --log-level= --no-color --version"
    ),
    "tsc": KnownProgram(
        options="""--noEmit -p= --project= -b --build --strict --pretty --skipLibCheck --listFiles
            --traceResolution --showConfig -v --version -w --watch --target= --lib= --module= --jsx=
            --esModuleInterop --allowJs --checkJs""",
        operands=(_NO_FILE_OF_ARGUMENTS,),
    ),
    "jest": KnownProgram(
        options="""--watch? --watchAll --coverage --no-coverage -t= --testNamePattern= --testPathPattern=
            --verbose --silent --bail? -b -i --runInBand --ci -u --updateSnapshot -o --onlyChanged
            --passWithNoTests --listTests --detectOpenHandles --forceExit -w= --maxWorkers= --color
            --no-color --json --expand --findRelatedTests --lastCommit --changedSince= --shard=
            --testTimeout= --version"""
    ),
    **dict.fromkeys(
        ("vitest", "vitest run", "vitest list", "vitest related"),
        KnownProgram(
            options="""--run -t= --testNamePattern= --coverage --reporter=verbose --reporter=dot
            --reporter=json --reporter=default -w --watch --bail= --silent --passWithNoTests
            --changed? -u --update --no-color --typecheck --shard= --retry= --testTimeout= --version"""
        ),
    ),
    # Rust, Go, make and others ------------------------------------------------------------------------
    "cargo": _group(),
    "cargo test": KnownProgram(options=f"{_CARGO} --doc --no-run --no-fail-fast"),
    "cargo test --": KnownProgram(
        options="""--nocapture --no-capture --test-threads= --ignored --include-ignored --exact --list
            --show-output --skip= -q --quiet"""
    ),
    "cargo bench": KnownProgram(options=f"{_CARGO} --no-run --no-fail-fast"),
    **{f"cargo {name}": _bare(_CARGO) for name in ("build", "check", "b", "c")},
    "cargo clippy": _bare(f"{_CARGO} --no-deps"),
    "cargo clippy --": _bare("-D= -W= -A= -F= --deny= --warn= --allow= --forbid="),
    "cargo doc": _bare(f"{_CARGO} --no-deps --document-private-items"),
    "cargo fmt": _bare("--check --all -p= --package= -v -q --verbose --quiet"),
    "cargo fmt --": _bare("--check"),
    "cargo tree": _bare("""-p= --package= -i= --invert= -d --duplicates -e= --edges= --depth= --workspace
            --all-features"""),
    "cargo metadata": _bare("--format-version= --no-deps --all-features --locked --offline"),
    "go": _group(),
    "go test": KnownProgram(
        has_words=True,
        options=f"""{_GO} -run= -count= -short -timeout= -cover -covermode= -coverpkg= -bench= -benchmem
            -benchtime= -cpu= -failfast -parallel= -list= -shuffle= -skip= -vet=""",
    ),
    "go build": KnownProgram(has_words=True, options=_GO),
    "go vet": KnownProgram(has_words=True, options=f"{_GO} -c="),
    "go list": KnownProgram(
        has_words=True, options="-m -json -f= -deps -test -e -u -versions -find -tags="
    ),
    "go fmt": KnownProgram(has_words=True, options="-n -x"),
    "go doc": KnownProgram(has_words=True, options="-all -short -src -u -c -cmd"),
    "go env": KnownProgram(has_words=True, options="-json -changed"),
    "go version": KnownProgram(has_words=True, options="-m -v"),
    "go mod": _group(),
    "go mod graph": _NONE,
    "go mod verify": _NONE,
    "go mod why": KnownProgram(has_words=True, options="-m"),
    "gofmt": KnownProgram(options="-l -d -e -s"),
    "make": _names(
        """-j# -k -s -n -B -i -w -d -q -S -v --keep-going --silent --quiet --dry-run --just-print
            --always-make --ignore-errors --jobs? --print-directory --no-print-directory --question
            --output-sync? -O?"""
    ),
    **dict.fromkeys(("mvn", "gradle", "./gradlew", "dotnet"), _group()),
    **{
        f"mvn {goal}": _bare(
            "-q -o -B -e -U -T= --quiet --offline --batch-mode -Dtest= -DskipTests"
        )
        for goal in ("test", "compile", "verify", "package")
    },
    **{
        f"{name} {task}": _bare(
            """-q --quiet -i --info -s --stacktrace --offline --tests= --continue --no-daemon"""
        )
        for name in ("gradle", "./gradlew")
        for task in ("test", "build", "check")
    },
    **{
        f"dotnet {name}": KnownProgram(
            options="""-c= --configuration= --no-build --no-restore -v= --verbosity= --filter= --nologo"""
        )
        for name in ("build", "test")
    },
    # Machines and services ----------------------------------------------------------------------------
    **dict.fromkeys(
        ("docker", "docker compose", "docker volume", "docker network", "docker image"), _group()
    ),
    **dict.fromkeys(
        ("docker container", "gh", "gh pr", "gh issue", "gh run", "systemctl"), _group()
    ),
    "kubectl config": _group(),
    "docker ps": _bare(f"{_LISTED} -n= --last= -l --latest -s --size"),
    "docker images": KnownProgram(options=_LISTED),
    **{
        f"docker {name} ls": KnownProgram(options=_LISTED)
        for name in ("container", "image", "volume", "network")
    },
    "docker logs": KnownProgram(
        options="-f --follow -n= --tail= -t --timestamps --since= --until= --details"
    ),
    "docker inspect": KnownProgram(options="-f= --format= -s --size --type="),
    "docker version": _bare("-f= --format="),
    "docker info": _bare("-f= --format="),
    "docker stats": KnownProgram(options="--no-stream -a --all --no-trunc --format="),
    "docker compose ps": KnownProgram(
        options="-a --all -q --quiet --services --format= --filter= --status="
    ),
    "docker compose logs": KnownProgram(
        options="""-f --follow -n= --tail= -t --timestamps --since= --until= --no-color --no-log-prefix"""
    ),
    "docker compose config": _bare("--services --volumes --images --profiles -q --quiet"),
    "kubectl": _group("-n= --namespace= --context="),
    "kubectl get": KnownProgram(
        options=f"""{_KUBECTL} -o= --output= -A --all-namespaces -w --watch --show-labels --sort-by=
            --field-selector= --no-headers --ignore-not-found -L= --label-columns= --show-kind"""
    ),
    "kubectl describe": KnownProgram(options=f"{_KUBECTL} -A --all-namespaces --show-events"),
    "kubectl logs": KnownProgram(
        options=f"""{_KUBECTL} -f --follow -c= --container= --tail= --since= -p --previous --timestamps
            --all-containers --prefix"""
    ),
    **dict.fromkeys(
        ("kubectl explain", "kubectl api-resources", "kubectl version"),
        KnownProgram(options="-o= --output= --client"),
    ),
    "kubectl top": KnownProgram(options=f"{_KUBECTL} -A --all-namespaces --containers --sort-by="),
    **{f"kubectl config {name}": _NONE for name in ("current-context", "get-contexts", "view")},
    **{
        f"gh {name}": KnownProgram(options=f"{_GH} -c --comments")
        for name in ("pr view", "issue view", "pr status", "issue status")
    },
    **{f"gh {name} list": KnownProgram(options=_GH_LIST) for name in ("pr", "issue")},
    "gh pr diff": KnownProgram(options="-R= --repo= --name-only --patch --color="),
    "gh pr checks": KnownProgram(options=f"{_GH} --required --watch"),
    "gh run list": _bare(f"{_GH} -L= --limit= -b= --branch= -w= --workflow= -s= --status="),
    "gh run view": KnownProgram(options=f"{_GH} --log --log-failed -j= --job= -v --verbose"),
    "systemctl status": KnownProgram(options="--no-pager -l --full -n= --lines= --user"),
}
