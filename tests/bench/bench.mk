# The test bench: Kubernetes, Flux and Argo CD on loopback. See docs/development.md.

.PHONY: bench-tools e2e bench-up bench-down

# Builds what is missing of the bench's programs; the first time about 20 minutes.
bench-tools:
	@tests/bench/tools.sh build

# E2E=name runs the tests whose names contain it.
e2e: bench-tools
	cargo test --test e2e -- $(E2E)

# BENCH="--nodes 20 --flux --argocd" says what is up; the nodes alone are always there.
BENCH ?= --flux --argocd
bench-up: bench-tools
	@cargo test --quiet --test e2e -- bench up $(BENCH)

bench-down:
	@cargo test --quiet --test e2e -- bench down
