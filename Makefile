# Everything a person or CI runs. `make demo` and `make test` set up what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help setup demo test bench lint serve readme released lock
help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

$(STAMP): tests/requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Quadcite needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --require-hashes -r tests/requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

setup: $(STAMP)  ## .venv with kg and all that tests need, and the embedding model
	$(BIN)/kg models pull

demo: setup  ## load the fixtures, serve, ask over MCP, print cited answers, stop
	$(BIN)/kg demo

test: setup  ## the whole test suite, with its coverage floor
	$(BIN)/python -m pytest --cov

bench: setup  ## measure us beside the alternatives, in the same run
	$(BIN)/python -m tests.benchmarks

lint: $(STAMP)  ## ruff, formatting, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

serve: setup  ## serve the data directory on loopback
	$(BIN)/kg serve

readme: $(STAMP)  ## renew the tables of README.md from the code
	$(BIN)/python -m tests.generated_docs

released: $(STAMP)  ## at a release: keep what the terms of the ontology mean, so that none is lost after it
	$(BIN)/python -m tests.ontology_release

lock: $(STAMP)  ## renew the lock files from pyproject.toml
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --upgrade -o requirements.lock
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header -c requirements.lock -o tests/requirements.lock
