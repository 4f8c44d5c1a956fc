# The test bench: Kubernetes, Flux and Argo CD on loopback. See docs/development.md.

.PHONY: bench-tools e2e soak compare scale bench-up bench-down

CARGO ?= cargo

# Only these run the static binary, whose optimised build takes minutes.
STATIC_TESTS := image::one_static_binary_does_everything_in_an_empty_root
NEEDS_STATIC = $(if $(E2E),$(foreach word,$(E2E),$(findstring $(word),$(STATIC_TESTS))),yes)

bench-tools: ## build what is missing of the bench's programs; about 20 minutes the first time
	@tests/bench/tools.sh build

e2e: bench-tools $(if $(NEEDS_STATIC),static) ## end-to-end tests; E2E=name runs those whose names contain it
	$(CARGO) test --test e2e -- $(E2E)

soak: bench-tools ## end-to-end tests that take long or measure, one at a time; not part of CI
	$(CARGO) test --test e2e -- --ignored --test-threads=1 --skip compare:: --skip scale:: $(E2E)

compare: bench-tools ## an upgrade by Flux, by Argo CD and by Windlass on both, side by side; not part of CI
	$(CARGO) test --test e2e -- --ignored --test-threads=1 compare::

scale: bench-tools static ## 1,000 Packages with 5,000 releases, a canary before 1,000 nodes; not part of CI
	$(CARGO) test --test e2e -- --ignored --test-threads=1 scale::

BENCH ?= --flux --argocd
bench-up: bench-tools ## a bench by hand; BENCH="--nodes 20 --flux --helm-controller --argocd" says what
	@echo "building the bench and windlass (minutes where sources have changed), then starting it (about a minute)" >&2
	@$(CARGO) test --quiet --test e2e -- bench up $(BENCH)

bench-down: ## end it
	@$(CARGO) test --quiet --test e2e -- bench down
