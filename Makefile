# Every target works on a fresh clone: it makes .venv with the first Python >= 3.11 found, and installs what it needs.
# Choose another interpreter with `make PYTHON=/path/to/python3.12 test`.
SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13 python3.14 python; do \
	"$$p" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && command -v "$$p" && break; done)
VENV := .venv
PY := $(VENV)/bin/python
JOBS ?= 2
PYTEST := $(PY) -m pytest
SPEC := ../shared/spec

.PHONY: help demo docs notebooks gallery charts test test-full bench ecosystem gpu wheels lint types suite newest plain wide wide-sample strict spec clean
# Steps of `make test` run one after the other, also under `make -j`.
.NOTPARALLEL:

help:
	@echo "make demo       install, then train on handwritten digits (examples/digits.py)"
	@echo "make test       lint, types, tests, doctests, also on the newest Python there is; what CI runs"
	@echo "make test-full  the same with the slow tests"
	@echo "make docs       the site of the documentation with its reference, in build/docs/html"
	@echo "make notebooks  the pages under \"Learn\" and the examples as notebooks, in build/notebooks"
	@echo "make charts     the libraries that draw the page of a profile, bundled anew (needs Node)"
	@echo "make bench      speed against the reference implementation, as ratios"
	@echo "make gpu        for a machine with a GPU: values there, and speed, as a report (docs/devices.md)"
	@echo "make ecosystem  the programs of 73 libraries written for JAX, on Gradix and on JAX in turns"
	@echo "make lint       ruff, dead code  make clean  remove .venv and caches"

$(PY):
	@if [ -z "$(PYTHON)" ]; then echo "Gradix needs Python 3.11 or newer with venv; none was found on PATH." >&2; exit 1; fi
	"$(PYTHON)" -m venv $(VENV)

# A stamp per set of extras, made again only when pyproject.toml changes.
$(VENV)/stamp-demo: EXTRAS := demo
$(VENV)/stamp-test: EXTRAS := test,parity,demo
$(VENV)/stamp-bench: EXTRAS := bench
$(VENV)/stamp-docs: EXTRAS := docs
$(VENV)/stamp-%: pyproject.toml | $(PY)
	$(PY) -m pip install --quiet --disable-pip-version-check -e ".[$(EXTRAS)]"
	@touch $@

demo: $(VENV)/stamp-demo
	$(PY) examples/digits.py

# All steps run even when one fails; the suite comes last, so its closing line does too.
test: $(VENV)/stamp-test
	@$(MAKE) --no-print-directory --keep-going lint types spec wide-sample newest suite

test-full: $(VENV)/stamp-test
	@GRADIX_TEST_PROFILE=full $(MAKE) --no-print-directory --keep-going lint types spec newest suite plain wide strict MARKERS=

lint: $(VENV)/stamp-test
	$(PY) -m ruff check .
	$(PY) -m ruff format --check --quiet .
	$(PY) .ci/dead_code.py

types: $(VENV)/stamp-test
	$(PY) -m mypy

MARKERS ?= not slow
suite: $(VENV)/stamp-test
	@$(PY) .ci/about.py
	$(PYTEST) tests gradix --doctest-modules -n $(JOBS) -m "$(MARKERS)"

# The suite once more on the newest Python of this machine, with the newest jaxlib; a line where there is none.
NEWEST := .venv-newest
newest: $(VENV)/stamp-test
	@$(PY) .ci/newest.py $(NEWEST) test,parity,demo
	@if [ -x $(NEWEST)/bin/python ]; then $(NEWEST)/bin/python .ci/about.py && \
		$(NEWEST)/bin/python -m pytest tests gradix --doctest-modules -n $(JOBS) -m "$(MARKERS)"; fi

# The same results without what the CPU's compiler is asked for the sake of speed.
plain: $(VENV)/stamp-test
	GRADIX_REWRITES=correctness $(PYTEST) tests -n $(JOBS) -m "not slow"

# The same suite with 64-bit types on; tests marked x32 state facts of the other mode, and run in it.
wide: $(VENV)/stamp-test
	JAX_ENABLE_X64=1 $(PYTEST) tests -n $(JOBS) -m "not slow"

# The same suite where nothing may be promoted or broadcast over ranks: what the library mixes itself fails.
strict: $(VENV)/stamp-test
	$(PYTEST) tests -p tests.strict -n $(JOBS) -m "not slow"

SAMPLE := tests/api/test_jacobians.py tests/api/test_derivative_corners.py tests/control/test_loops.py tests/control/test_while_reverse.py tests/transforms/test_grad.py
wide-sample: $(VENV)/stamp-test
	JAX_ENABLE_X64=1 $(PYTEST) $(SAMPLE) -n $(JOBS) -m "not slow"

# The documented behaviour, where its folder lies beside the clone; tests/documented/spec_xfail.txt lists what is not there yet.
spec: $(VENV)/stamp-test
	@if [ -d $(SPEC) ]; then \
		PYTHONPATH=tests/documented PYTHONDONTWRITEBYTECODE=1 $(PYTEST) -c tests/documented/spec.ini --rootdir=$(SPEC) -p spec_plugin -n $(JOBS) $(SPEC); \
	else echo "no $(SPEC) beside this clone: skipped"; fi

# The site of the documentation, with the reference; a warning of Sphinx, or a link that leads nowhere, is an error.
docs: $(VENV)/stamp-docs
	$(PY) docs/site build/docs

# Notebooks of the pages under "Learn" and of the examples, in build/notebooks.
notebooks: $(VENV)/stamp-demo
	$(PY) -m docs.notebooks build/notebooks

# The pictures of the gallery, by the examples in full.
gallery: $(VENV)/stamp-demo
	$(PY) -m docs.gallery

# What draws the page of a profile, from the versions that charts/package.json names; the result is committed.
charts:
	cd charts && npm ci --no-fund --no-audit && npm run --silent build

bench: $(VENV)/stamp-bench
	$(PY) -m benchmarks

# The libraries without jax, which lies in a folder of its own for the runs that are compared with.
LIBRARIES := .ecosystem
ecosystem:
	"$(PYTHON)" -m venv $(LIBRARIES)/venv
	$(LIBRARIES)/venv/bin/python -m pip install --quiet --disable-pip-version-check -e .
	$(LIBRARIES)/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps $$($(LIBRARIES)/venv/bin/python -m ecosystem --packages)
	$(LIBRARIES)/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(LIBRARIES)/jax jax==0.10.2 opt-einsum
	$(LIBRARIES)/venv/bin/python -m ecosystem --jax $(LIBRARIES)/jax

# On a machine with a GPU: values there against the host, speed, a report. WHEELS=FOLDER takes all packages from a folder,
# so that no network is needed; INSTALLED=1 those that GPU_PYTHON has; PLATFORM=cpu tries the command itself.
PLATFORM ?= cuda
REPORT ?= gpu.json
GPU_PYTHON ?= $(shell for p in python3.12 $(PYTHON); do "$$p" -c '' >/dev/null 2>&1 && command -v "$$p" && break; done)
GPU_PACKAGES := $(if $(filter cuda,$(PLATFORM)),jaxlib==0.11.2 jax-cuda13-plugin[with-cuda]==0.11.2) hatchling hypothesis mpmath pytest pytest-xdist
GPU := .venv-gpu
ifdef INSTALLED
gpu:
	PYTHONPATH=. "$(GPU_PYTHON)" -m tests.accelerator --platform $(PLATFORM) --report "$(REPORT)"
else
gpu:
	"$(GPU_PYTHON)" -m venv $(GPU)
	$(GPU)/bin/python -m pip install --quiet --disable-pip-version-check $(if $(WHEELS),--no-index --find-links "$(WHEELS)") $(GPU_PACKAGES)
	$(GPU)/bin/python -m pip install --quiet --disable-pip-version-check $(if $(WHEELS),--no-index --find-links "$(WHEELS)") --no-build-isolation -e .
	$(GPU)/bin/python -m tests.accelerator --platform $(PLATFORM) --report "$(REPORT)"
endif

# The wheels that `make gpu` takes, fetched where there is a network; for Linux on x86-64 with Python 3.12.
wheels:
	"$(GPU_PYTHON)" -m pip download --quiet --disable-pip-version-check --only-binary=:all: --python-version 3.12 \
		--platform manylinux_2_27_x86_64 --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 --dest "$(WHEELS)" \
		$(GPU_PACKAGES) $$($(PY) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"])')

clean:
	rm -rf $(VENV) $(NEWEST) $(GPU) $(LIBRARIES) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
