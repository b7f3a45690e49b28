#!/bin/sh
# Put the pieces that bundle.py made together again on the GPU machine, once.
#
#   benchmarks/gpu/unpack.sh PIECES ROOT
#
# PIECES holds SET.tar.zst.NN and the zstandard wheel. ROOT gets site/, trees/, suites/ (each set is
# unpacked once), models/, and after/, suites-after/: the trees rewritten with this checkout's tool.
# The last lines say which releases import.
set -eu
pieces=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
mkdir -p "$2"
root=$(cd "$2" && pwd)

if [ ! -d "$root/tool" ]; then
    "$python" -m zipfile -e "$pieces"/zstandard-*.whl "$root/tool.part"
    mv "$root/tool.part" "$root/tool"
fi

decompress='
import shutil, sys, zstandard
reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(sys.stdin.buffer)
shutil.copyfileobj(reader, sys.stdout.buffer, 1 << 20)
'
for set in site pair rest; do
    if [ -e "$pieces/$set.tar.zst.00" ] && [ ! -e "$root/$set.done" ]; then
        (
            cat "$pieces/$set".tar.zst.* |
                PYTHONPATH="$root/tool" "$python" -c "$decompress" |
                tar -x -f - -C "$root" && touch "$root/$set.done"
        ) &
    fi
done
wait
ls "$root"/*.done

if [ ! -d "$root/models/hub" ]; then
    PYTHONPATH="$root/site" "$python" "$here/models.py" "$root/models" 2>"$root/models.err" ||
        cat "$root/models.err"
fi

for tree in "$root"/trees/*; do
    PYTHONPATH="$root/site" "$python" "$here/rewrite.py" "$root" "$(basename "$tree")" &
done
wait

smoke='
import vllm
from vllm.platforms import current_platform
import vllm.v1.worker.gpu_worker
print(vllm.__version__, "imports;", type(current_platform).__name__)
'
for tree in "$root"/trees/*; do
    PYTHONPATH="$tree:$root/site" timeout 120 "$python" -c "$smoke" >"$root/smoke.$(basename "$tree")" 2>&1 &
done
wait
for smoke in "$root"/smoke.*; do tail -n 1 "$smoke"; done
