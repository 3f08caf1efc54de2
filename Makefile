# Everything that is done to this repository. Whatever takes more than a line is in scripts/.

SHELL := bash
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run test bench setup check schema clean

# Where rustup puts cargo, also in a shell that was opened before rustup ran.
export PATH := $(HOME)/.cargo/bin:$(PATH)

# CI builds exactly what Cargo.lock says; at a desk cargo may bring it up to date.
LOCKED := $(if $(CI),--locked)

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

run: ## Start a demo server on http://127.0.0.1:8080 (RELEASE=1: optimised; ARGS="…": more flags for serve)
	@scripts/run $(ARGS)

test: ## Check and test everything
	@scripts/setup test
	@$(MAKE) --no-print-directory check
	cargo test $(LOCKED)

bench: ## Run the benchmarks
	@if [ -d benches ]; then cargo bench; else echo "There are no benchmarks yet; they will be in benches/."; fi

setup: ## Install what running and testing need, or say what is missing
	@scripts/setup

check: ## Formatting, lints with warnings denied, and whether schema.graphql matches the code
	cargo fmt --check
	cargo clippy $(LOCKED) --all-targets -- -D warnings
	scripts/schema check

schema: ## Write schema.graphql anew from the code
	scripts/schema write

clean: ## Remove what was built (never what the server stored in data/)
	cargo clean
	rm -rf tests/clients/node_modules benches/live/node/node_modules
