# Every command for developers and CI. `make demo` and `make test` set up what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
ASSETS := kg/server/static/built/THIRD-PARTY-NOTICES.txt

SUITES := $(VENV)/.w3c
# One worker more than there are cores, since tests wait for processes and deadlines. In the order of the files: xdist
# would run those with few tests last, which take longest, and the other workers would wait.
WORKERS = $(shell $(PYTHON) -c 'import os; print((len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1) + 1)')
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# Without cached bytecode each of the many processes of the tests compiles all modules and tests again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test test-long test-exhaustive coverage bench bench-scale soak lint size serve assets dist docs released lock
help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

$(STAMP): tests/requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Quadcite needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	# The lock lists all dependencies. Resolved, "pydantic[email]" of a dependency is a newer release without a hash.
	$(BIN)/pip install --quiet --no-deps --require-hashes -r tests/requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

setup: $(STAMP)  ## create .venv with kg and its test dependencies, and fetch the embedding model
	$(BIN)/kg models pull

demo: setup  ## load the fixtures, serve, ask over MCP, print cited answers, stop
	$(BIN)/kg demo

$(SUITES): $(STAMP) tests/conformance/suites.py
	$(BIN)/python -m tests.conformance.suites
	touch $@

test: setup $(SUITES)  ## unit, contract and conformance tests, one journey for each domain (5 minutes)
	$(PYTEST) --ignore=tests/browser -m "not long and not measures_time and not exhaustive" $(ARGS)

test-long: setup $(SUITES)  ## slow and adversarial cases, kills, packaging, differential runs, timings, pages in a browser
	$(PYTEST) --ignore=tests/browser -m "long and not measures_time and not exhaustive" $(ARGS)
	$(BIN)/python -m pytest -m "measures_time and not exhaustive" $(ARGS)
	# Pages are slow next to other tests. While a browser and a server wait for each other, a second pair has the time.
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder tests/browser -m "not exhaustive" $(ARGS)

test-exhaustive: setup $(SUITES)  ## weekly and before a release: every further case, and the real data beside the project
	$(PYTEST) -m "exhaustive and not measures_time" $(ARGS)
	$(BIN)/python -m pytest -m "exhaustive and measures_time" $(ARGS)
	$(PYTEST) -m "hypothesis and not exhaustive" --hypothesis-profile=thorough $(ARGS)

coverage: setup $(SUITES)  ## make test with the coverage of kg and loaders, and its floor
	$(PYTEST) -m "not long and not measures_time and not exhaustive" --cov --cov-report= --cov-fail-under=0 $(ARGS)
	$(BIN)/python -m coverage report

bench: setup  ## measure Quadcite and the alternatives in the same run
	$(BIN)/python -m tests.benchmarks $(ARGS)

bench-scale: setup  ## measure how costs grow, up to a million passages: an hour (ARGS="--sizes 10000,100000")
	$(BIN)/python -m tests.benchmarks.scale $(ARGS)

soak: setup  ## a server under attacks for 15 minutes, a watched folder with kills for 30 (ARGS="--seconds 60 --seed 7")
	$(BIN)/python -m tests.adversarial.soak $(ARGS)
	$(BIN)/python -m tests.adversarial.watch_soak $(ARGS)

lint: $(STAMP)  ## ruff, formatting, types, English
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tests.prose_lint

$(ASSETS): $(STAMP) $(wildcard kg/server/assets/*.* kg/server/assets/src/*.* kg/server/assets/src/*/*.*)
	sh kg/server/assets/build.sh $(BIN)/python
	touch $@

assets: $(ASSETS)  ## build the scripts of the web pages: SPARQL editor, charts, graphs

dist: assets  ## build the wheel and the source archive with the scripts of the web pages, in dist
	$(BIN)/python -m hatchling build -t sdist -t wheel

serve: setup  ## build the scripts of the web pages, and serve the data directory on loopback
	@$(MAKE) --no-print-directory assets || echo "The scripts of the pages were not built. The pages work without them."
	$(BIN)/kg serve

size: $(STAMP)  ## lines and tokens by package; fails above tests/code_size.json (ARGS=--record lowers that)
	$(BIN)/python -m tests.code_size $(ARGS)

docs: $(STAMP)  ## generate the parts of the documentation that come from the code
	$(BIN)/python -m tests.generated_docs

released: $(STAMP)  ## at a release: record the meaning of the ontology's terms, so that none is lost later
	$(BIN)/python -m tests.ontology_release

lock: $(STAMP)  ## update the lock files from pyproject.toml
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --extra office --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --upgrade -o requirements.lock
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header -c requirements.lock -o tests/requirements.lock
