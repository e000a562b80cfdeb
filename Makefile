# The commands a person types; CMake does the work. Each installs the Debian packages that it lacks.
# make demo TEXT=file runs the demonstration on a text of your own.
.PHONY: build demo test bench lint clean

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

bench:
	@scripts/bench.sh

lint:
	@scripts/install-deps.sh lint
	@scripts/lint.sh

clean:
	rm -rf build
