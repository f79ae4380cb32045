# SPDX-License-Identifier: Apache-2.0
# The front door. CMake does the work: see CMakePresets.json.

CMAKE := $(firstword $(wildcard /usr/bin/cmake) cmake)
CTEST := $(firstword $(wildcard /usr/bin/ctest) ctest)
PYTHON := $(firstword $(wildcard /usr/bin/python3) python3)
CORES := $(shell nproc)
PREFIX ?= /usr/local
# For each fuzzer of `make fuzz`: seconds, or RUNS=N inputs.
SECONDS ?= 60

# So that ccache keeps what precompiled headers are used for.
export CCACHE_SLOPPINESS := pch_defines,time_macros

build = $(CMAKE) --preset $(1) --log-level=WARNING $(2) && $(CMAKE) --build --preset $(1)

.DEFAULT_GOAL := help
SHELL := /bin/bash -o pipefail
.PHONY: help build demo test test-sanitizers test-python test-long python-tools wheel install bench tidy fuzz clean

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]*:.*## / {printf "make %-16s%s\n", $$1, $$2}' Makefile

build: ## The command build/release/cli/fovea, the libraries and the tests
	@tools/install_dependencies.sh
	@$(call build,release)
	@echo "The command is build/release/cli/fovea."

demo: ## Train a model on English and one on Chinese verse, and let them write
	@tools/install_dependencies.sh build demo
	@$(call build,release) --target fovea
	@tools/demo.sh

test: build ## All fast tests
	@tools/install_dependencies.sh test
	@$(CTEST) --preset release --parallel $(CORES) --label-exclude 'long|slow'

# The rooms that the sanitizers look at here are listed in CMakePresets.json.
test-sanitizers: build ## The hardest rooms under ASan, UBSan and TSan; each header alone; programs of bench
	@$(call build,dev) --target fovea_tests
	@$(call build,tsan) --target fovea_tests
	@$(call build,release) --target fovea_bench
	@printf 'subdirs(dev tsan)\n' > build/CTestTestfile.cmake
	@$(CTEST) --test-dir build --parallel $(CORES) --output-on-failure
	@$(CTEST) --preset release --parallel $(CORES) --label-regex slow

# With PyTorch where pip finds one for the CPU: `PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu`.
test-python: wheel ## Tests of the Python package, installed from dist/ in an environment of its own
	@tools/python_env.sh build/python/tested $(PYTHON) numpy mypy abi3audit "?torch==2.13.0+cpu" "?transformers>=5" "?peft" "?sentencepiece" "?protobuf" "?ctranslate2"
	@build/python/tested/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall \
	  --no-deps dist/fovea-*.whl
	@build/python/tested/bin/python -m pip install --quiet --disable-pip-version-check dist/fovea-*.whl
	@build/python/tested/bin/python -B -m unittest discover --start-directory tests/python --verbose

test-long: build ## Slow tests, and every room under the sanitizers
	@$(call build,dev,-DFOVEA_TEST_ROOMS=) --target fovea_tests
	@$(call build,tsan,-DFOVEA_TEST_ROOMS= -DFOVEA_FEW_ISAS=OFF) --target fovea_tests
	@$(CTEST) --preset dev --parallel $(CORES)
	@FOVEA_EVERY_ISA=1 $(CTEST) --preset tsan --parallel $(CORES)
	@$(CTEST) --preset release --label-regex long

python-tools: # what the wheel is built with, from PyPI
	@tools/install_dependencies.sh build python
	@tools/python_env.sh build/python/builder $(PYTHON) "scikit-build-core>=1.0" "nanobind>=3.1,<4" \
	  "nanobind-backend>=1.0,<2" build "?zopfli"

# The rooms come from build/release, where `make test` leaves them; `pip install .` builds them itself.
wheel: python-tools ## The Python package as a wheel in dist/
	@$(call build,release) --target fovea_installed
	@$(CMAKE) --install build/release --prefix build/python/rooms >/dev/null
	@rm -rf dist
	@PATH=$(dir $(CMAKE)):$$PATH build/python/builder/bin/python -m build --wheel --no-isolation --outdir dist \
	  -Cbuild-dir=build/python/extension -Ccmake.define.FOVEA_INSTALLED=$(CURDIR)/build/python/rooms >build/python/log \
	  || { cat build/python/log; exit 1; }
	@build/python/builder/bin/python tools/pack_wheel.py dist/fovea-*.whl
	@ls -sh dist/*

install: ## The command, headers, libraries and the CMake package in PREFIX (/usr/local)
	@tools/install_dependencies.sh
	@$(call build,release) --target fovea_installed
	@$(CMAKE) --install build/release --prefix $(PREFIX)

bench: ## Beside PyTorch and JAX, where they are; TEXT=FILE adds the training comparisons
	@tools/install_dependencies.sh
	@$(call build,release) --target fovea fovea_bench
	@$(PYTHON) bench/attention_peers.py
	@$(PYTHON) bench/memory_attention.py
	@test -z "$(TEXT)" || $(PYTHON) bench/train_peers.py "$(TEXT)"
	@test -z "$(TEXT)" || $(PYTHON) bench/shakespeare.py "$(TEXT)"

tidy: ## clang-tidy over the product, built with clang
	@tools/install_dependencies.sh build tidy
	@$(call build,tidy)

fuzz: ## Every reader of foreign bytes against libFuzzer, SECONDS=60 or RUNS=N inputs each
	@tools/install_dependencies.sh build tidy
	@$(call build,fuzz) --target fovea_fuzzers
	@for fuzzer in build/fuzz/fuzzers/*; do \
	  echo "== $$fuzzer"; \
	  mkdir -p build/fuzz/corpus/$$(basename $$fuzzer); \
	  $$fuzzer $(if $(RUNS),-runs=$(RUNS),-max_total_time=$(SECONDS)) -timeout=5 -rss_limit_mb=2048 -print_final_stats=1 \
	    build/fuzz/corpus/$$(basename $$fuzzer) 2>&1 | tail -n 40 || exit 1; \
	done

clean: ## Removes build/, demo/ and dist/
	rm -rf build demo dist
