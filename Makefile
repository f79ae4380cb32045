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
.PHONY: help build demo test test-sanitizers test-long install bench tidy fuzz clean

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

test-long: build ## Slow tests, and every room under the sanitizers
	@$(call build,dev,-DFOVEA_TEST_ROOMS=) --target fovea_tests
	@$(call build,tsan,-DFOVEA_TEST_ROOMS=) --target fovea_tests
	@$(CTEST) --preset dev --parallel $(CORES)
	@FOVEA_EVERY_ISA=1 $(CTEST) --preset tsan --parallel $(CORES)
	@$(CTEST) --preset release --label-regex long

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

clean: ## Removes build/ and demo/
	rm -rf build demo
