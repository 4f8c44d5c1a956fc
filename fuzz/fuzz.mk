# Fuzzing on stable Rust: libFuzzer with the compiler's own coverage passes, so
# neither a nightly toolchain nor cargo-fuzz is needed (a C++ compiler is).
# `make fuzz` runs every target for its share of FUZZ_SECONDS from the committed
# seeds; what it finds beyond them stays below fuzz/target.

FUZZ_SECONDS ?= 60
FUZZ_TARGETS := load_check cel
FUZZ_SHARE = $(shell expr $(FUZZ_SECONDS) / $(words $(FUZZ_TARGETS)))
FUZZ_HOST = $(shell rustc -vV | sed -n 's/^host: //p')
FUZZ_FLAGS := -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
	-Ccodegen-units=1

.PHONY: fuzz fuzz-build
fuzz-build:
	RUSTFLAGS="$(FUZZ_FLAGS)" cargo build --release --manifest-path fuzz/Cargo.toml --target-dir fuzz/target --target $(FUZZ_HOST)

fuzz: fuzz-build
	@for target in $(FUZZ_TARGETS); do \
		mkdir -p fuzz/target/corpus/$$target fuzz/target/artifacts/$$target; \
		fuzz/target/$(FUZZ_HOST)/release/$$target -max_total_time=$(FUZZ_SHARE) -timeout=10 -rss_limit_mb=2048 \
			-max_len=16384 -verbosity=0 -print_final_stats=1 -artifact_prefix=fuzz/target/artifacts/$$target/ \
			fuzz/target/corpus/$$target fuzz/seeds/$$target || exit 1; \
	done
