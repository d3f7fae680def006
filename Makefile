# `make quickstart` and `make test` need a Python >= 3.11 and make >= 3.81, nothing else.
#   make TORCH="torch==2.13.0 --index-url URL"   another build of torch: any arguments of pip install
#   make PYTHON=/path/to/python3.12                                               another interpreter
TORCH ?= torch==2.13.0
PYTHON ?=
VENV ?= .venv
BIN = $(VENV)/bin
STAMP = $(VENV)/.installed
# Each worker has one half of the tests in their order, so that what a file shares is made once, and
# takes over from the other when it has finished.
TESTFLAGS ?= -q -n 2 --dist worksteal

.PHONY: help quickstart env compiled test packaging slow lint types bench clean

help:
	@echo "make quickstart   install, then run a first study: table, report, runs in MLflow"
	@echo "make test         the test suite          make slow    the long tests too"
	@echo "make packaging    the tests that build and install a wheel"
	@echo "make lint         ruff                    make types   mypy --strict"
	@echo "make bench        every benchmark         make clean   remove the environment and caches"

quickstart: $(STAMP)
	$(BIN)/optbench quickstart

env: $(STAMP)

$(STAMP): pyproject.toml constraints.txt .ci/install
	sh .ci/install "$(VENV)" "$(TORCH)" "$(PYTHON)"
	@touch $@

# Solvers are compiled at their first use; the tests use all of them.
compiled: $(STAMP)
	$(BIN)/optbench compile

test: compiled
	$(BIN)/python -m pytest $(TESTFLAGS) -m "not slow and not packaging"

packaging: compiled
	$(BIN)/python -m pytest $(TESTFLAGS) -m packaging

slow: compiled
	$(BIN)/python -m pytest $(TESTFLAGS)

lint: $(STAMP)
	$(BIN)/ruff check .

types: $(STAMP)
	$(BIN)/mypy

bench: compiled
	$(BIN)/python -m pip install -q -c constraints.txt -e ".[bench]"
	@for script in benchmarks/*.py; do \
		case "$$script" in */_*) continue;; esac; \
		echo "== $$script"; $(BIN)/python "$$script" || exit 1; \
	done

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
