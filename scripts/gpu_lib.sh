# What the scripts for GPU machines share; sourced from the root of the tree, with $build set. Ends the script with 77
# where there is no GPU. Sets $gpus, WEFT_MACHINE, WEFT_COMMIT, WEFT_DATE (from outside, if set there), $scratch,
# $failed.
limit="timeout -k 5 120"
failed=0

if ! command -v nvidia-smi >/dev/null || ! nvidia-smi -L | grep -q GPU; then
    echo "no GPU here"
    exit 77
fi
gpus=$(nvidia-smi -L | grep -c GPU)
if [ -n "${CUDA_VISIBLE_DEVICES:-}" ]; then # a part of them
    gpus=$(echo "$CUDA_VISIBLE_DEVICES" | tr ',' '\n' | grep -c .)
fi
# "NVIDIA H100 80GB HBM3"
model=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1 | tr 'A-Z' 'a-z' | awk '{print $2}')
WEFT_MACHINE=${WEFT_MACHINE:-${model}x$gpus}
WEFT_COMMIT=${WEFT_COMMIT:-$(git rev-parse --short HEAD 2>/dev/null || echo unknown)}
WEFT_DATE=${WEFT_DATE:-$(date +%F)}
WEFT_LOG=${WEFT_LOG:-none} # the tests provoke errors
export WEFT_MACHINE WEFT_COMMIT WEFT_DATE WEFT_LOG
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
: >"$scratch/record"

fail()
{
    echo "FAIL  $1 ($2)"
    head -15 "$scratch/log"
    echo "..."
    tail -15 "$scratch/log"
    failed=$((failed + 1))
}

# Run a test: its name, then the command.
run()
{
    name=$1
    shift
    if $limit "$@" >"$scratch/log" 2>&1; then
        echo "ok    $name: $(tail -1 "$scratch/log")"
    else
        fail "$name" $?
    fi
}

# Assignments for `env`, for a program that loads NCCL: from NCCL_HOME, else its Python package; multicast off.
nccl_environment()
{
    nccl=${NCCL_HOME:-$(python3 -c 'import nvidia.nccl; print(list(nvidia.nccl.__path__)[0])' 2>/dev/null)}
    echo "NCCL_NVLS_ENABLE=0 LD_LIBRARY_PATH=$nccl/lib:${LD_LIBRARY_PATH:-}"
}

# Run a benchmark and add its JSON lines, those that it prints and those in $json, to the record: its name, then the
# command.
json=$scratch/json
bench()
{
    name=$1
    shift
    : >"$json"
    if $limit "$@" >"$scratch/figures" 2>"$scratch/log"; then
        sed -n 's/^\(\[0\] \)*{/{/p' "$scratch/figures" | cat - "$json" >"$scratch/lines"
        cat "$scratch/lines" >>"$scratch/record"
        echo "ok    $name: $(wc -l <"$scratch/lines") figures"
    else
        fail "$name" $?
    fi
}

# Keep the record: where, and the program that shows it as a table.
keep_record()
{
    mkdir -p "$(dirname "$1")"
    cp "$scratch/record" "$1"
    python3 "$2" "$1"
    echo "== $failed failed; record: $1"
}
