#!/bin/sh
# Expert parallelism on this machine's GPUs for long: random cases by the thousand, and calls of one group by the
# million, whose epochs pass 2^31 half-way. What was run is kept, a line a program with its seed, so that a failure can
# be repeated.
# Usage: gpu_ep_long.sh BUILD [CASES [CALLS [SEED]]]   BUILD: a build directory that has gpu/ and weftrun
# It ends when so many cases and calls were made, or one failed. WEFT_EP_LONG replaces the file of what was run,
# WEFT_LONG_CHUNK how many cases a program runs. WEFT_FIRST_CASE repeats a case that failed, with the program's seed.
set -u
cd "$(dirname "$0")/.."
build=${1:-build/release}
cases=${2:-10000}
calls=${3:-1000000}
seed=${4:-$(date +%s)}
. scripts/gpu_lib.sh
kept=${WEFT_EP_LONG:-bench/records/$WEFT_DATE-$WEFT_MACHINE-ep-long.txt}
limit="timeout -k 5 ${WEFT_LONG_SECONDS:-600}"
mkdir -p "$(dirname "$kept")"

# A program with a seed: what for, then the command.
keep()
{
    what=$1
    shift
    before=$failed
    run "$what, WEFT_SEED=$seed" env WEFT_SEED="$seed" "$@"
    grep -m 1 ' cases, .* in ' "$scratch/log"
    verdict=ok
    [ "$failed" = "$before" ] || verdict=FAILED
    echo "$WEFT_COMMIT $verdict WEFT_SEED=$seed $*" >>"$kept"
    seed=$((seed + 1))
}

half=$((calls / 2))
keep "$calls calls, $gpus processes" env WEFT_EP_FIRST_CALL=$((2147483648 - half)) \
    "$build/weftrun" -n "$gpus" "$build/gpu/test_ep_soak" -c "$calls"
done=0
chunk=${WEFT_LONG_CHUNK:-1000} # cases of a program, whose beginning and other tests come once
while [ "$done" -lt "$cases" ] && [ "$failed" = 0 ]; do
    case $((done / chunk % 4)) in
    0 | 2) keep "$chunk cases, $gpus processes" "$build/weftrun" -n "$gpus" "$build/gpu/test_ep" -c $chunk ;;
    1) keep "$chunk cases, $((2 * gpus)) threads" "$build/gpu/test_ep" -t $((2 * gpus)) -c $chunk ;;
    3) keep "$chunk cases of halves, $gpus processes" "$build/weftrun" -n "$gpus" "$build/gpu/test_ep_halves" -c $chunk ;;
    esac
    done=$((done + chunk))
done
echo "== $done cases, $calls calls, $failed failed; seeds: $kept"
[ $failed = 0 ]
