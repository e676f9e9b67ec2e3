# Everything is installed into one virtual environment, which is created on first use:
#   make PYTHON=python3.12 VENV=.venv312 test     chooses another interpreter and environment
#   make PYTEST_ARGS="-k greedy -n 0" test        passes options to pytest, here: no workers
PYTHON ?= python3
VENV ?= .venv
PYTEST_ARGS ?=
FUZZ_SECONDS ?= 60
MUTANTS ?= 500
SEED ?= 0

BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest -n auto --maxprocesses=4 --dist=worksteal
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check
WHEEL = $$(echo $(VENV)/wheel/*.whl)
BUILD_REQUIRES := import tomllib; \
	needed = tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"]; \
	print(*needed, "cmake", "ninja", sep="\n")

# What reaches the core by all of its functions, with wrong arguments, and from damaged models.
ASAN_TESTS := tests/test_core_arguments.py tests/test_core_monitors.py tests/test_damaged_models.py \
	tests/test_corrupt_sparse_rows.py

# What uses threads or calls the core. Other tests need packages that exist only with the GIL.
FREE_THREADED_TESTS := tests/test_free_threading.py tests/test_many_fits.py tests/test_parallel.py \
	tests/test_monitor.py tests/test_core_arguments.py tests/test_core_monitors.py \
	tests/estimators/test_warn.py tests/cells tests/kernels tests/solvers

# Folders are listed too: their times show that files were added or deleted.
SOURCES := pyproject.toml CMakeLists.txt $(shell find core src \
	\( -name __pycache__ -o -name '.*_cache' -o -name '*.so' -o -path core/tests \) -prune -o -print)

# Make would compile the folder core/src/level from level.cpp beside it.
MAKEFLAGS += --no-builtin-rules

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all mutants reproduce docs docs-quick linkcheck package lint typecheck \
	cpp-test cpp-test-threads asan-test free-threaded-test fuzz format clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-18s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.installed ## train on bundled data and compare with scikit-learn's SVC
	@$(BIN)/python examples/demo.py

# Workers of pytest share the cores: threads of BLAS in one would wait for those in the others.
test test-all free-threaded-test: export OPENBLAS_NUM_THREADS = 1
test: $(VENV)/.test ## run the Python tests: every behaviour, and every option once
	@$(PYTEST) $(PYTEST_ARGS)

test-all: $(VENV)/.test ## run what `make test` leaves out: the other combinations of options
	@$(PYTEST) -m full $(PYTEST_ARGS)

mutants: $(VENV)/.test ## break the code in MUTANTS random places, one at a time: which do tests see?
	@$(BIN)/python tools/mutants.py --sample $(MUTANTS) --seed $(SEED)

reproduce: $(VENV)/.test ## quick run of the papers' tables and figures: build/report/index.html
	@$(BIN)/hardmargin reproduce all --quick --out build/report

docs: $(VENV)/.docs ## build the documentation and run its examples: build/docs/index.html
	@$(BIN)/sphinx-build -W --keep-going -q -d build/doctrees docs build/docs
	@$(BIN)/python tools/check_site.py build/docs

docs-quick: export HARDMARGIN_EXAMPLE_ROWS = 20000
docs-quick: export OMP_NUM_THREADS = 1
docs-quick: docs ## the same, with less data in the largest example

linkcheck: $(VENV)/.docs ## follow the links of the documentation to other sites
	@$(BIN)/sphinx-build -q -b linkcheck -D plot_gallery=0 -d build/doctrees-links docs build/links

package: $(VENV)/.dev ## check wheel and source release, and try the wheel in an empty environment
	@rm -rf dist build/empty && mkdir -p dist && cp $(WHEEL) dist/
	@$(BIN)/python -m build --sdist --outdir dist . >/dev/null
	@$(BIN)/twine check --strict dist/*
	@$(MAKE) --no-print-directory VENV=build/empty build/empty/bin/python
	@build/empty/bin/python -m pip -qq --disable-pip-version-check install dist/*.whl
	@build/empty/bin/python tools/try_installed.py

lint: $(VENV)/.dev ## check the style, format and layers of Python, and the format of C++
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-cache --no-logo
	@find core -name '*.[ch]pp' | xargs $(BIN)/clang-format --dry-run --Werror

typecheck: $(VENV)/.dev ## check the types of the package
	@$(BIN)/mypy --strict src

cpp-test: $(VENV)/.dev ## run the C++ tests with address and undefined-behaviour sanitizers
	@PATH="$(abspath $(BIN)):$$PATH" cmake -S . -B build/sanitize -G Ninja --log-level=NOTICE \
		-DHARDMARGIN_PYTHON=OFF -DHARDMARGIN_TESTS=ON -DHARDMARGIN_SANITIZE=address,undefined
	@$(BIN)/cmake --build build/sanitize
	@UBSAN_OPTIONS=print_stacktrace=1 \
		$(BIN)/ctest --test-dir build/sanitize --output-on-failure --no-tests=error

# Tests that start no threads are left out.
cpp-test-threads: $(VENV)/.dev ## run the C++ tests with the thread sanitizer
	@PATH="$(abspath $(BIN)):$$PATH" cmake -S . -B build/threads -G Ninja --log-level=NOTICE \
		-DHARDMARGIN_PYTHON=OFF -DHARDMARGIN_TESTS=ON -DHARDMARGIN_SANITIZE=thread
	@$(BIN)/cmake --build build/threads
	@$(BIN)/ctest --test-dir build/threads --output-on-failure --no-tests=error -j 2 \
		-E 'core_set|interpolation|layout|test_level|wide_vectors'

# Python itself is not instrumented, so the sanitizer must be loaded before it; so must the C++ library,
# as the sanitizer cannot see exceptions otherwise. What Python leaves to the system is no leak of ours.
asan-test: $(VENV)/.dev ## run Python tests of the compiled core with the address sanitizer
	@$(PIP) install --no-deps --upgrade --target build/asan . \
		-C build-dir=build/asan-objects -C install.strip=false \
		-C cmake.define.HARDMARGIN_SANITIZE=address
	@ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 PYTHONPATH=$(abspath build/asan) \
		LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
		$(BIN)/python -m pytest -q -m '' -p no:cacheprovider $(ASAN_TESTS)

# The newest releases of numpy and others may have no wheels for an older Python without the GIL.
free-threaded-test: export PIP_PREFER_BINARY = 1
free-threaded-test: $(VENV)/.installed ## run tests of threads and the core on a Python without the GIL
	@$(PIP) install hypothesis pandas pytest pytest-xdist
	@$(BIN)/python -c 'import sys; sys.exit(getattr(sys, "_is_gil_enabled", lambda: True)())' || \
		{ echo "This Python has a GIL: make PYTHON=python3.14t VENV=.venv314t ..." >&2; exit 1; }
	@$(PYTEST) -m '' $(PYTEST_ARGS) $(FREE_THREADED_TESTS)

fuzz: $(VENV)/.test ## feed damaged files to every reader, for FUZZ_SECONDS
	@$(BIN)/python tools/fuzz_readers.py --seconds $(FUZZ_SECONDS)

format: $(VENV)/.dev ## format Python and C++
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .
	@find core -name '*.[ch]pp' | xargs $(BIN)/clang-format -i

clean: ## remove the virtual environment and everything built
	@rm -rf $(VENV) build dist wheelhouse .mypy_cache .pytest_cache .ruff_cache .hypothesis

# Some systems ship Python without ensurepip; their own pip then installs pip into the environment.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "hardmargin needs Python 3.11 or newer: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "Creating $(VENV)"
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || { \
		$(PYTHON) -m venv --clear --without-pip $(VENV) && \
		$(PYTHON) -m pip --quiet --python $(BIN)/python install pip; }

# What builds the package stays installed and keeps its objects: only what changed is compiled again.
$(VENV)/.build: pyproject.toml | $(BIN)/python
	@$(BIN)/python -c '$(BUILD_REQUIRES)' | $(PIP) install -r /dev/stdin
	@touch $@

# One wheel is built; the package and all extras are installed from it.
$(VENV)/.installed: $(SOURCES) $(VENV)/.build
	@echo "Building and installing hardmargin (a minute or two, if C++ changed)"
	@rm -rf $(VENV)/wheel
	@PATH="$(abspath $(BIN)):$$PATH" $(PIP) wheel --no-deps --wheel-dir $(VENV)/wheel \
		--no-build-isolation -C build-dir=$(VENV)/objects .
	@$(PIP) install --force-reinstall --no-deps "$(WHEEL)"
	@$(PIP) install "$(WHEEL)"
	@touch $@

$(VENV)/.test $(VENV)/.docs $(VENV)/.dev: $(VENV)/.%: $(VENV)/.installed
	@echo "Installing what '$*' needs"
	@$(PIP) install "$(WHEEL)[$*]"
	@touch $@
