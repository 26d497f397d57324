.DEFAULT_GOAL := help
SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
PY ?= $(shell for p in python3.11 python3.12 python3.13 python3; do $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
LOCKS := requirements/build.txt requirements/test.txt requirements/lint.txt
export PATH := $(CURDIR)/$(VENV)/system/usr/bin:$(PATH)

.PHONY: help setup demo test test-slow test-crash soak test-fuzz-api system lint types check cover bench bench-truth validate docs lock sbom audit image clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/.ready: pyproject.toml $(LOCKS)
	@test -n "$(PY)" || { echo "Python 3.11 or newer is needed, and was not found on the PATH" >&2; exit 1; }
	tools/venv $(PY) $(VENV)
	$(PIP) install --require-hashes -r requirements/build.txt
	$(PIP) install --require-hashes --no-build-isolation -r requirements/test.txt -r requirements/lint.txt
	$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

setup: $(VENV)/.ready ## make .venv with everything that running and developing need

demo: setup ## everything on embedded Postgres with simulated providers; prints the address; Ctrl-C stops it
	@exec $(BIN)/bandwatch demo $(ARGS)

system: ## install what tests want of the system: Chromium, Prometheus, Alertmanager
	@tools/system-packages $(VENV)/system

test: setup system ## the whole suite, but for what takes minutes
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist loadfile --ignore tests/e2e --ignore tests/browser $(ARGS)
	$(BIN)/python -m pytest -m "not slow" tests/e2e tests/browser

test-slow: setup system ## what takes minutes
	$(BIN)/python -m pytest -m slow $(ARGS)

test-fuzz-api: setup ## more than 10,000 requests that nobody thought of, with and without keys
	$(BIN)/python -m pytest -m slow tests/integration/api/test_fuzz.py $(ARGS)

test-crash: setup ## three replicas killed with -9 for ten minutes, then the accounts; writes docs/benchmarks/crash.md
	$(BIN)/python -m tests.crash.fleet --report docs/benchmarks/crash.md $(ARGS)

soak: setup ## an hour with 200 simulated targets: memory, descriptors and lateness must stay flat; ARGS="--minutes 15"
	$(BIN)/python -m tests.crash.soak --report docs/benchmarks/soak.md $(ARGS)

lint: setup ## ruff, its format, and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: setup ## mypy --strict
	$(BIN)/mypy

check: lint types test ## all three of the above

cover: setup system ## the suite under coverage: every branch of the pure rooms, 95 % of everything
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -m "not slow" $(ARGS)
	$(BIN)/coverage combine -q
	$(BIN)/coverage report --include='app/targets/*,app/measurement/*,app/expectation/*,app/verdict/*,app/catalog/*' --fail-under=100
	$(BIN)/coverage report --fail-under=95

bench: setup ## the benchmarks that need nothing but this machine
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

bench-truth: setup ## our stamps against the truth and against other ways of reading; writes docs/benchmarks/truth.*
	$(BIN)/python -m benchmarks.truth $(ARGS)

validate: setup ## hold the expectation against published measurements; writes docs/calibration.md; fails when a bound does not hold
	$(BIN)/python -m benchmarks.calibration $(ARGS)

docs: validate ## the figures and tables of docs/ that are computed

lock: setup ## pin all dependencies with hashes; UPGRADE=--upgrade takes the newest
	$(PIP) install --require-hashes -r requirements/lock.txt
	$(BIN)/python tools/lock.py $(UPGRADE)

sbom: setup ## what the runtime is made of, as CycloneDX
	@$(BIN)/python tools/sbom.py

audit: setup ## ask the advisory database about the pinned dependencies, where it is in reach
	@$(PIP) install --require-hashes -r requirements/audit.txt || { echo "audit skipped: pip-audit cannot be installed here"; exit 0; }; \
	$(BIN)/python tools/audit.py

image: ## build the container image
	docker build -t bandwatch .

clean: ## remove what make made
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage .coverage.*
