# The commands a person types; CMake does the work. Each installs the Debian packages that it lacks.
# make demo TEXT=file runs the demonstration on a text of your own.
.PHONY: build demo test campaign bench lint clean

build:
	@scripts/install-deps.sh build
	@scripts/build.sh release

demo:
	@scripts/install-deps.sh build
	@scripts/build.sh release programs
	@scripts/demo.sh build/release $(TEXT)

test:
	@scripts/install-deps.sh test
	@scripts/test.sh

# The simulator for long: make campaign FOR=3600 (seconds; the tests run it for 40).
campaign:
	@scripts/install-deps.sh build
	@scripts/build.sh release campaign
	@build/release/tests/campaign --seeds 1000000000000 --seconds $(or $(FOR),600)

bench:
	@scripts/bench.sh

gpu:
	@scripts/gpu.sh

lint:
	@scripts/install-deps.sh lint
	@scripts/lint.sh

clean:
	rm -rf build
