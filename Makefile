# SPDX-License-Identifier: Apache-2.0
# What people type: `make train` and `make test`. Each installs what it lacks first and builds what it runs.
PRESET ?= release
BUILD  := build/$(PRESET)
JOBS   ?= $(shell nproc)
CONFIG ?= configs/half_cheetah_ppo.yaml
NAME   ?= half_cheetah
# no: take the packages as they are.
INSTALL ?= yes
# More flags for ctest.
CTEST_FLAGS ?=
# More flags for `skein train`, e.g. make train NAME=second FLAGS="--steps 200000 --seed 2"
FLAGS  ?=
# More flags for scripts/test_faults.py.
FAULT_FLAGS ?=

# What `make train` runs; `make programs` makes the programs of `skein fit`, `skein export` and `skein serve`, too, and
# `make build` also skein-bench and the tests.
RUN_PROGRAMS = skein skein-coordinator skein-learner skein-actor skein-eval
PROGRAMS = $(RUN_PROGRAMS) skein-fit skein-policy
FORMATTED = find actor base bench cli coordinator env eval examples export include launch learner member policy serve sweep tests trajectory -name '*.h' -o -name '*.cc'

.PHONY: train install tarball wheel packaged test test-core test-faults test-cluster programs build dev format check-format tsa check-mujoco fuzz test-asan test-tsan clean

train:
	@$(MAKE) --no-print-directory programs PROGRAMS="$(RUN_PROGRAMS)"
	$(BUILD)/skein train --config $(CONFIG) --name $(NAME) $(FLAGS)

test: build
	ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS) -LE '^(cluster|faults)$$' $(CTEST_FLAGS)

# The learner's core as machines without gRPC and MuJoCo build it (docs/cuda.md).
test-core: install-build install-test
	@test -f build/core/build.ninja || cmake -S . -B build/core -G Ninja -DCMAKE_BUILD_TYPE=Release -DSKEIN_CORE_ONLY=ON
	cmake --build build/core --parallel $(JOBS)
	ctest --test-dir build/core --output-on-failure -j $(JOBS) $(CTEST_FLAGS)

# What needs more than Skein itself does: Slurm, a browser. Installs that first.
test-cluster: build install-cluster
	ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS) -L cluster $(CTEST_FLAGS)

# What Skein survives, a verdict for each row of docs/faults.md. FAULT_FLAGS="--quick --rows 1,15 --json FILE --seed 7"
test-faults: build
	scripts/test_faults.py $(BUILD) $(FAULT_FLAGS)

# Programs, man pages, completion, headers and a CMake package, e.g. make install PREFIX=$HOME/skein, or as root.
PREFIX ?= /usr/local
install: packaged
	DESTDIR=$(DESTDIR) cmake --install $(BUILD) --prefix $(PREFIX)

# $(BUILD)/wheel/skein_rl-*.whl for pip, and a tarball of the same programs, with all libraries but the C library.
wheel tarball: packaged
	scripts/fetch_python.sh wheel
	scripts/make_wheel.py $(if $(filter tarball,$@),--tarball) $(BUILD)

packaged: programs
	cmake --build $(BUILD) --parallel $(JOBS) --target skein-bench man completion

# A build folder knows no tests until something is tested: googletest need not be there.
programs: install-build
	@test -f $(BUILD)/build.ninja || cmake --preset $(PRESET) -DSKEIN_TESTS=OFF
	cmake --build $(BUILD) --parallel $(JOBS) --target $(PROGRAMS)

build: install-build install-test
	@grep -qs '^SKEIN_TESTS:BOOL=ON' $(BUILD)/CMakeCache.txt || cmake --preset $(PRESET) -DSKEIN_TESTS=ON
	cmake --build $(BUILD) --parallel $(JOBS)

dev: install-build install-test install-dev

# Packages by purpose: scripts/install_dependencies.sh.
install-%:
	@$(if $(filter-out no,$(INSTALL)),scripts/install_dependencies.sh $*)

format: install-dev
	$(FORMATTED) | xargs clang-format-14 -i

check-format: install-dev
	$(FORMATTED) | xargs clang-format-14 --dry-run -Werror

# Clang's thread-safety analysis of everything but the tests; GCC does not know the annotations. Objects only: the analysis
# needs no linked program, and no object of a generated source.
tsa: install-build install-dev
	@test -f build/clang-tsa/build.ninja || cmake --preset clang-tsa
	ninja -C build/clang-tsa -t targets all | sed -n 's/^\([^:]*\.o\): CXX_COMPILER__.*/\1/p' | grep -v '^proto/' | \
	  xargs ninja -C build/clang-tsa -j $(JOBS)

# That the environments compile against newer releases of MuJoCo (docs/decisions/mujoco-build.md).
check-mujoco: install-build
	@set -e; for version in 3.17.0 4.0.0; do \
	  scripts/fetch_mujoco.sh $$version; \
	  test -f build/mujoco-$$version/build.ninja || cmake -S . -B build/mujoco-$$version -G Ninja \
	    -DCMAKE_BUILD_TYPE=Release -DSKEIN_MUJOCO=$(CURDIR)/.deps/mujoco-$$version; \
	  ninja -C build/mujoco-$$version -j $(JOBS) skein_env_mujoco; \
	done

# Each decoder of what comes from outside, fed RUNS hostile inputs (docs/benchmarks/fuzzing.md).
RUNS ?= 1000000
FUZZ_TARGETS ?=
fuzz: dev
	@test -f build/fuzz/build.ninja || cmake --preset fuzz
	cmake --build build/fuzz --parallel $(JOBS) --target fuzz-targets
	scripts/fuzz.sh build/fuzz $(RUNS) $(FUZZ_TARGETS)

# What `make test` runs, under AddressSanitizer and UndefinedBehaviorSanitizer, and under ThreadSanitizer.
test-asan:
	$(MAKE) build PRESET=asan+ubsan
	scripts/test_sanitized.sh build/asan+ubsan -LE '^(cluster|faults)$$' -j $(JOBS) $(CTEST_FLAGS)
test-tsan:
	$(MAKE) build PRESET=tsan
	scripts/test_sanitized.sh build/tsan -LE '^(cluster|faults)$$' -j $(JOBS) $(CTEST_FLAGS)

clean:
	rm -rf build
