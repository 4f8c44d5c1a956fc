# Everything a developer runs. `make help` lists it.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
CARGO ?= cargo

.PHONY: help examples test lint deny generate bench

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

examples: ## check the examples and show what would run
	$(CARGO) run --quiet -- validate examples
	$(CARGO) run --quiet -- graph examples/platform/v2

test: ## format, lints, tests, documentation; no cluster needed
	$(CARGO) fmt --check
	$(CARGO) clippy --quiet --all-targets -- -D warnings
	$(CARGO) test --quiet
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --quiet --no-deps --document-private-items

lint: ## lints alone, and licences, duplicates and sources of the dependencies
	$(CARGO) fmt --check
	$(CARGO) clippy --quiet --all-targets -- -D warnings
	$(MAKE) deny

deny: ## licences, duplicates and sources of the dependencies
	@command -v cargo-deny >/dev/null || { echo "building cargo-deny once (about 4 minutes)"; $(CARGO) install --quiet --locked cargo-deny; }
	cargo-deny --all-features check licenses bans sources

generate: ## write manifests/crds and the editor schema from the types
	$(CARGO) run --quiet -- crds -o manifests/crds

bench: ## benchmarks; fail when the counted work exceeds its bar
	$(CARGO) bench

-include tests/bench/bench.mk fuzz/fuzz.mk
