# `make demo` and `make test` are all a new machine needs: each makes .venv first where there is none.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export HAYSTACK_TELEMETRY_ENABLED := False
export TOKENIZERS_PARALLELISM := false

.PHONY: demo test slow lint types gate fmt integration docs bars quality clean

$(VENV)/installed: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing Shiguan into $(VENV) (the first time takes some minutes) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@

demo: $(VENV)/installed  ## ingest the sample book, ask it three questions
	@$(BIN)/python examples/demo.py

test: $(VENV)/installed  ## every test that needs no server, key or network
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile -m "not integration and not slow"

slow: $(VENV)/installed  ## the long ones: servers, kills, whole sets, a hundred thousand cases
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile -m "slow and not integration"

integration: $(VENV)/installed  ## tests against real servers, see tests/integration/README.md
	$(BIN)/python -m pytest -q -m integration

lint: $(VENV)/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	PYTHONPATH=components $(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/shiguan check
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec docker-compose.yml
	$(BIN)/hadolint --config .hadolint.yaml hayhooks/Dockerfile
	$(BIN)/yamllint --strict .

types: $(VENV)/installed
	$(BIN)/mypy

gate: $(VENV)/installed  ## has retrieval, citing or refusing got worse? against evaluation/gate/
	OMP_NUM_THREADS=1 $(BIN)/python evaluation/gate.py

fmt: $(VENV)/installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/installed  ## docs/modes.md and docs/components.md, from YAML and docstrings
	PYTHONPATH=components $(BIN)/python docs/generate.py

bars: $(VENV)/installed  ## the retrieval table of the README, on the public sets
	$(BIN)/python evaluation/retrieval_bars.py --keep .data/bars

quality: $(VENV)/installed  ## what each part of the retrieval pays, on the public sets
	$(BIN)/python evaluation/quality.py --keep .data/quality
	$(BIN)/python evaluation/late_interaction.py
	$(BIN)/python evaluation/answer_bars.py --keep .data/bars

clean:
	rm -rf $(VENV) .data dist build
