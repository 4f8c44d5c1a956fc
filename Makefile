# Everything a developer runs. `make help` lists it.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
CARGO ?= cargo

.PHONY: help examples test explore survey tell lint deny generate bench static static-path

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

examples: ## rehearse the upgrade of each example on both engines, check them, translate them into target/examples
	@echo "building windlass, minutes the first time"
	$(CARGO) build --quiet
	@for example in examples/*/; do for engine in flux argo; do \
	  echo "$$example on $$engine"; \
	  target/debug/windlass rehearse $${example}v2 --from $${example}v1 --engine $$engine; \
	done; done
	@for state in examples/*/v?; do for engine in flux argo; do \
	  echo "$$state on $$engine"; \
	  target/debug/windlass validate $$state --engine $$engine --chart-root $$state --charts $$state/charts --deny-warnings; \
	  target/debug/windlass render $$state --engine $$engine --mode native --skip-hooks --chart-root $$state \
	    --repo-url https://git.example.org/packages.git --revision 4b825dc642cb6eb9a060e54bf8d69288fbee4904 \
	    -o target/$$state/$$engine; \
	done; done
	target/debug/windlass graph examples/platform/v2

test: ## format, lints, tests, documentation; no cluster needed (that is `make e2e`)
	$(CARGO) fmt --check
	$(CARGO) clippy --quiet --all-targets -- -D warnings
	$(CARGO) clippy --quiet --test e2e -- -D warnings
	$(CARGO) test --quiet
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --quiet --no-deps --document-private-items
	@command -v go >/dev/null || echo "Go is not installed: the tests against a real cluster (make e2e) cannot run here"

explore: ## every interleaving of larger simulated worlds; minutes
	$(CARGO) test --quiet --test explore -- --larger

SEED ?= 0
HISTORIES ?= 80
survey: ## what random histories come to: SEED=0 HISTORIES=80
	$(CARGO) test --quiet --test explore -- --survey $(SEED) $(HISTORIES)

tell: ## all that happens in one of them: SEED=
	$(CARGO) test --quiet --test explore -- --tell $(SEED)

lint: ## lints alone, and licences, duplicates and sources of the dependencies
	$(CARGO) fmt --check
	$(CARGO) clippy --quiet --all-targets -- -D warnings
	$(MAKE) deny

deny: ## licences, duplicates and sources of the dependencies
	@command -v cargo-deny >/dev/null || { echo "building cargo-deny once (about 4 minutes)"; $(CARGO) install --quiet --locked cargo-deny; }
	cargo-deny --all-features check licenses bans sources

generate: ## write manifests/crds, the editor schema and docs/package.md from the types, the pictures, and the chart's copy of the manifests
	@echo "building windlass, minutes the first time"
	$(CARGO) build --quiet
	target/debug/windlass crds > manifests/crds/windlass.dev.yaml
	target/debug/windlass crds --json-schema > manifests/schema/package.schema.json
	target/debug/windlass crds --markdown > docs/package.md
	target/debug/windlass rehearse examples/database/v2 --from examples/database/v1 --format svg > docs/pictures/upgrade.svg
	target/debug/windlass rehearse examples/node-agent/v2 --from examples/node-agent/v1 --fail agent@late --format svg \
	  > docs/pictures/rollback.svg || test $$? = 1
	rm -rf charts/windlass/files
	for part in canary controller crds monitoring tenant; do \
	  mkdir -p charts/windlass/files/$$part; \
	  cp manifests/$$part/*.yaml charts/windlass/files/$$part/; \
	  rm -f charts/windlass/files/$$part/kustomization.yaml; \
	done

# Without --target the flag would also reach procedural macros, which cannot be static.
PROFILE ?= release
HOST := $(shell rustc -vV | sed -n 's/^host: //p')
static: ## one binary that needs no library of the system; PROFILE=dist for the smallest
	@echo "building the static, optimised windlass: minutes where sources have changed"
	RUSTFLAGS="-C target-feature=+crt-static" $(CARGO) build --quiet --locked --bin windlass --profile $(PROFILE) --target $(HOST) --target-dir target/static

static-path: ## where `static` puts it
	@echo target/static/$(HOST)/$(PROFILE)/windlass

bench: ## benchmarks; fail when the counted work exceeds its bar
	$(CARGO) bench

-include tests/bench/bench.mk fuzz/fuzz.mk
