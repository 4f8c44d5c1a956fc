# The test bench: Kubernetes, Flux and Argo CD on loopback. See docs/development.md.

.PHONY: bench-tools e2e soak bench-up bench-down

CARGO ?= cargo

bench-tools: ## build what is missing of the bench's programs; about 20 minutes the first time
	@tests/bench/tools.sh build

e2e: bench-tools ## end-to-end tests; E2E=name runs those whose names contain it
	$(CARGO) test --test e2e -- $(E2E)

soak: bench-tools ## end-to-end tests that take long or measure, one at a time; not part of CI
	$(CARGO) test --test e2e -- --ignored --test-threads=1 $(E2E)

BENCH ?= --flux --argocd
bench-up: bench-tools ## a bench by hand; BENCH="--nodes 20 --flux --helm-controller --argocd" says what
	@$(CARGO) test --quiet --test e2e -- bench up $(BENCH)

bench-down: ## end it
	@$(CARGO) test --quiet --test e2e -- bench down
