# What people and CI run. Each target first sets up .venv, which takes a minute once and no time after.
# ARGS goes to the program: make chat ARGS="--model main", make test ARGS="tests/config -x".
# MODEL is the model of a chat: make chat MODEL=qwen2.5-coder-0.5b.

ARGS =
MODEL =
MAKEFLAGS += --no-print-directory
unexport PYTHONDONTWRITEBYTECODE # tests start many processes, and pytest rewrites what it does not keep
ROOMS = actors cli extensions gateway journal machines ports proofs restore simulator workflows workspace
PYTHON_FILES = $(ROOMS) docs/generate.py __init__.py __main__.py models.py testing.py $(wildcard examples/*.py)

PYTEST = .venv/bin/pytest -n $$((2 * $$(getconf _NPROCESSORS_ONLN))) --maxprocesses 8 \
    --dist worksteal --progress --override-ini console_output_style=classic

.PHONY: help chat test test-all check check-fast format bench bench-peers bench-work bench-survival prove soak docs site \
    recordings lock release-check

help:
	@echo 'make chat        set up and open a chat'
	@echo 'make test        run the tests: a few minutes'
	@echo 'make test-all    run those that are left to the night, too'
	@echo 'make check       lint, types, generated docs'
	@echo 'make check-fast  lint and generated docs; what a commit hook runs'
	@echo 'make format      put the code into shape'
	@echo 'make bench       run the benchmarks'
	@echo 'make bench-peers measure other agents beside it; installs them'
	@echo 'make bench-work  have a small model do work through it and through others: hours'
	@echo 'make bench-survival  kill it and other agents in many ways, and count what is lost'
	@echo 'make prove       have the simulator find each planted fault, and tests each broken rule'
	@echo 'make soak        run the suites of the promises at length; ARGS chooses'
	@echo 'make docs        write the generated docs'
	@echo 'make site        build the docs as a web site, and check it'
	@echo 'make recordings  record the stories in a terminal, and the page'
	@echo 'make lock        renew the versions and hashes that are installed'
	@echo 'make release-check  build a release twice, install it, use it: a table of what was checked'

chat:
	@.ci/venv user </dev/null
	@.venv/bin/steersman models fetch $(MODEL) --if-needed </dev/null >&2 || true
	@exec env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS .venv/bin/steersman chat $(MODEL:%=--model %) $(ARGS)

# Half of a test is waiting, so twice as many run at a time as there are cores.
test:
	@.ci/venv dev </dev/null
	@$(PYTEST) -m 'not nightly' $(ARGS:--durations=--durations=40)

test-all:
	@.ci/venv dev </dev/null
	@$(PYTEST) $(ARGS:--durations=--durations=40)

# mypy names the package after its folder, so it looks at it through a link that has the right name.
check: check-fast
	@mkdir -p .venv/house && ln -sfn ../.. .venv/house/steersman
	@cd .venv/house && ../bin/python -m mypy --config-file steersman/pyproject.toml \
	    $(addprefix steersman/,$(PYTHON_FILES))
	@.venv/bin/python -m pyright

check-fast:
	@.ci/venv dev </dev/null
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/python docs/generate.py --check

format:
	@.ci/venv dev </dev/null
	@.venv/bin/ruff check --fix --exit-zero --quiet .
	@.venv/bin/ruff format .
	@.venv/bin/ruff check .

bench:
	@.ci/venv dev </dev/null
	@for file in benchmarks/[a-z]*.py; do echo "== $$file"; \
	    STEERSMAN_FIGURES=$(if $(filter --write,$(ARGS)),benchmarks/figures) .venv/bin/python "$$file" || exit 1; done

bench-peers:
	@.ci/venv dev </dev/null
	@.venv/bin/python benchmarks/peers $(ARGS)

bench-work:
	@.ci/venv dev </dev/null
	@.venv/bin/python benchmarks/work $(ARGS)

# Ten minutes for all agents; a run goes on where the last one stopped.
bench-survival:
	@.ci/venv dev </dev/null
	@.venv/bin/python benchmarks/survival $(ARGS)

# Each fault is planted, and has to be found: a table of seeds and seconds. Then each rule is broken.
# ARGS="mutants --minutes 10" tries mutants that are made by rule instead.
prove:
	@.ci/venv dev </dev/null
ifeq ($(firstword $(ARGS)),mutants)
	@.venv/bin/python tests/simulation/mutation.py $(ARGS)
else
	@.venv/bin/python tests/simulation/planted.py $(ARGS)
	@.venv/bin/python tests/simulation/rules.py $(ARGS)
endif

# Hours at full size: `make soak ARGS="kills --part 0.1"`; `ARGS=--help` lists the suites.
soak:
	@.ci/venv dev </dev/null
	@.venv/bin/python tests/soak $(ARGS)

docs:
	@.ci/venv dev </dev/null
	@.venv/bin/python docs/generate.py

site:
	@.ci/venv dev </dev/null
	@.ci/site

recordings:
	@.ci/venv dev </dev/null
	@cd tests && ../.venv/bin/python -m stories.record
	@.venv/bin/python docs/recordings/picture.py
	@cd tests && ../.venv/bin/python -m web.pictures

# The versions stay, as far as pyproject.toml allows: `make lock ARGS=--upgrade` takes the newest.
lock:
	@.ci/venv dev </dev/null
	@.ci/lock $(ARGS)

# Builds and proves what a tag publishes: .ci/release_check.py. ARGS="--tag v1.2.3" also compares the tag.
release-check:
	@.ci/venv user </dev/null
	@.venv/bin/python .ci/release_check.py $(ARGS)
