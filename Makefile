# Everything a developer or CI does with this tree. The steps themselves are in scripts/.

.DEFAULT_GOAL := help
.PHONY: help setup run demo test crash bench bench-quick check lint types layers locks contracts fresh stubs lock tools clean

help: ## Tell what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: .venv/ready ## Make .venv with the locked packages and both distributions
	@echo ".venv is ready."

.venv/ready: requirements/dev.txt pyproject.toml clients/python/pyproject.toml
	@scripts/setup

run: setup ## Serve everything on 127.0.0.1:50051 over the file ramet.db
	@exec .venv/bin/ramet-server all

demo: setup ## Play an agent's work, against RAMET_ADDRESS or services that it starts
	@.venv/bin/python examples/demo.py

test: setup ## Run the whole suite, preparing MariaDB, grpcurl and Node for it
	@scripts/test

crash: setup ## Kill servers at steps of their work, and at random under load (CRASH_EVERY=1 for each step)
	@CRASH_EVERY=$${CRASH_EVERY:-3} scripts/test -rP tests/crash/long_stepping.py tests/crash/long_storm.py

bench: setup ## Measure everything beside its limits, in about an hour (OPTIONS=--help tells more)
	@.venv/bin/python -m benchmarks --json bench.json --table bench.md $(OPTIONS)

bench-quick: setup ## Measure calls over the wire beside their limits on MariaDB, in three minutes
	@.venv/bin/python -m benchmarks --quick $(OPTIONS)

check: lint types layers locks contracts fresh ## Run every check but the tests

lint: setup
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .

types: setup
	.venv/bin/mypy

layers: setup
	.venv/bin/lint-imports

locks: setup
	.venv/bin/python requirements/lock.py --check

contracts:
	@scripts/contracts

fresh: setup
	@scripts/stubs --check

stubs: setup ## Make the Python stubs anew, after a change in protos/
	@scripts/stubs

lock: setup ## Pin the packages anew, after a change in a pyproject.toml (OPTIONS=--upgrade for newer ones)
	@scripts/lock $(OPTIONS)

tools: ## Prepare MariaDB, grpcurl (.tools/bin/grpcurl) and what else the tests use
	@scripts/tools

clean: ## Remove what the other targets made, but no database
	rm -rf .venv .tools tests/clients/node/node_modules .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
