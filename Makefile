# `make` lists what there is. Each target does the set-up that it needs itself (tools/setup).

PYTHON_VENV := .venv/bin/python
DEMO := .venv/bin/mccprobe bisect --flag internal-regs-ra

# Tests run side by side: one worker a core, at most 8 (each may itself run compilers in parallel).
TEST_JOBS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); [ $$n -gt 8 ] && n=8; echo $$n)
PYTEST_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo test bench lint clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-13s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "make test PYTEST_ARGS='-k journal'  some of the tests;  TEST_JOBS=1  one after the other"

setup: ## install what demo and test need (packages by root only), make .venv
	@tools/setup test

demo: ## set up, then find a planted compiler fault in the shipped GEMM kernel
	@tools/setup demo
	$(DEMO)

test: setup lint ## set up, then lint, types and all tests
	$(PYTHON_VENV) -m pytest -n $(TEST_JOBS) --dist worksteal $(PYTEST_ARGS)

.PHONY: soak
soak: setup ## faults under fire in full (tests/faults/README.md), and tests marked soak; SOAK_KILLS=20 and the like for less
	SOAK=1 $(PYTHON_VENV) -m pytest tests/faults -q -n $(TEST_JOBS) --dist worksteal $(PYTEST_ARGS)
	SOAK=1 $(PYTHON_VENV) -m pytest tests --ignore=tests/faults -m soak -q -n $(TEST_JOBS) --dist worksteal $(PYTEST_ARGS)

.PHONY: fuzz
fuzz: setup ## damaged inputs for every reader (tests/hostile/README.md); FUZZ_INPUTS=1000 for less than 100,000 each
	$(PYTHON_VENV) -m pip install --quiet --editable '.[fuzz]' || echo "without atheris: at random"
	$(PYTHON_VENV) -m tests.hostile.campaign

bench: setup ## the figures of benchmarks/, medians of 5
	$(PYTHON_VENV) benchmarks/run_all.py

.PHONY: docs
docs: setup ## the pages of docs/ into build/docs; a warning is an error
	$(PYTHON_VENV) -m sphinx -W --keep-going -q -b html docs build/docs

.PHONY: dist release-check mutation
dist: ## sdist and wheel into dist/
	@tools/setup dist
	$(PYTHON_VENV) -I -m build --outdir dist .

release-check: setup ## the wheel as a user has it: pipx, uv, missing parts, read-only folders
	$(PYTHON_VENV) -m pip install --quiet --editable '.[release]'
	RELEASE_CHECK=1 $(PYTHON_VENV) -m pytest tests/release -q -n $(TEST_JOBS) --dist worksteal $(PYTEST_ARGS)

mutation: setup ## which changes of search, binary and isa no test notices (tests/mutation.md); an hour and more
	$(PYTHON_VENV) -m pip install --quiet --editable '.[mutation]'
	$(PYTHON_VENV) tools/mutation.py --per-package 460

# vermin finds functions newer than Python 3.11; methods, keywords and 3.11.N: tests/layout/test_python_versions.py
lint: setup ## ruff, vermin and mypy --strict
	$(PYTHON_VENV) -m ruff check .
	.venv/bin/vermin --target=3.11- --violations --no-tips --quiet mccprobe tests tools benchmarks docs/_ext
	$(PYTHON_VENV) -m mypy

clean: ## remove caches and build leftovers; .venv and mccprobe-out stay
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .test-cache
	find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +
