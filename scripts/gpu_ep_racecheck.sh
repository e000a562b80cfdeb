#!/bin/sh
# Hazards in shared memory of the kernels of expert parallelism, as compute-sanitizer's racecheck finds them: few calls
# of every layout, whole and in halves, by one rank and by two. Prints each kind of report, for how many pairs of
# instructions it came and, for those that are known, why it is none: lines of scripts/gpu_ep_racecheck.txt, which have
# a pattern of grep -E, a tab, how many pairs of a kernel were looked at, a tab, and the reason. Fails if there is any
# other, or more pairs, or a program fails.
# Usage: gpu_ep_racecheck.sh BUILD [CALLS [CASES]]   BUILD: a build directory that has gpu/ and weftrun
# WEFT_RACECHECK_LOGS: a folder for all that racecheck prints, with its addresses.
set -u
cd "$(dirname "$0")/.."
build=${1:-build/release}
calls=${2:-64}
cases=${3:-4}
. scripts/gpu_lib.sh
limit="timeout -k 5 ${WEFT_LONG_SECONDS:-300}"
known=scripts/gpu_ep_racecheck.txt
if ! command -v compute-sanitizer >/dev/null; then
    echo "skip  racecheck: no compute-sanitizer here"
    exit 77
fi
check="compute-sanitizer --tool racecheck --racecheck-report analysis --print-limit 10000"

# The reports of the last program, each the line that begins it and those of the other accesses on one line: first those
# of each pair of instructions once, then without their addresses, which differ from build to build, counted.
reports()
{
    awk '{ rank = match($0, /^\[[0-9]*\] /) ? substr($0, 1, RLENGTH) : ""; $0 = substr($0, length(rank) + 1) }
        /^=========     and / { sub(/^=========    /, ""); report[rank] = report[rank] $0; next }
        report[rank] { print report[rank]; report[rank] = "" }
        /^========= (Error|Warning): / { sub(/^========= /, ""); report[rank] = $0 }
        END { for (rank in report) if (report[rank]) print report[rank] }' "$scratch/log" |
        sed 's/block ([0-9,]*)/block/g; s/thread ([0-9,]*)/thread/g; s/ \[[0-9]* hazards\]//' | sort -u |
        sed 's/0x[0-9a-f]*/0x/g' | sort | uniq -c | sort -rn
}

# A program: its name, then the command.
racecheck()
{
    run "$@"
    [ -z "${WEFT_RACECHECK_LOGS:-}" ] || cp "$scratch/log" "$WEFT_RACECHECK_LOGS/$(echo "$1" | tr -c 'a-z0-9\n' '_').log"
    grep -h 'RACECHECK SUMMARY' "$scratch/log" || fail "$1: racecheck has told nothing" 0
    reports >"$scratch/reports"
    while read -r pairs report; do
        reason=
        while IFS="$(printf '\t')" read -r pattern most why; do
            case $pattern in '#'* | '') continue ;; esac
            if echo "$report" | grep -qE "$pattern" && [ "$pairs" -le "$most" ]; then
                reason=$why
                break
            fi
        done <"$known"
        if [ -n "$reason" ]; then
            echo "known $pairs $report: $reason"
        else
            echo "RACE  $pairs $report"
            failed=$((failed + 1))
        fi
    done <"$scratch/reports"
}

test=$build/gpu/test_ep
racecheck "one rank" "$build/weftrun" -n 1 $check "${test}_soak" -c "$calls"
racecheck "one rank, halves" "$build/weftrun" -n 1 $check "${test}_halves" -c "$cases"
if [ "$gpus" -ge 2 ]; then
    racecheck "two ranks" "$build/weftrun" -n 2 $check "${test}_soak" -c "$calls"
    racecheck "two ranks, halves" "$build/weftrun" -n 2 $check "${test}_halves" -c "$cases"
fi
echo "== $failed failed"
[ $failed = 0 ]
