#!/usr/bin/env bash
# Build a wheel of PyCUDA on a machine with neither CUDA nor a GPU; it runs where a driver is.
#
#   scripts/build_pycuda_wheel.sh [FOLDER]     the wheel goes to FOLDER (default: wheels)
#
# Needs g++, pip and the headers of the Python it is for (PYTHON=..., default python3). CUDA's
# headers are taken from $CUDA_ROOT/include where they are, else from NVIDIA's wheels. The linker
# wants a libcuda: an empty one of the driver's name is made, and the real one is found at run time.
set -euo pipefail

PYTHON=${PYTHON:-python3}
VERSION=${PYCUDA_VERSION:-2026.1}
mkdir -p "${1:-wheels}"
OUT=$(cd "${1:-wheels}" && pwd)
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
PIP=("$PYTHON" -m pip --disable-pip-version-check --quiet)

root=${CUDA_ROOT:-}
if [[ -z $root || ! -f $root/include/cuda.h || ! -f $root/include/cudaProfiler.h ]]; then
  "${PIP[@]}" install --no-deps --target "$WORK/headers" \
    'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-profiler-api==13.0.*'
  root=$(dirname "$(dirname "$(find "$WORK/headers" -name cuda.h | head -n 1)")")
fi

mkdir "$WORK/stub"
echo | gcc -x c - -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$WORK/stub/libcuda.so"

"${PIP[@]}" download --no-deps --no-binary pycuda --dest "$WORK" "pycuda==$VERSION"
tar -xzf "$WORK/pycuda-$VERSION.tar.gz" -C "$WORK"
cat > "$WORK/pycuda-$VERSION/siteconf.py" <<CONF
CUDA_ROOT = "$root"
CUDA_ENABLE_CURAND = False
CUDADRV_LIB_DIR = ["$WORK/stub"]
CONF
# --no-as-needed: many linkers drop a library that defines nothing, and the driver with it.
LDFLAGS="-Wl,--no-as-needed ${LDFLAGS:-}" \
  "${PIP[@]}" wheel --no-deps --wheel-dir "$OUT" "$WORK/pycuda-$VERSION"
wheel=$(ls "$OUT"/pycuda-"$VERSION"-*.whl)
"$PYTHON" - "$wheel" <<'CHECK'
import sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
(driver,) = (name for name in wheel.namelist() if "_driver" in name)
if b"libcuda.so.1" not in wheel.read(driver):
    sys.exit("the wheel does not ask for libcuda.so.1: the linker dropped it")
CHECK
echo "$wheel"
