.DEFAULT_GOAL := help
PY ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help setup demo test lint types check
help: ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/.ready: pyproject.toml
	$(PY) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade "pip>=25.1"
	$(BIN)/python -m pip install -q -e . --group test --group lint
	touch $@

setup: $(VENV)/.ready ## make .venv with everything that development needs

demo: setup ## everything at once on simulated providers; Ctrl-C stops it
	$(BIN)/bandwatch demo

test: setup ## the whole suite
	$(BIN)/python -m pytest

lint: setup ## ruff and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: setup ## mypy --strict
	$(BIN)/mypy

check: lint types test ## all of the above
