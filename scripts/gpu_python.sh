#!/bin/sh
# The Python packages on this machine's GPUs: graphs, streams, pools, operators, and deep_ep's calls, a GPU a rank.
# Usage: gpu_python.sh SITE [PYTEST'S ARGUMENTS]   SITE: a folder with the package and pytest, of
#                                                  pip install --target SITE . pytest
# The machine's Python has torch with CUDA and numpy. Every file of tests has a time limit of 300 s, or
# WEFT_TEST_SECONDS.
set -u
cd "$(dirname "$0")/.."
site=${1:?a folder with the package and pytest}
shift
. scripts/gpu_lib.sh
limit="timeout -k 5 ${WEFT_TEST_SECONDS:-300}"
export WEFT_TEST_DEVICE=cuda PYTHONPATH="$site" PYTHONDONTWRITEBYTECODE=1
export NCCL_NVLS_ENABLE="${NCCL_NVLS_ENABLE:-0}" # multicast, which weft has no part in
python3 -c 'import torch, weft, pytest; assert torch.cuda.is_available(); print(torch.__version__, weft.__file__)' || exit 77

echo "== tests of the Python packages on $gpus GPUs"
for name in gpu_graphs gpu_streams pool operators torch elastic deep_ep streams; do
    run "$name" python3 -m pytest -q -rs -p no:cacheprovider "$@" "python/tests/test_$name.py"
done
run "deep_ep, a group of gloo" env WEFT_TEST_BACKEND=gloo python3 -m pytest -q -rs -p no:cacheprovider "$@" python/tests/test_deep_ep.py
[ $failed = 0 ]
