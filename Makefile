# Everything runs from .venv, which scripts/install.sh makes on a machine that has python3, pip and make.
# `make` alone lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3
PYTEST := .venv/bin/python -m pytest
WORKERS ?= 2
SEEDS ?= 2000
STORE ?= sqlite
export PYTHON

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(if $(filter postgres,$(STORE)),install,install-runtime) ## Install, then run a DAG of 48 tasks (STORE=sqlite or postgres)
	@STORE=$(STORE) scripts/demo.sh

.PHONY: dev
dev: install-runtime ## Serve examples/hello.py: worker and duties in one process, reloaded on change
	@.venv/bin/perdure dev examples.hello:app

.PHONY: test
test: install ## All quick tests
	@$(PYTEST) -n $(WORKERS) -m "not slow" $(ARGS)

.PHONY: test-postgres
test-postgres: install ## What PostgreSQL has to do, on each version that is here and behind PgBouncer
	@scripts/test_postgres.sh $(ARGS)

.PHONY: check
check: install ## Formatting, lint, types and layers
	@.venv/bin/ruff format --check .
	@.venv/bin/ruff check .
	@.venv/bin/mypy
	@.venv/bin/lint-imports --no-cache

.PHONY: format
format: install ## Format the code, and mend what the linter can mend
	@.venv/bin/ruff check --fix-only .
	@.venv/bin/ruff format .

.PHONY: bench
bench: install-bench ## Measure throughput and latency beside the raw loop and a peer
	@.venv/bin/python -m bench $(ARGS)

.PHONY: bench-peers
bench-peers: install-bench install-peers ## Measure perdure on PostgreSQL beside its peers, and write bench/RESULTS.md
	@.venv/bin/python -m bench.peers $(ARGS)

.PHONY: chaos
chaos: install ## Real processes, real faults: the long tier, with its table
	@PYTHONPATH=tests .venv/bin/python -m chaos --store $(STORE) $(ARGS)

.PHONY: chaos-peers
chaos-peers: install install-peers ## The same faults for perdure and its peers on PostgreSQL and Valkey, as a table
	@.venv/bin/python -m bench.faults $(ARGS)

.PHONY: simulate
simulate: install ## The deterministic simulation with SEEDS seeds (default 2000)
	@PYTHONPATH=tests .venv/bin/python -m simulation --seeds $(SEEDS) --processes $(WORKERS) $(ARGS)

.PHONY: mutants
mutants: install ## Break each guard in turn; every mutant must be caught by a test
	@PYTHONPATH=tests .venv/bin/python -m mutants --store $(STORE) $(ARGS)

.PHONY: docs
docs: install ## Make the pages that are drawn from the code: states, settings, metrics
	@.venv/bin/python scripts/draw_state_machine.py
	@.venv/bin/python scripts/write_settings.py
	@.venv/bin/python scripts/write_metrics.py

.PHONY: lock
lock: install-uv ## Resolve the dependencies anew into the hashed lock files
	@scripts/lock.sh

.PHONY: clean
clean: ## Remove what make made
	@rm -rf .venv .tools .bench .mutants .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: install install-runtime install-bench install-peers install-uv
install:
	@scripts/install.sh dev
install-runtime:
	@scripts/install.sh runtime
install-bench:
	@scripts/install.sh bench
install-peers:
	@scripts/install_peers.sh
install-uv:
	@scripts/install.sh uv
