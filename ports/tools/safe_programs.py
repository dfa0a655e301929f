"""The table of programs that permission rules know: which options and operands are safe.

Safe is what reads or checks, writes nothing but what the program is for, and runs nothing that an
argument names. An option that is not listed is not known as safe, whatever it does. Each row was
compared with the program's own documentation.

A row begins with programs and their subcommands, as they are typed: `npm|pnpm ls|list, yarn list` are
five. What follows is `any` (every word is safe), `group` (it needs a subcommand), or operands in order,
each with the name of its pattern: `…` lets the last one repeat, and an offer names one in capitals.
`words`: its options are words, never letters of one word (`-name`). A row in capitals is a part of
others.

`any` is for operands of what only reads, or that name no files; files that are run, written or kept
are `inside` the folder.

Options are listed with what follows them: `-k=` has a value (`-k1`, `-k 1`, `--key=1`), that of `-F/` is
a file inside the folder, `--color?` may have one in the same word, `-L#` a number in the same word, `-#`
is a number itself, and `-x=y` is a whole word. `--` is listed where all that follows it are operands;
where it begins the arguments of another program, these have a row of their own (`npm test --`).
"""

from collections.abc import Mapping
from functools import cache
from itertools import product

from ...machines.value import Value


class KnownProgram(Value):
    """What is safe for a program, or for its subcommand: a row of the table.

    `operands` are patterns in order, of which the last one repeats if it `is_open`; `named` counts those
    that an offer names.
    """

    options: str = ""
    operands: tuple[str, ...] = ()
    is_open: bool = False
    named: int = 0
    is_any: bool = False
    is_group: bool = False
    has_words: bool = False


INSIDE = r"(?![/~@])(?!(?:.*/)?\.\.(?:/|$)).+"
"""A file inside the folder; `@` begins the name of a file with arguments, `/` also an option."""
_OPERANDS = {
    "any": ".*",
    "format": r"\+.*",
    "inside": INSIDE,
    "name": r"[A-Za-z_][\w.:-]*",
    "own-remote": "origin|upstream",
    "ref": r"[\w./-]+",
    "remote": r"[A-Za-z][\w.-]*",
    "revision": r"[\w./@{}^~-]+",
    "typescript": rf"{INSIDE}\.[cm]?tsx?",
}
_TABLE = """\
GIT_DIFF: -p -u -s --patch --no-patch -U= --unified= --raw --patch-with-raw --minimal --patience
    --histogram --anchored= --diff-algorithm= --stat? --stat-width= --compact-summary --numstat
    --shortstat --dirstat? --summary --patch-with-stat -z --name-only --name-status --color? --no-color
    --color-moved? --no-color-moved --word-diff? --word-diff-regex= --color-words? --no-renames --check
    --full-index --binary --abbrev? -B? -M? -C? --find-renames? --find-copies? --find-copies-harder -D
    --diff-filter= -S= -G= --find-object= --pickaxe-all --pickaxe-regex -R --relative? --no-relative -a
    --text --ignore-cr-at-eol --ignore-space-at-eol -b --ignore-space-change -w --ignore-all-space
    --ignore-blank-lines --inter-hunk-context= -W --function-context --exit-code --quiet -q
    --no-ext-diff --no-textconv --src-prefix= --dst-prefix= --no-prefix --line-prefix=
    --ita-invisible-in-index --cc -c -m --
GIT_LOG: GIT_DIFF -# -n= --max-count= --skip= --since= --after= --until= --before= --author=
    --committer= --grep= --all-match --invert-grep -i --regexp-ignore-case -E --extended-regexp -F
    --fixed-strings -P --perl-regexp --merges --no-merges --min-parents= --max-parents= --first-parent
    --not --all --branches? --tags? --remotes? --glob= --exclude= --reflog -g --walk-reflogs
    --cherry-mark --cherry-pick --left-only --right-only --cherry --boundary --simplify-by-decoration
    --full-history --dense --sparse --simplify-merges --ancestry-path? --date-order --author-date-order
    --topo-order --reverse --pretty? --format= --abbrev-commit --no-abbrev-commit --oneline --encoding=
    --notes? --no-notes --relative-date --date= --parents --children --left-right --graph --no-graph
    --follow --no-decorate --decorate? --decorate-refs= --decorate-refs-exclude= --source --log-size -L=
    --mailmap --no-mailmap --use-mailmap --full-diff --clear-decorations
CARGO: -p= --package= --workspace --all --exclude= --lib --bin= --bins --example= --examples --test=
    --tests --bench= --benches --all-targets -F= --features= --all-features --no-default-features -r
    --release --profile= --keep-going -j= --jobs= -v -q --verbose --quiet --color= --message-format=
    --locked --offline --frozen
GO: -v -x -n -a -p= -race -tags= -trimpath -json
LISTED: -a --all -q --quiet --no-trunc -f= --filter= --format= --digests --tree
GH: -R= --repo= --json= -q= --jq= -t= --template=
GH_LIST: GH -L= --limit= -s= --state= -A= --author= -a= --assignee= -l= --label= -S= --search=
KUBECTL: -n= --namespace= --context= -l= --selector=

basename, cat, cd, cksum, cmp, column, comm, cut, df, diff, dirname, du, echo, egrep, expand, false,
    fgrep, fold, free, grep, groups, head, hexdump, id, join, jq, ls, lscpu, md5sum, nl, nproc, od,
    paste, printenv, ps, pwd, readlink, realpath, rev, seq, sha1sum, sha256sum, sha512sum, shellcheck,
    sleep, stat, strings, tac, tail, tr, true, type, uname, unexpand, uptime, wc, which, whoami: any
cargo|docker|gcc|git|go|java|make|node|npm|pip|pnpm|pytest|python|python3|ruby|rustc|tsc|yarn --version:
node|npm|pnpm -v, python|python3|rustc|cargo -V:
printf: <any>… --
date: <format> -u -R -I? -d= -r= --date= --reference= --utc --iso-8601? --rfc-3339= --rfc-email
file: <any>… -b -i -L -h -k -N -0 -r -s -v --brief --mime --mime-type --mime-encoding --dereference
    --no-dereference --keep-going --no-pad --print0 --raw --special-files --extension --version --
find: words <any>… -H -L -P -amin= -anewer= -atime= -cmin= -cnewer= -ctime= -daystart -depth -empty
    -executable -false -follow -fstype= -gid= -group= -ilname= -iname= -inum= -ipath= -iregex=
    -iwholename= -links= -lname= -ls -maxdepth= -mindepth= -mmin= -mount -mtime= -name= -newer=
    -newermt= -nogroup -noleaf -nouser -path= -perm= -print -print0 -printf= -prune -quit -readable
    -regex= -regextype= -samefile= -size= -true -type= -uid= -used= -user= -wholename= -writable -xdev
    -xtype= -a -o -not -and -or
sort: <any>… -b -d -f -g -h -i -M -n -R -r -V -c -C -m -s -u -z -k= -t= -S= --ignore-leading-blanks
    --dictionary-order --ignore-case --general-numeric-sort --human-numeric-sort --ignore-nonprinting
    --month-sort --numeric-sort --random-sort --reverse --version-sort --check? --merge --stable
    --unique --zero-terminated --key= --field-separator= --buffer-size= --parallel= --sort= --debug --
uniq: <any> -c -d -D -i -u -z -f= -s= -w= --count --repeated --all-repeated? --group? --ignore-case
    --unique --zero-terminated --skip-fields= --skip-chars= --check-chars=
tree: <any>… -a -d -l -f -x -L# -P= -I= --gitignore --matchdirs --ignore-case --prune --noreport
    --filelimit= -q -N -Q -p -u -g -s -h --si --du -D -F --inodes --device -v -t -c -U -r --dirsfirst
    --filesfirst --sort= -i -A -S -n -C -X -J --version
rg: <any>… -# -A= -B= -C= -E= -F -H -I -L -M= -N -P -S -T= -U -a -b -c -d= -e= -f= -g= -h -i -j= -l -m=
    -n -o -p -q -r= -s -t= -u -v -w -x --after-context= --before-context= --context= --encoding=
    --fixed-strings --with-filename --no-filename --follow --max-columns= --no-line-number --pcre2
    --smart-case --type-not= --multiline --multiline-dotall --text --byte-offset --count --count-matches
    --max-depth= --regexp= --file= --glob= --iglob= --ignore-case --threads= --files-with-matches
    --files-without-match --max-count= --line-number --only-matching --pretty --quiet --replace=
    --case-sensitive --type= --type-list --unrestricted --invert-match --word-regexp --line-regexp
    --color= --colors= --column --files --heading --no-heading --hidden --no-hidden --ignore-file=
    --no-ignore --no-ignore-vcs --no-config --json --max-filesize= --no-messages --null --passthru
    --sort= --sortr= --stats --trim --version --vimgrep -. --
fd: <any>… -H -I -u -s -i -g -F -a -l -L -p -0 -1 -q -d= -t= -e= -E= -S= -c= -j= --hidden --no-ignore
    --no-ignore-vcs --unrestricted --case-sensitive --ignore-case --glob --regex --fixed-strings
    --absolute-path --list-details --follow --full-path --print0 --quiet --max-depth= --min-depth=
    --exact-depth= --type= --extension= --exclude= --size= --changed-within= --changed-before= --owner=
    --color= --threads= --max-results= --prune --strip-cwd-prefix? --version

git: group --no-pager -P --no-optional-locks --literal-pathspecs
git config|stash|submodule|worktree: group
git add|describe|ls-files|ls-tree|merge-base|rev-parse|status: any
git log|show|rev-list, git stash list: <any>… GIT_LOG
git diff: <any>… GIT_DIFF -0 -1 -2 -3 --cached --staged --merge-base --no-index --ours --theirs --base
git stash show: <any>… GIT_DIFF -u --include-untracked --only-untracked
git grep: <any>… -# -i -w -v -h -H -E -G -P -F -n -l -L -z -o -c -p -W -q -a -I -r -A= -B= -C= -m= -f=
    -e= --ignore-case --word-regexp --invert-match --full-name --extended-regexp --basic-regexp
    --perl-regexp --fixed-strings --line-number --column --files-with-matches --name-only
    --files-without-match --null --only-matching --count --color? --no-color --break --heading
    --show-function --after-context= --before-context= --context= --function-context --max-count=
    --threads= --and --or --not --all-match --quiet --cached --untracked --no-index --exclude-standard
    --no-exclude-standard --recurse-submodules --recursive --no-recursive --max-depth= --text --
git branch: <any>… -a --all -r --remotes -v --verbose -l --list --show-current --contains --no-contains
    --merged --no-merged --sort= --points-at= --format= --column? --no-column --color? --no-color -i
    --ignore-case --abbrev= --no-abbrev -q --quiet -t --track? --no-track
git commit: <inside>… -m= --message= -a --all -F/ --file/ -v --verbose -q --quiet --amend --no-edit -s
    --signoff --allow-empty --author= --date= --dry-run --short --porcelain --long -i --include -o
    --only --fixup= --squash= -C= --reset-author --no-status --status --cleanup= -u? --untracked-files?
    -p --patch --
git blame: <any>… -b --root --show-stats -L= -l -t -S= --reverse -p --porcelain --line-porcelain
    --incremental -c -f --show-name -n --show-number -s -e --show-email -w --abbrev= --date= -M? -C?
    --color-lines --color-by-age --ignore-rev= --ignore-revs-file= --
git shortlog: <any>… -s -n -e -c --summary --numbered --email --committer --group= --since= --until=
    --no-merges --all
git cat-file: <any>… -t -s -e -p
git reflog: -# -n= --oneline --date= --all
git remote: -v --verbose
git remote get-url: <any>… --push --all
git tag: <any>… -l --list -n? --sort= --contains --no-contains --merged --no-merged --points-at=
    --format= --column? --no-column -i --ignore-case -a --annotate -m= --message=
git worktree list: --porcelain -v --verbose -z
git submodule status: <any>… --cached --recursive
git config --list: --show-origin --show-scope --name-only -z --global --local --system
git config --get: <name>
git switch: <revision>… -c= --create= -q --quiet -t --track? --no-track -d --detach --guess --no-guess
    --progress
git fetch: <remote> <ref>… -v --verbose -q --quiet --all -t --tags -n --no-tags -p --prune -j= --jobs=
    --dry-run --depth= --deepen= --unshallow --progress -4 -6 --ipv4 --ipv6
git pull: <own-remote> <ref>… -v --verbose -q --quiet --rebase? -r --no-rebase --ff-only --ff --no-ff
    --autostash -p --prune -t --tags
git push: <own-remote> <ref>… -v --verbose -q --quiet -u --set-upstream -n --dry-run --tags
    --follow-tags --progress --porcelain

pytest, python|python3 -m pytest, uv run pytest: <inside>… -k= -m= -x -v -q -s -l -r= -n= -V -h
    -pno:cacheprovider --exitfirst --maxfail= --verbose --quiet --showlocals --tb= --lf --last-failed
    --ff --failed-first --nf --new-first --sw --stepwise --collect-only --co --durations=
    --durations-min= --no-header --no-summary --color= --capture= --numprocesses= --dist= --timeout=
    --cov? --cov-branch --cov-fail-under= --cov-report=term --cov-report=term-missing --no-cov
    --strict-markers --strict-config --disable-warnings --fixtures --markers --setup-show --setup-plan
    --deselect= --ignore= --ignore-glob= --runxfail --full-trace --import-mode= --help --
python|python3 -m unittest: <inside>… -v -q -f -b -c -k= --verbose --quiet --failfast --buffer --catch
    --locals
ruff: group
ruff check: <inside>… --no-fix --diff --select= --ignore= --extend-select= --extend-ignore= --statistics
    --show-files --show-settings --output-format= --exit-zero -q --quiet -v --verbose -s --silent -n
    --no-cache --preview --no-preview --target-version= --line-length= --exclude= --extend-exclude=
    --respect-gitignore --no-respect-gitignore --force-exclude -w --watch --
ruff format: <inside>… --check --diff -q --quiet -v --verbose -n --no-cache --preview --no-preview
    --line-length= --target-version= --exclude= --respect-gitignore --force-exclude
black: <inside>… --check --diff -q --quiet -v --verbose --color --no-color -l= --line-length= -t=
    --target-version= -S
isort: <inside>… -c --check --check-only --diff -q --quiet -v --verbose --profile=
flake8: <any>… --max-line-length= --select= --ignore= --extend-select= --extend-ignore= --count
    --statistics --show-source --exclude= --max-complexity= -q -v -j= --version
pylint: <inside>… -E --errors-only -d= --disable= -e= --enable= -j= --jobs= -r= --reports= -s= --score=
    --recursive= --output-format=text --output-format=json --output-format=colorized --version
mypy, python -m mypy: <inside>… --strict --ignore-missing-imports --no-error-summary --show-error-codes
    --hide-error-codes --pretty --no-pretty --python-version= --platform= --follow-imports=
    --check-untyped-defs --disallow-untyped-defs --disallow-any-generics --no-implicit-optional
    --warn-unused-ignores --warn-return-any --warn-unreachable --warn-redundant-casts
    --show-error-context --show-column-numbers --no-incremental --explicit-package-bases
    --namespace-packages -p= -m= --package= --module= --exclude= -v --verbose -V --version
    --color-output --no-color-output --disable-error-code= --enable-error-code= --show-traceback
    --no-site-packages
pyright: <inside>… --outputjson --stats --verbose --warnings --level= --pythonversion= --pythonplatform=
    --version
pip, pip3, uv, uv pip: group
pip|pip3 list, python -m pip list, uv pip list: -o --outdated -u --uptodate -e --editable -l --local
    --user --format= --not-required --exclude= -v -q
pip|pip3 show, python -m pip show, uv pip show: <any>… -f --files -v -q
pip|pip3 freeze, uv pip freeze: -l --local --user --all --exclude-editable
pip|pip3 check, uv pip check:

npm, pnpm, yarn: group -s --silent
npm test|t, pnpm|yarn test: <inside>… -s --silent --if-present -w= --workspace= --workspaces -r
    --recursive --filter=
npm|pnpm test --: <inside>… --watch --watchAll --coverage --verbose --silent --run --ci --bail --runInBand
    -t= --grep=
npm run|run-script, pnpm|yarn run: <NAME> -s --silent --if-present -w= --workspace= --workspaces -r
    --recursive --filter=
yarn|pnpm build|lint:
npm|pnpm ls|list, yarn list: <any>… -a --all --depth= --json -l --long -p --parseable -g --global --prod
    --dev --omit= --include=
npm outdated|view|info|explain, pnpm|yarn outdated, yarn why: <any>… --json --long --all
npm audit: --json --omit= --production --audit-level=
eslint: <inside>… --ext= --quiet --max-warnings= --no-inline-config --color --no-color -v --version
    --report-unused-disable-directives --no-error-on-unmatched-pattern --format=json --format=stylish
prettier: <inside>… -c --check -l --list-different --log-level= --no-color --version
tsc --noEmit: <typescript>… -p/ --project/ --strict --pretty --skipLibCheck --listFiles
    --traceResolution --showConfig -w --watch --target= --lib= --module= --jsx= --esModuleInterop
    --allowJs --checkJs
jest: <inside>… --watch? --watchAll --coverage --no-coverage -t= --testNamePattern= --testPathPattern=
    --verbose --silent --bail? -b -i --runInBand --ci -u --updateSnapshot -o --onlyChanged
    --passWithNoTests --listTests --detectOpenHandles --forceExit -w= --maxWorkers= --color --no-color
    --json --expand --findRelatedTests --lastCommit --changedSince= --shard= --testTimeout= --version
VITEST: --run -t= --testNamePattern= --coverage --reporter=verbose --reporter=dot --reporter=json
    --reporter=default -w --watch --bail= --silent --passWithNoTests --changed? -u --update --no-color
    --typecheck --shard= --retry= --testTimeout= --version
vitest: VITEST
vitest run|list|related: <inside>… VITEST

cargo: group
cargo test: <inside>… CARGO --doc --no-run --no-fail-fast
cargo test --: <inside>… --nocapture --no-capture --test-threads= --ignored --include-ignored --exact
    --list --show-output --skip= -q --quiet
cargo bench: <inside>… CARGO --no-run --no-fail-fast
cargo build|check|b|c: CARGO
cargo clippy: CARGO --no-deps
cargo clippy --: -D= -W= -A= -F= --deny= --warn= --allow= --forbid=
cargo doc: CARGO --no-deps --document-private-items
cargo fmt: --check --all -p= --package= -v -q --verbose --quiet
cargo fmt --: --check
cargo tree: -p= --package= -i= --invert= -d --duplicates -e= --edges= --depth= --workspace
    --all-features
cargo metadata: --format-version= --no-deps --all-features --locked --offline
go: group
go test: words <inside>… GO -run= -count= -short -timeout= -cover -covermode= -coverpkg= -bench= -benchmem
    -benchtime= -cpu= -failfast -parallel= -list= -shuffle= -skip= -vet=
go build: words <inside>… GO
go vet: words <inside>… GO -c=
go list: words <inside>… -m -json -f= -deps -test -e -u -versions -find -tags=
go fmt: words <inside>… -n -x
go doc: words <any>… -all -short -src -u -c -cmd
go env: words <any>… -json -changed
go version: words <any>… -m -v
go mod: group
go mod graph|verify:
go mod why: words <inside>… -m
gofmt: <any>… -l -d -e -s
make: <NAME> -j# -k -s -n -B -i -w -d -q -S -v --keep-going --silent --quiet --dry-run --just-print
    --always-make --ignore-errors --jobs? --print-directory --no-print-directory --question
    --output-sync? -O?
mvn, gradle, ./gradlew, dotnet: group
mvn test|compile|verify|package: -q -o -B -e -U -T= --quiet --offline --batch-mode -Dtest= -DskipTests
gradle|./gradlew test|build|check: -q --quiet -i --info -s --stacktrace --offline --tests= --continue
    --no-daemon
dotnet build|test: <inside>… -c= --configuration= --no-build --no-restore -v= --verbosity= --filter=
    --nologo

docker, docker compose|container|image|network|volume: group
gh, gh pr|issue|run, systemctl, kubectl config: group
docker ps: LISTED -n= --last= -l --latest -s --size
docker images, docker container|image|network|volume ls: <any>… LISTED
docker logs: <any>… -f --follow -n= --tail= -t --timestamps --since= --until= --details
docker inspect: <any>… -f= --format= -s --size --type=
docker version|info: -f= --format=
docker stats: <any>… --no-stream -a --all --no-trunc --format=
docker compose ps: <any>… -a --all -q --quiet --services --format= --filter= --status=
docker compose logs: <any>… -f --follow -n= --tail= -t --timestamps --since= --until= --no-color
    --no-log-prefix
docker compose config: --services --volumes --images --profiles -q --quiet
kubectl: group -n= --namespace= --context=
kubectl get: <any>… KUBECTL -o= --output= -A --all-namespaces -w --watch --show-labels --sort-by=
    --field-selector= --no-headers --ignore-not-found -L= --label-columns= --show-kind
kubectl describe: <any>… KUBECTL -A --all-namespaces --show-events
kubectl logs: <any>… KUBECTL -f --follow -c= --container= --tail= --since= -p --previous --timestamps
    --all-containers --prefix
kubectl explain|api-resources|version: <any>… -o= --output= --client
kubectl top: <any>… KUBECTL -A --all-namespaces --containers --sort-by=
kubectl config current-context|get-contexts|view:
gh pr|issue view|status: <any>… GH -c --comments
gh pr|issue list: <any>… GH_LIST
gh pr diff: <any>… -R= --repo= --name-only --patch --color=
gh pr checks: <any>… GH --required --watch
gh run list: GH -L= --limit= -b= --branch= -w= --workflow= -s= --status=
gh run view: <any>… GH --log --log-failed -j= --job= -v --verbose
systemctl status: <any>… --no-pager -l --full -n= --lines= --user"""


@cache
def programs() -> Mapping[str, KnownProgram]:
    """Read the table, at its first use: what is known of each program."""
    known: dict[str, KnownProgram] = {}
    shared: dict[str, str] = {}
    for row in filter(None, _TABLE.replace("\n    ", " ").splitlines()):
        names, _, text = row.partition(":")
        words = text.split()
        marks = [word for word in words if word in ("any", "group", "words")]
        operands = [word.strip("<>…") for word in words if word.startswith("<")]
        others = [word for word in words if word not in marks and not word.startswith("<")]
        options = " ".join(word if word.startswith("-") else shared[word] for word in others)
        if names.isupper():
            shared[names] = options
            continue
        program = KnownProgram(
            options=options,
            operands=tuple(_OPERANDS[name.lower()] for name in operands),
            is_open="…" in text,
            named=sum(name.isupper() for name in operands),
            is_any="any" in marks,
            is_group="group" in marks,
            has_words="words" in marks,
        )
        for name in names.split(","):
            for parts in product(*(word.split("|") for word in name.split())):
                known[" ".join(parts)] = program
    return known
