# The commands a person types; CMake does the work. Each installs the Debian packages that it lacks.
# make demo TEXT=file runs the demonstration on a text of your own.
.PHONY: build install demo test test-network check campaign mutations bench gpu coverage lint exports clean

build:
	@scripts/install-deps.sh build
	@scripts/build.sh release

# make install PREFIX=/opt/weft; DESTDIR is put before it.
PREFIX ?= /usr/local
install:
	@scripts/install-deps.sh install
	@scripts/build.sh install product
	@DESTDIR="$(DESTDIR)" cmake --install build/install --prefix "$(PREFIX)"

demo:
	@scripts/install-deps.sh build
	@scripts/build.sh host weftrun moe_text two_modules resize
	@scripts/demo.sh build/host $(TEXT)

test:
	@scripts/install-deps.sh test
	@scripts/test.sh

# Worlds of several nodes, in more shapes than make test has.
test-network:
	@scripts/install-deps.sh test
	@scripts/test_network.sh

# What is quick of the tests, without GPUs and sanitizers: for between two changes.
check:
	@scripts/install-deps.sh test
	@scripts/test.sh host

# The simulator for long: make campaign FOR=3600 (seconds; the tests run it for 20).
campaign:
	@scripts/install-deps.sh build
	@scripts/build.sh release campaign
	@build/release/tests/campaign --seeds 1000000000000 --seconds $(or $(FOR),600)

# Every mistake of tests/sim/mutations: who finds it, and how soon. With FOR=120 the whole campaign has so many seconds
# for each.
mutations:
	@scripts/install-deps.sh test
	@scripts/build.sh release $$(python3 tests/sim/mutations/run.py . build/release --targets)
	@python3 tests/sim/mutations/run.py . build/release --jobs $$(nproc) $(if $(FOR),--whole $(FOR))

bench:
	@scripts/bench.sh

# What needs GPUs: their tests, and figures.
gpu:
	@scripts/gpu.sh

# Which lines of src/ the tests run.
coverage:
	@scripts/install-deps.sh test
	@scripts/test.sh asan

lint:
	@scripts/install-deps.sh lint
	@scripts/lint.sh

# Bring the list of exported symbols, src/weft.map, up to date with the headers.
exports:
	@python3 scripts/exports.py write .

clean:
	rm -rf build
