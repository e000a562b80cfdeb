#!/bin/sh
# Expert parallelism on this machine's GPUs for long: calls of one group by the million, whose epochs pass 2^31
# half-way; 10,000 rounds of calls and NCCL's all_reduce in opposite orders, and graphs replayed 100,000 times beside
# it; two modules in the same processes; memcheck; and random cases by the thousand. What was run is kept, a line a
# program with its seed, so that a failure can be repeated.
# Usage: gpu_ep_long.sh BUILD [CASES [CALLS [SEED [REPLAYS]]]]   BUILD: a build directory that has gpu/ and weftrun
# 0 leaves out cases, calls, or replays with their rounds, a tenth as many. It ends when so many cases and calls were
# made, or one failed. WEFT_EP_LONG replaces the file of what was run, WEFT_LONG_CHUNK how many cases a program runs,
# WEFT_LONG_PARTS which parts run. WEFT_FIRST_CASE repeats a case that failed, with the program's seed.
set -u
cd "$(dirname "$0")/.."
build=${1:-build/release}
cases=${2:-10000}
calls=${3:-1000000}
seed=${4:-$(date +%s)}
replays=${5:-100000}
parts=${WEFT_LONG_PARTS:-calls beside modules memcheck cases}
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
    echo "$WEFT_COMMIT $verdict WEFT_SEED=$seed $*" | sed 's/LD_LIBRARY_PATH=[^ ]* //' >>"$kept"
    seed=$((seed + 1))
}

# Whether a part is to run.
wants()
{
    case " $parts " in *" $1 "*) true ;; *) false ;; esac
}

test=$build/gpu/test_ep
half=$((calls / 2))
if wants calls && [ "$calls" -gt 0 ]; then
    keep "$calls calls, $gpus processes" env WEFT_EP_FIRST_CALL=$((2147483648 - half)) \
        "$build/weftrun" -n "$gpus" "${test}_soak" -c "$calls"
fi
if wants beside && [ "$replays" -gt 0 ]; then
    keep "$((replays / 10)) rounds and $replays replays beside NCCL" env $(nccl_environment) \
        "$build/weftrun" -n "$gpus" "${test}_beside" $((replays / 10)) "$replays"
fi
if wants modules; then
    keep "two modules, $gpus processes" "$build/weftrun" -n "$gpus" "${test}_modules" -c 4
    keep "two modules, $((2 * gpus)) threads" "${test}_modules" -t $((2 * gpus)) -c 4
    keep "two modules, $gpus processes of two threads" "$build/weftrun" -n "$gpus" "${test}_modules" -t 2
fi
if wants memcheck && command -v compute-sanitizer >/dev/null; then
    memcheck="compute-sanitizer --tool memcheck --report-api-errors no --error-exitcode 9"
    keep "memcheck, 8 cases" "$build/weftrun" -n 2 $memcheck "$test" -c 8
    keep "memcheck, 8 cases of halves" "$build/weftrun" -n 2 $memcheck "${test}_halves" -c 8
    keep "memcheck, 400 calls" "$build/weftrun" -n 2 $memcheck "${test}_soak" -c 400
fi
done=0
wants cases || cases=0
chunk=${WEFT_LONG_CHUNK:-1000} # cases of a program, whose beginning and other tests come once
while [ "$done" -lt "$cases" ] && [ "$failed" = 0 ]; do
    case $((done / chunk % 4)) in
    0 | 2) keep "$chunk cases, $gpus processes" "$build/weftrun" -n "$gpus" "$test" -c $chunk ;;
    1) keep "$chunk cases, $((2 * gpus)) threads" "$test" -t $((2 * gpus)) -c $chunk ;;
    3) keep "$chunk cases of halves, $gpus processes" "$build/weftrun" -n "$gpus" "${test}_halves" -c $chunk ;;
    esac
    done=$((done + chunk))
done
echo "== $done cases, parts: $parts, $failed failed; seeds: $kept"
[ $failed = 0 ]
