# `make` lists what there is. demo and test do all the set-up themselves (tools/setup).

PYTHON_VENV := .venv/bin/python
DEMO := .venv/bin/mccprobe bisect --flag internal-regs-ra

# Tests run side by side: one worker a core, at most 8 (each may itself run compilers in parallel).
TEST_JOBS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); [ $$n -gt 8 ] && n=8; echo $$n)
PYTEST_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo test bench lint clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "make %-6s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "make test PYTEST_ARGS='-k journal'  some of the tests;  TEST_JOBS=1  one after the other"

setup: ## install what demo and test need (packages by root only), make .venv
	@tools/setup test

demo: ## set up, then find a planted compiler fault in the shipped GEMM kernel
	@tools/setup demo
	$(DEMO)

test: setup lint ## set up, then lint, types and all tests
	$(PYTHON_VENV) -m pytest -n $(TEST_JOBS) --dist worksteal $(PYTEST_ARGS)

bench: setup ## the figures of benchmarks/, medians of 5
	$(PYTHON_VENV) benchmarks/run_all.py

lint: setup ## ruff and mypy --strict
	$(PYTHON_VENV) -m ruff check .
	$(PYTHON_VENV) -m mypy

clean: ## remove caches and build leftovers; .venv and mccprobe-out stay
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .test-cache
	find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +
