#!/bin/sh
# Install the Debian packages that a command needs and this machine lacks; nothing, and no network, when all are there.
# Usage: install-deps.sh build|install|test|bench|lint
set -eu

build="gcc libc6-dev cmake ninja-build pkg-config libsodium-dev libfabric-dev libucx-dev libpmix-dev libhwloc-dev python3"
install="$build"
test="$build libcmocka-dev g++ clang libclang-rt-dev lld spin mandoc iproute2 openmpi-bin mpich python3-dev python3-numpy
slurmctld slurmd slurm-client libpmi0"
case $(uname -m) in
x86_64) test="$test gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user" ;;
esac
case ${1:-build} in
build) packages=$build ;;
install) packages=$install ;;
test) packages=$test ;;
bench) packages="$build openmpi-bin libopenmpi-dev" ;;
lint) packages="clang-format-14 python3" ;;
*)
    echo "usage: $0 build|install|test|bench|lint" >&2
    exit 2
    ;;
esac

if ! command -v dpkg >/dev/null || ! command -v apt-get >/dev/null; then
    echo "not a Debian system: taking for granted that these are installed: $packages"
    exit 0
fi

missing=
for package in $packages; do
    if ! dpkg -s "$package" 2>/dev/null | grep -q '^Status: install ok installed'; then
        missing="$missing $package"
    fi
done
if [ -z "$missing" ]; then
    exit 0
fi

if [ "$(id -u)" = 0 ]; then
    root="env"
elif command -v sudo >/dev/null; then
    root="sudo"
else
    echo "these packages are missing; install them as root:$missing" >&2
    exit 1
fi
echo "installing:$missing"
log=$(mktemp)

# Every 15 s a line with how far it is, as scripts/test.sh has it.
show_progress()
{
    while sleep 15 >/dev/null 2>&1; do
        all=$(sed -n 's/.* \([0-9]*\) newly installed.*/\1/p' "$log" | tail -n 1)
        echo "== packages: $(grep -c '^Setting up ' "$log")${all:+/$all} done"
    done
}
show_progress &
progress=$!
trap 'kill "$progress" 2>/dev/null || :; rm -f "$log"' EXIT
if ! $root apt-get update >"$log" 2>&1 ||
    ! $root DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing >>"$log" 2>&1; then
    cat "$log" >&2
    echo "could not install:$missing" >&2
    exit 1
fi
