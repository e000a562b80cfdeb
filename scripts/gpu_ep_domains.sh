#!/bin/bash
# Expert parallelism of several link domains (docs/ep-gpu-domains.md), on GPUs or, with --fake, without.
# Usage: scripts/gpu_ep_domains.sh BUILD [--fake]
#
# On GPUs: two, each a domain of its own (WEFT_CUDA_DOMAIN=1): PEs as threads and as processes, over the host transport,
# and as two nodes over libfabric's provider tcp on the loopback, if there is one. BUILD/gpu/test_ep_domains is what
# `cmake --build BUILD --target gpu_test_ep_domains` makes; each run compares random cases with the serial reference,
# and the bytes that cross with one row a (token, domain) each way, of slots that go directly one a (token, rank).
# --fake: the larger shapes, too long for ctest.
set -u
build=$(realpath "${1:?usage: gpu_ep_domains.sh BUILD [--fake]}")
root=$(cd "$(dirname "$0")/.." && pwd)
failed=0

# run WHAT COMMAND...: one line of outcome; the rest where it failed.
run() {
    local what=$1 log
    shift
    log=$(mktemp)
    if timeout 580 "$@" >"$log" 2>&1; then
        echo "ok: $what: $(grep -m 1 'cases,' "$log")"
    else
        echo "FAILED: $what: $*"
        tail -n 20 "$log"
        failed=1
    fi
    rm -f "$log"
}

export WEFT_LOG=none WEFT_EP_DIRECT=${WEFT_EP_DIRECT:-256} # more of the random cases go directly
loopback=(env FI_PROVIDER=tcp FI_TCP_IFACE=lo WEFT_UID_INTERFACE=lo)
nodes="$root/tests/support/nodes.sh"
if [ "${2:-}" = --fake ]; then
    test="$build/tests/ep_domains_on_host"
    export LD_LIBRARY_PATH="$build/fake" WEFT_DEADLINE=200
    # DOMAINS x RANKS, as processes of one host; multiprocessors, for the ranks' kernels and proxies on two GPUs.
    for shape in "2 2 8" "4 2 16" "2 8 20" "8 4 34"; do
        read -r domains ranks sms <<<"$shape"
        run "$domains x $ranks processes" env WEFT_CUDA_DOMAIN="$ranks" WEFT_FAKE_SMS="$sms" \
            "$build/weftrun" -n $((domains * ranks)) "$test" -c 1
    done
    for shape in "2 1" "2 2" "4 2"; do
        read -r domains ranks <<<"$shape"
        run "$domains nodes of $ranks over tcp" "${loopback[@]}" WEFT_FAKE_SMS=16 \
            "$build/weftrun" -n $((domains * ranks)) "$nodes" "$ranks" "$test" -c 2
    done
else
    test="$build/gpu/test_ep_domains"
    run "2 threads" env WEFT_CUDA_DOMAIN=1 "$test" -t 2
    run "2 threads, slots by forwarders" env WEFT_CUDA_DOMAIN=1 WEFT_EP_DIRECT=0 "$test" -t 2
    run "2 threads, by the proxy" env WEFT_CUDA_DOMAIN=1 WEFT_EP_MAPPED=0 "$test" -t 2
    run "4 threads, two a domain" env WEFT_CUDA_DOMAIN=2 "$test" -t 4 -c 4
    run "2 processes" env WEFT_CUDA_DOMAIN=1 "$build/weftrun" -n 2 "$test"
    run "2 processes as 2 nodes over tcp" "${loopback[@]}" "$build/weftrun" -n 2 "$nodes" 1 "$test" -c 4
fi
exit $failed
