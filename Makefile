# All that a fresh machine needs: a Python 3.9 to 3.13, make and a package index.

.DEFAULT_GOAL := help
.PHONY: help mnist test long slow faults lint api benchmark clean FORCE

BIN := .venv/bin
# Two parts: training needs no tools of development.
INSTALLED := .venv/installed
DEVELOPS := .venv/develops

IS_SUPPORTED := import sys; sys.exit(not (3, 9) <= sys.version_info[:2] <= (3, 13))
RELEASE := import sys; print(sys.version.split()[0])
# Python 3.9 ends with TensorFlow 2.20.
LINE := import sys; print("2.20" if sys.version_info[:2] == (3, 9) else "2.21")

# Asked, not looked up: a shim of a version manager is found, and fails when it is run.
runs = $(1) -c '$(IS_SUPPORTED)' >/dev/null 2>&1
NAMES := python3.11 python3.12 python3.13 python3.10 python3.9 python3 python
PYTHON ?= $(shell for name in $(NAMES); do if $(call runs,$$name); then echo $$name; break; fi; done)

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' Makefile

mnist: $(INSTALLED)  ## train on one parameter server and two workers, here
	@$(BIN)/python -m experiments.mnist --strategy=ps --num_ps=1 --num_workers=2 --dataset=auto

test: $(DEVELOPS)  ## run the tests, except those that take long
	@$(BIN)/python -m pytest -n 3 --dist loadfile -m "not long and not slow and not faults"

long: $(DEVELOPS)  ## run the tests that take many seconds
	@$(BIN)/python -m pytest -n 3 --dist loadfile -m "long and not slow and not faults"

slow: $(DEVELOPS)  ## run the tests that take minutes
	@$(BIN)/python -m pytest -m slow

faults: $(DEVELOPS)  ## run the core of the tests of faults: tasks killed, stopped, missing
	@$(BIN)/python -m pytest -n 2 -m core tests/experiments/faults

lint: $(DEVELOPS)  ## check style, format, spelling and types
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/codespell
	@$(BIN)/mypy

api: $(DEVELOPS)  ## write the tables of the docs from the rows of the tests, and the rules
	@$(BIN)/python -m tests.conformance

benchmark: $(DEVELOPS)  ## measure, and print what was measured against what
	@$(BIN)/python -m benchmarks

clean:  ## remove the environments and caches, and leave what training wrote
	@rm -rf .venv .tox build dist site *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache

# By uv, which takes a quarter of the time: that of the machine, or else the one that pip brings.
# By pip where uv cannot, as with an index that only pip knows. Both show their progress.
, := ,
install = line=requirements/tf$$('$(PYTHON)' -c '$(LINE)').txt; \
  PATH="$$PATH:$(BIN)" uv pip install --python $(BIN)/python -e '$(1)' -c $$line || \
  { echo "uv did not install it, so pip does"; $(BIN)/python -m pip install -e '$(1)' -c $$line; }

# Another Python than the one of the environment was asked for.
ifneq ($(filter command line environment,$(origin PYTHON)),)
ifneq ($(shell { '$(PYTHON)' -c '$(RELEASE)'; } 2>/dev/null),$(shell { $(BIN)/python -c '$(RELEASE)'; } 2>/dev/null))
$(INSTALLED): FORCE
endif
endif

# Built anew, not patched, whenever what it is made from changes.
$(INSTALLED): setup.cfg $(wildcard requirements/*.txt)
	@if [ -z '$(PYTHON)' ]; then \
	  found=$$(for name in $(NAMES); do $$name -c '$(RELEASE)' 2>/dev/null; done | sort -u | tr '\n' ' '); \
	  echo "make: found Python $${found:-(none) }on PATH, expected 3.9 to 3.13: name one, as in: make PYTHON=/path/to/python3.11 mnist" >&2; exit 1; \
	fi
	@$(call runs,'$(PYTHON)') || { \
	  found=$$('$(PYTHON)' -c '$(RELEASE)' 2>/dev/null || echo "that does not run"); \
	  echo "make: found PYTHON=$(PYTHON) ($$found), expected 3.9 to 3.13: name one, as in: make PYTHON=/path/to/python3.11 mnist" >&2; exit 1; }
	@'$(PYTHON)' -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "make: found $(PYTHON) without ensurepip or venv, expected both: install them (on Debian: apt install python3-venv) or name another Python, as in: make PYTHON=/path/to/python3.11 mnist" >&2; exit 1; }
	@echo "installing TensorFlow $$('$(PYTHON)' -c '$(LINE)') and the rest into .venv (once, one to three minutes)"
	@'$(PYTHON)' -m venv --clear .venv
	@# Editable installs from setup.cfg alone came with pip 21.3.
	@$(BIN)/python -m pip install -qq --disable-pip-version-check 'pip>=21.3'
	@command -v uv >/dev/null || $(BIN)/python -m pip install -qq --disable-pip-version-check uv || true
	@$(call install,.[scripts])
	@touch $@

$(DEVELOPS): $(INSTALLED)
	@echo "installing what the tests and tools need into .venv (once, less than a minute)"
	@$(call install,.[test$(,)scripts$(,)dev])
	@touch $@
