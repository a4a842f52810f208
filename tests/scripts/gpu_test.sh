#!/usr/bin/env bash
# scripts/gpu on the emulated device, with the cuDNN of the tests' own in the place of cuDNN: every step, then resumed.
# usage: gpu_test.sh SOURCE BUILD SCRATCH
set -euo pipefail

source=$1
build=$2
scratch=$3

fail() {
  echo "FAILED: $1" >&2
  exit 1
}
# holds FILE TEXT
holds() {
  grep -qF -- "$2" "$1" || { cat "$1" >&2; fail "$1 does not hold '$2'"; }
}

rm -rf "$scratch"
mkdir -p "$scratch/bundle/bin" "$scratch/bundle/tests" "$scratch/bundle/requests"
# As --bundle lays it out; the build has made the programs.
cp "$build/bundle/kiln" "$build/bundle/bench_vs_cudnn" "$scratch/bundle/bin/"
for test in device_run_test runtime_test templates_softmax_test templates_pool_test templates_conv_test; do
  cp "$build/bundle/$test" "$scratch/bundle/tests/"
done
cp "$source/scripts/gpu" "$scratch/bundle/gpu"
echo test >"$scratch/bundle/VERSION"
cat >"$scratch/bundle/requests/h200_sample.txt" <<'TEXT'
conv_forward x=f32:1x8x14x14 w=f32:16x8x3x3 pad=1
conv_forward x=f32:1x16x7x7 w=f32:8x16x1x1
TEXT

bytes=$(du --bytes --summarize "$scratch/bundle" | cut -f 1)
[ "$bytes" -le 40000000 ] || fail "the bundle holds $bytes bytes"
for program in "$scratch"/bundle/bin/* "$scratch"/bundle/tests/*; do
  foreign=$(ldd "$program" | grep -vE 'linux-vdso|libc\.so\.6|libm\.so\.6|libgcc_s\.so\.1|ld-linux' || true)
  [ -z "$foreign" ] || fail "$program needs $foreign"
done
newest=$(objdump -T "$scratch"/bundle/bin/* "$scratch"/bundle/tests/* | grep -o 'GLIBC_[0-9.]*' | sort -V | tail -n 1)
[ "$(printf '%s\n' "$newest" GLIBC_2.36 | sort -V | head -n 1)" = "$newest" ] || fail "it needs $newest"

# The emulator stands where a driver would; NVRTC where the machine has it, or in the build.
unset KILN_DRIVER
mkdir "$scratch/bundle/lib"
cp "$build/lib/libkiln_emulator.so" "$scratch/bundle/lib/"
export FAKE_CUDNN_DRIVER=$scratch/bundle/lib/libkiln_emulator.so
nvrtc=()
for library in "$build"/lib/libnvrtc.so.[0-9]*; do [ ! -e "$library" ] || nvrtc=(--nvrtc "$library"); done
gpu() {
  "$scratch/bundle/gpu" --run "$scratch/bundle" --out "$scratch/out" --device emulator:0 --minutes 8 \
    --tests device_run_test "${nvrtc[@]}" "$@"
}

gpu --cudnn "$build/tests/libfake_cudnn.so" >"$scratch/first.log" 2>&1 || { cat "$scratch/first.log" >&2; fail "the run failed"; }
summary=$scratch/out/summary.txt
holds "$summary" "tests: 1 programs passed, 0 failed, 0 out of time"
holds "$summary" "calibration: calibration.txt"
holds "$scratch/out/calibration.txt" "copy_efficiency="
holds "$summary" "tune: tune.txt, report.html"
holds "$scratch/out/report.html" "</html>"
holds "$summary" "geometric mean of 2 layers"
[ "$(wc -l <"$scratch/out/vs_cudnn.jsonl")" -eq 2 ] || fail "vs_cudnn.jsonl does not hold 2 rows"
holds "$scratch/out/vs_cudnn.jsonl" '"status":"compared"'

if gpu >"$scratch/again.log" 2>&1; then fail "results were overwritten"; fi
holds "$scratch/again.log" "--resume goes on"
gpu --resume --cudnn "$build/tests/libfake_cudnn.so" >"$scratch/resumed.log" 2>&1 || { cat "$scratch/resumed.log" >&2; fail "resuming failed"; }
[ "$(wc -l <"$scratch/out/vs_cudnn.jsonl")" -eq 2 ] || fail "resuming ran rows again"
holds "$scratch/out/tune.txt" "of them known from before"
if grep -qF ", 0 of them known" "$scratch/out/tune.txt"; then fail "resuming tuned again"; fi

rm -rf "$scratch/out"
gpu --tests '' --cudnn none >"$scratch/without.log" 2>&1 || { cat "$scratch/without.log" >&2; fail "the run without cuDNN failed"; }
holds "$summary" "comparison with cuDNN: left out"
"$scratch/bundle/gpu" --run "$scratch/nothing" --out "$scratch/none" >"$scratch/none.log" 2>&1 && fail "it ran without a bundle"
holds "$scratch/none.log" "holds no bundle"
rm -rf "$scratch"
echo "scripts/gpu: every step ran"
