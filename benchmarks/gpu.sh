#!/usr/bin/env bash
# Measures everything that wants a GPU, in less than six minutes, and writes OUT/gpu.json (with the card's name) and tables.
#
#   benchmarks/gpu.sh [--out OUT] [--device cuda] [--budget SECONDS] [--entities N] [--tiny] [ZH_EN_FOLDER]
#
# In order of worth: what a training step waits for, and whether CPU and GPU agree on sample_data/europe (a step, the loss curve, metrics); ZH-EN basic and
# semi, where its folder is given; phases of ZH-EN and of a synthetic pair of DWY100K's size, with the peak of the GPU's memory; search of 100,000 x 100,000
# x 600. A step that finds no time left is skipped, and one that fails does not stop the others; the exit code is 1 then. --tiny uses small sizes, and with
# --device cpu no GPU at all: a rehearsal. What a GPU would run is compared on the CPU then, and what a step waits for is counted by shapes.
set -u

cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit 2
started=$SECONDS
out=gpu-results device=cuda budget=340 entities=100000 rows=100000 width=600 steps=10 queries=0 data=""
small=() # settings of the trainings, for the rehearsal

usage() { sed -n '2,10s/^# \{0,1\}//p' "benchmarks/gpu.sh"; }

need() { [ "$#" -ge 2 ] || { echo "$1 needs a value." >&2; exit 2; }; }

while [ "$#" -gt 0 ]; do
    case "$1" in
        --out) need "$@"; out=$2; shift ;;
        --device) need "$@"; device=$2; shift ;;
        --budget) need "$@"; budget=$2; shift ;;
        --entities) need "$@"; entities=$2; shift ;;
        --tiny)
            entities=1000 rows=500 width=32 steps=1 queries=200
            small=(--set training.epochs=2 --set encoder.dim=8 --set encoder.proxies=4 --set semi.rounds=1 --set semi.round_epochs=1)
            ;;
        -h | --help) usage; exit 0 ;;
        -*) echo "unknown option $1; see benchmarks/gpu.sh --help" >&2; exit 2 ;;
        *) data=$1 ;;
    esac
    shift
done
case "$budget" in '' | *[!0-9]*) echo "--budget expects seconds, for example 340; got '$budget'." >&2; exit 2 ;; esac
if [ -n "$data" ] && [ ! -d "$data" ]; then
    echo "$data: there is no such folder; give the one that holds DBP15K ZH-EN, or none." >&2
    exit 2
fi

# The first Python that has everything, the given one before that of .venv before the system's; else .venv is made.
usable() {
    "$1" - "$device" <<'PYTHON' >/dev/null 2>&1
import sys
import faiss, numba, numpy, pandas, pyarrow, pyoxigraph, safetensors, scipy, torch
sys.exit(sys.argv[1] == "cuda" and not torch.cuda.is_available())
PYTHON
}
python=""
for candidate in "${PYTHON:-}" .venv/bin/python python3 python; do
    if [ -n "$candidate" ] && usable "$candidate"; then python=$candidate; break; fi
done
if [ -z "$python" ]; then
    requirements=requirements.txt
    [ "$device" = cuda ] && requirements=requirements-gpu.txt
    echo "Installing $requirements into .venv-gpu."
    { python3 -m venv .venv-gpu && .venv-gpu/bin/python -m pip install --quiet --disable-pip-version-check -r "$requirements"; } || exit 2
    python=.venv-gpu/bin/python
    usable "$python" || { echo "$requirements is installed, but torch finds no $device here; see its driver (nvidia-smi)." >&2; exit 2; }
fi

mkdir -p -- "$out" || exit 2
: >"$out/steps.tsv"

# step NAME COMMAND...: runs it within what is left of the budget; 124: no time (left).
step() {
    local name=$1 begun=$SECONDS left code
    shift
    left=$((budget - (SECONDS - started)))
    if [ "$left" -lt 5 ]; then
        code=124
    else
        echo "== $name (at most $left s)"
        timeout -k 5 "$left" "$@" >"$out/$name.log" 2>&1
        code=$?
        tail -n 40 -- "$out/$name.log"
    fi
    printf '%s\t%s\t%s\n' "$name" "$code" "$((SECONDS - begun))" >>"$out/steps.tsv"
}

step waits "$python" -m benchmarks.host_waits sample_data/europe --device "$device" --out "$out/waits.json" ${small[@]+"${small[@]}"}
step agreement "$python" -m benchmarks.agreement sample_data/europe --device "$device" --out "$out/agreement.json" ${small[@]+"${small[@]}"}
if [ -n "$data" ]; then
    step zh_en "$python" -m benchmarks.reproduce "$data" --variants basic semi --seeds 0 --models "$out/models" --out "$out/zh_en.md" \
        --set "training.device=$device" ${small[@]+"${small[@]}"}
    step zh_en_phases "$python" -m benchmarks.speed --data "$data" --device "$device" --steps "$steps" --queries "$queries" --out "$out/zh_en_phases.md" \
        ${small[@]+"${small[@]}"}
fi
step synthetic "$python" -m benchmarks.speed --entities "$entities" --device "$device" --steps "$steps" --queries "$queries" --out "$out/synthetic.md" \
    ${small[@]+"${small[@]}"}
step search "$python" -m benchmarks.search_speed --entities "$rows" --dim "$width" --device "$device" --out "$out/search.md"
step search_faiss "$python" -m benchmarks.search_speed --entities "$rows" --dim "$width" --device "$device" --index faiss --out "$out/search_faiss.md"
exec "$python" -m benchmarks.gpu_report "$out"
