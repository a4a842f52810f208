#!/usr/bin/env bash
# scripts/gpu in one command on the emulated device, with the cuDNN of the tests' own in the place of cuDNN: the bundle is
# made of what is built, held against its limits, unpacked in an empty folder and run, every step; then killed at work,
# twice, and resumed.
# usage: gpu_test.sh SOURCE BUILD SCRATCH
set -euo pipefail

source=$1
build=$2
scratch=$3
target=$scratch/carried
carried=$target.try/carried
fake=$build/tests/libfake_cudnn.so

fail() {
  echo "FAILED: $1" >&2
  exit 1
}
# holds FILE TEXT
holds() {
  grep -qF -- "$2" "$1" || { cat "$1" >&2; fail "$1 does not hold '$2'"; }
}
# succeeds LOG COMMAND...
succeeds() {
  local log=$1
  shift
  "$@" >"$log" 2>&1 || { cat "$log" >&2; fail "$*"; }
}

rm -rf "$scratch"
mkdir -p "$scratch"
unset KILN_DRIVER KILN_NVRTC
unset GTEST_OUTPUT  # the carried programs' reports are not those of the tests here, whose names they have
export KILN_EMULATOR_CHECK=full
export FAKE_CUDNN_DRIVER=$carried/lib/libkiln_emulator.so
cat >"$scratch/layers.txt" <<'TEXT'
conv_forward x=f32:1x8x14x14 w=f32:16x8x3x3 pad=1
conv_forward x=f32:1x16x7x7 w=f32:8x16x1x1 epilogue=bias+relu
conv_backward_data dy=f32:1x8x7x7 w=f32:8x4x3x3 pad=1
conv_backward_filter x=f32:1x4x7x7 dy=f32:1x8x7x7 dw=f32:8x4x3x3 pad=1
pool_forward x=f32:1x8x14x14 mode=max window=2 stride=2
softmax_forward x=f32:3x100
TEXT
layers=6

# --- One command ------------------------------------------------------------------------------------------------------

out=$target.try/results
summary=$out/summary.txt
succeeds "$scratch/try.log" "$source/scripts/gpu" --bundle "$target" --built "$build" --try --requests "$scratch/layers.txt" \
  --tests device_run_test --cudnn "$fake" --minutes 8
holds "$summary" "tests: 1 programs passed, 0 failed, 0 out of time"
holds "$summary" "calibration: calibration.txt"
holds "$out/calibration.txt" "copy_efficiency="
holds "$summary" "tune: tune.txt, report.html"
holds "$out/report.html" "</html>"
holds "$out/report.html" "calibrated on this device: copy_efficiency="
holds "$summary" "geometric mean of $layers layers"
[ "$(grep -c '"status":"compared"' "$out/vs_cudnn.jsonl")" -eq "$layers" ] || fail "not every layer was compared"
[ -z "$(find "$out" -name '*.partial' -o -name '*.tmp')" ] || fail "it left temporary files"

# --- What is carried --------------------------------------------------------------------------------------------------

bytes=$(du --bytes --summarize "$carried" | cut -f 1)
[ "$bytes" -le 40000000 ] || fail "the bundle holds $bytes bytes"
echo "the bundle holds $bytes bytes"
for program in bin/kiln bin/bench_vs_cudnn tests/device_run_test tests/runtime_test tests/templates_test lib/libkiln_emulator.so; do
  foreign=$(ldd "$carried/$program" | grep -vE 'linux-vdso|libc\.so\.6|libm\.so\.6|libgcc_s\.so\.1|ld-linux|statically' || true)
  [ -z "$foreign" ] || fail "$program needs $foreign"
done
newest=$(objdump -T "$carried"/bin/* "$carried"/lib/* "$carried"/tests/* | grep -o 'GLIBC_[0-9.]*' | sort -V | tail -n 1)
[ "$(printf '%s\n' "$newest" GLIBC_2.36 | sort -V | head -n 1)" = "$newest" ] || fail "it needs $newest"
"$carried/tests/templates_test" --gtest_list_tests >"$scratch/tests.txt"
for test in SoftmaxDefaults SoftmaxBackwardDefaults PoolDefaults PoolBackwardDefaults PointwiseDefaults TensorFunctions \
  ReduceDefaults DropoutTest Gemm CrossEntropy NormDefaults NormBackwardDefaults LocalNormDefaults ConvDefaults \
  ConvBackwardData ConvBackwardFilter LocalConv Regions InPlace FewTaps WinogradDefaults; do
  holds "$scratch/tests.txt" "/$test."
done
for test in UserEpilogue UserPrologue WinogradConfigs; do holds "$scratch/tests.txt" "$test."; done

# --- Killed at work, and resumed --------------------------------------------------------------------------------------

nvrtc=()
for library in "$build"/lib/libnvrtc.so.[0-9]*; do [ ! -e "$library" ] || nvrtc=(--nvrtc "$library"); done
options=(--device emulator:0 --minutes 8 --requests "$scratch/layers.txt" --tests device_run_test --cudnn "$fake" "${nvrtc[@]}")
run() {
  "$carried/gpu" --run "$carried" --out "$out" "${options[@]}" "$@"
}
records() {
  "$carried/bin/kiln" cache export --db "$out/tuning.db" "$scratch/all.pack" >/dev/null 2>&1 || { echo 0; return; }
  grep -c '^record' "$scratch/all.pack" || true
}
rows() {
  [ ! -e "$out/vs_cudnn.jsonl" ] || wc -l <"$out/vs_cudnn.jsonl"
}
# at_work: whether a program of the bundle runs.
at_work() {
  local link
  for link in /proc/[0-9]*/exe; do
    [[ "$(readlink "$link" 2>/dev/null || true)" != "$carried"/* ]] || return 0
  done
  return 1
}
# kill_when COUNTER LEAST OPTION...: starts a run and ends it once COUNTER gives at least LEAST.
kill_when() {
  local counter=$1 least=$2 pid i found
  shift 2
  "$carried/gpu" --run "$carried" --out "$out" "${options[@]}" "$@" >"$scratch/killed.log" 2>&1 &
  pid=$!
  for ((i = 0; i < 3000; ++i)); do
    found=$("$counter")
    [ "${found:-0}" -lt "$least" ] || break
    kill -0 "$pid" 2>/dev/null || { cat "$scratch/killed.log" >&2; fail "it ended before it could be killed"; }
    sleep 0.1
  done
  kill -TERM "$pid"
  wait "$pid" && fail "a killed run succeeded"
  # A worker sees that its session is gone when it comes back from what it compiles.
  for ((i = 0; i < 100; ++i)); do
    at_work || return 0
    sleep 0.1
  done
  fail "something goes on after the run was ended"
}

out=$scratch/killed
summary=$out/summary.txt
kill_when records 5
known=$(records)
passed=$(stat --format %y "$out"/tests/*.passed)
calibrated=$(stat --format %y "$out/calibration.txt")
if run >"$scratch/again.log" 2>&1; then fail "results were overwritten"; fi
holds "$scratch/again.log" "--resume goes on"
kill_when rows 1 --resume
tried=$(grep -o '[0-9]* candidates tried, [0-9]* of them known' "$out/tune.txt")
[ "$(cut -d ' ' -f 4 <<<"$tried")" -ge "$known" ] || fail "of $known candidates that were known, it says: $tried"
all=$(records)
first=$(head -n 1 "$out/vs_cudnn.jsonl")
succeeds "$scratch/resumed.log" run --resume
holds "$summary" "geometric mean of $layers layers"
holds "$out/tune.txt" "$all candidates tried, $all of them known"
[ "$(records)" -eq "$all" ] || fail "candidates were tried again"
[ "$(rows)" -eq "$layers" ] || fail "vs_cudnn.jsonl does not hold $layers rows"
[ "$(head -n 1 "$out/vs_cudnn.jsonl")" = "$first" ] || fail "a row was run again"
[ "$(stat --format %y "$out"/tests/*.passed)" = "$passed" ] || fail "tests were run again"
[ "$(stat --format %y "$out/calibration.txt")" = "$calibrated" ] || fail "it was calibrated again"

# --- Without this or that ---------------------------------------------------------------------------------------------

out=$scratch/without
succeeds "$scratch/without.log" "$carried/gpu" --run "$carried" --out "$out" --device emulator:0 --tests '' --cudnn none \
  --requests "$scratch/layers.txt" "${nvrtc[@]}"
holds "$out/summary.txt" "comparison with cuDNN: left out"
"$carried/gpu" --run "$scratch/nothing" --out "$scratch/none" >"$scratch/none.log" 2>&1 && fail "it ran without a bundle"
holds "$scratch/none.log" "holds no bundle"
rm -rf "$scratch"
echo "scripts/gpu: every step ran"
