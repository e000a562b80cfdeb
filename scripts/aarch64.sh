#!/bin/sh
# What the aarch64 preset needs beside Debian's cross compiler and emulator: cmocka and libsodium for aarch64, taken
# from Debian's packages into build/aarch64-packages without touching the system's own. Exit 77, with the reason on
# standard output: aarch64 cannot be tested here.
set -eu
cd "$(dirname "$0")/.."
folder=$PWD/build/aarch64-packages

for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
    if ! command -v "$tool" >/dev/null; then
        echo "no $tool here (Debian: gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user)"
        exit 77
    fi
done
if [ -e "$folder/usr/include/cmocka.h" ]; then
    exit 0
fi
if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
    echo "no apt-get here to fetch cmocka for aarch64"
    exit 77
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/lists/partial" "$scratch/cache/archives/partial" "$scratch/root"
chmod -R a+rwX "$scratch"
apt()
{
    (cd "$scratch" && apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::status=/dev/null \
        -o Dir::State::lists="$scratch/lists" -o Dir::Cache="$scratch/cache" "$@") >>"$scratch/log" 2>&1
}
if ! apt update || ! apt download libcmocka-dev libcmocka0 libsodium-dev libsodium23; then
    echo "the packages of cmocka for aarch64 cannot be had: $(tail -n 1 "$scratch/log")"
    exit 77
fi
for package in "$scratch"/*.deb; do
    dpkg -x "$package" "$scratch/root"
done
mkdir -p build
rm -rf "$folder"
mv "$scratch/root" "$folder"
