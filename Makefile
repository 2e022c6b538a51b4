# Needs Python 3.11 or newer and make; everything else goes into .venv.

SHELL := /bin/sh
PORT ?= 8501
HOST ?= $(or $(STREAMLIT_SERVER_ADDRESS),127.0.0.1)
ALLOWED := $(or $(STREAMLIT_SERVER_ALLOWED_HOSTS),$(if $(filter 127.% localhost ::1,$(HOST)),localhost 127.0.0.1 ::1,*))
MODELS ?= $(or $(DUAL_AMN_MODELS),models)
SAMPLE ?= sample_data/world
DATA ?= sample_data/europe
ENTITIES ?= 5000
BASELINE ?= benchmarks/baseline.json
PREPARE ?= yes
ARGS ?=
JOBS ?= 2
SOAK_CASES ?= 2000

# No requirements marker can detect a GPU, and faiss-cpu and faiss-gpu share a folder, so the choice is made here.
GPU := $(shell nvidia-smi -L >/dev/null 2>&1 && echo -gpu)
REQUIREMENTS := requirements$(GPU).txt
OTHER := $(if $(GPU),,-gpu)
STAMP := .venv/.requirements$(GPU).stamp
DEV_STAMP := .venv/.requirements$(GPU)-dev.stamp
PY := .venv/bin/python
PIP := $(PY) -m pip install --disable-pip-version-check
# A lock holds every package with its version and the checksums of its files, and pip takes nothing else. LOCK=no takes the pinned requirements without
# checksums instead, for machines whose index offers other files (another build of torch, for example).
LOCK ?= yes
LOCKED := $(PIP) --require-hashes --no-deps
# A torch for processors alone, where pip is set up to find one outside of an index (PIP_FIND_LINKS), goes before the index's, which is ten times as large.
# What torch needs of CUDA is installed only for a torch that asks for it.
TORCH := $(LOCKED) --no-index --quiet -r requirements-torch.lock 2>/dev/null || $(LOCKED) -r requirements-torch.lock
NEEDS_CUDA := $(PY) -c "import importlib.metadata as m, sys; sys.exit(not any(r.startswith(('nvidia', 'cuda', 'triton')) for r in m.requires('torch') or ()))"

.DEFAULT_GOAL := help
.PHONY: help install app test soak check bench reproduce lock sbom clean

help: ## show this list
	@echo "Dual-AMN Explorer. Targets:"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'

install: $(STAMP) ## install the engine and the app into .venv

app: $(STAMP) ## open the app on http://localhost:8501 (PORT=...; HOST=0.0.0.0 for other machines); without runs, train on the sample data first (PREPARE=no: do not)
	@[ "$(PREPARE)" = no ] || $(PY) -m engine prepare "$(SAMPLE)" --models "$(MODELS)" || { \
		echo "The next make app goes on from here; make app PREPARE=no opens the app as it is." >&2; exit 1; }
	@DUAL_AMN_MODELS="$(MODELS)" STREAMLIT_SERVER_ALLOWED_HOSTS="$(ALLOWED)" exec $(PY) -m streamlit run app/main.py --server.address "$(HOST)" --server.port "$(PORT)"

# Compiled modules are kept, also where the environment says otherwise: each process of the tests, and each that they start, would compile them again.
test: $(DEV_STAMP) ## run the tests in JOBS processes (ARGS="tests/search" or ARGS="-k name" for some of them, ARGS="-m slow" for those that take minutes)
	PYTHONDONTWRITEBYTECODE= $(PY) -m pytest -n $(JOBS) --dist worksteal $(ARGS)

soak: $(DEV_STAMP) ## try 2,000 random cases for each reader, archive, address and store (SOAK_CASES=200 for fewer, ARGS="-k turtle" for some); see docs/reliability.md
	SOAK_CASES=$(SOAK_CASES) $(PY) -m pytest -n $(JOBS) -m slow tests/fuzz $(ARGS)

check: $(DEV_STAMP) ## lint, formatting and types
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

bench: $(DEV_STAMP) ## measure speed and memory and compare with what was recorded (ARGS="--record benchmarks/baseline.json"); see docs/benchmarks.md
	$(PY) -m benchmarks.speed --entities $(ENTITIES) --baseline $(BASELINE) $(ARGS)
	$(PY) -m benchmarks.whole --baseline $(BASELINE) $(ARGS)

reproduce: $(DEV_STAMP) ## train and compare with the paper (DATA="folder ...", ARGS="--seeds 0 1 2"); see benchmarks/RESULTS.md
	$(PY) -m benchmarks.reproduce $(DATA) $(ARGS)

lock: $(DEV_STAMP) ## write the lock files from the pinned requirements (ARGS=--upgrade for newer versions of what these need)
	$(PY) -m tools.lock $(ARGS)

sbom: $(DEV_STAMP) ## list all packages of an install as CycloneDX, in sbom.json
	@cat $(REQUIREMENTS:.txt=.lock) requirements-torch.lock requirements-cuda.lock | $(PY) -W ignore -m cyclonedx_py requirements - --pyproject pyproject.toml --output-reproducible --output-format JSON --output-file sbom.json
	@echo "sbom.json lists what 'make install' installs."

clean: ## remove .venv and caches; never touches models
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .numba_cache

.venv/bin/python:
	@for python in "$$PYTHON" python3 python3.14 python3.13 python3.12 python3.11 python; do \
		[ -n "$$python" ] || continue; \
		"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue; \
		echo "Making .venv with $$("$$python" --version)."; \
		"$$python" -m venv --clear .venv && exit 0; \
		rm -rf .venv; \
		echo "$$python cannot make a virtual environment; on Debian and Ubuntu install its venv package (python3-venv)." >&2; \
		exit 1; \
	done; \
	echo "Python 3.11 or newer is needed and was not found; install it, or name it: make PYTHON=/path/to/python install" >&2; \
	exit 1

# A .venv made for the other kind of machine is made anew: its faiss would be mixed with ours.
$(STAMP): $(REQUIREMENTS) requirements-common.txt $(REQUIREMENTS:.txt=.lock) requirements-torch.lock requirements-cuda.lock
	@if [ -e .venv/.requirements$(OTHER).stamp ] || ! $(PY) -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then rm -rf .venv; fi
	@$(MAKE) -s --no-print-directory .venv/bin/python
	@echo "Installing $(REQUIREMENTS) into .venv; the first time this takes some minutes. torch comes first and is the largest package."
	@if [ "$(LOCK)" = no ]; then $(PIP) -r $(REQUIREMENTS); else \
		{ $(TORCH); } && $(LOCKED) -r $(REQUIREMENTS:.txt=.lock) && { ! $(NEEDS_CUDA) || $(LOCKED) -r requirements-cuda.lock; } || { \
		echo "If a checksum differs because your package index offers other files: make LOCK=no $(MAKECMDGOALS)" >&2; exit 1; }; fi
	@touch $@

$(DEV_STAMP): $(STAMP) requirements-dev.txt requirements-dev.lock
	@echo "Installing requirements-dev.txt into .venv."
	@if [ "$(LOCK)" = no ]; then $(PIP) -r $(REQUIREMENTS) -r requirements-dev.txt; else $(LOCKED) -r requirements-dev.lock; fi
	@touch $@
