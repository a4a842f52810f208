#!/usr/bin/env bash
# scripts/gpu in one command on the emulated device, with the cuDNN of the tests' own in the place of cuDNN: the kit is
# made of what is built, held against its limits, unpacked in an empty folder and run, every step, with the NVRTC that it
# carries; then killed at work, twice, and resumed; then run where there is nothing but bash, coreutils and glibc.
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
# All of the carried programs run, a few tests of each: what the others prove is proved by those that are not carried.
passes=(Forms/TensorProducts.AreTheSameTwice/m16n8k16_row_col_f32_f16_f16_f32 Run.AVectorAddCompiledHereIsRight ActivationCalls.UseTheUsualNumbersOfTheirMode
  OptionsTest.WithinABudgetARequestIsTunedBeforeItIsServed SoftmaxOnTuring.MatchesTheReference
  UserCodeOfNorms.ForwardInSixDimensions UserCodeOfValues.MakesTensorsOfOthers
  CheckOfUserEpiloguesOfRows.FindsCodeThatWasLeftOut CheckOfUserCodeOfGradients.FindsCodeThatWasSkipped)
GTEST_FILTER=$(IFS=:; echo "${passes[*]}")
export GTEST_FILTER
export KILN_EMULATOR_CHECK=full KILN_EMULATOR_CLOCK=ptx
export FAKE_CUDNN_DRIVER=libkiln_emulator.so  # the one that the comparison has loaded
cat >"$scratch/layers.txt" <<'TEXT'
conv_forward x=f32:1x8x14x14 w=f32:16x8x3x3 pad=1
conv_forward x=f32:1x16x7x7 w=f32:8x16x1x1 epilogue=bias+relu
conv_backward_data dy=f32:1x8x7x7 w=f32:8x4x3x3 pad=1
conv_backward_filter x=f32:1x4x7x7 dy=f32:1x8x7x7 dw=f32:8x4x3x3 pad=1
pool_forward x=f32:1x8x14x14 mode=max window=2 stride=2
softmax_forward x=f32:3x100
TEXT
layers=6
printf '# softmax\nsoftmax_forward x=f32:3x100\nsoftmax_forward x=f32:3x90\n' >"$scratch/open.txt"

# --- One command ------------------------------------------------------------------------------------------------------

out=$target.try/results
summary=$out/summary.txt
mkdir "$scratch/loaded"
LD_DEBUG=files LD_DEBUG_OUTPUT=$scratch/loaded/by succeeds "$scratch/try.log" "$source/scripts/gpu" --kit "$target" \
  --built "$build" --fast --limit 80000000 --try --requests "$scratch/layers.txt" --open "$scratch/open.txt" --cudnn "$fake" --minutes 8
unpacked=$(echo "$carried"/unpacked-*)
holds "$summary" "tests: 4 programs passed, 0 failed, 0 out of time"
cat "$out"/tests/*.txt >"$scratch/passed.txt"
for test in "${passes[@]}"; do holds "$scratch/passed.txt" "[       OK ] $test"; done
holds "$summary" "products on tensor cores: 0 of 2 sets of results have the bits of the emulated h200"  # by chain and as chips add
[ "$(stat -c %s "$out"/products/*.bits)" -eq $((192 * 128 * 4)) ] || fail "the results of products are not kept"
holds "$summary" "calibration: calibration.txt"
holds "$out/calibration.txt" "copy_efficiency="
holds "$summary" "open kernels of 2 layers: all right; "
holds "$summary" "new sizes: 0 results of 1000 are wrong; "
[ "$(grep -vc '^#' "$unpacked/requests/open_kernels.txt")" -ge 70 ] || fail "the kit has few classes of layers"
holds "$summary" "tune: tune.txt, report.html"
holds "$out/report.html" "</html>"
holds "$out/report.html" "calibrated on this device: copy_efficiency="
holds "$summary" "geometric mean of $layers layers"
[ "$(grep -c '"status":"compared"' "$out/vs_cudnn.jsonl")" -eq "$layers" ] || fail "not every layer was compared"
[ -z "$(find "$out" -name '*.partial' -o -name '*.tmp')" ] || fail "it left temporary files"

# No process loaded another NVRTC than the one that was carried, nor another second library of NVRTC's.
grep -rhoE 'calling init: .*nvrtc.*' "$scratch/loaded" | sort -u >"$scratch/nvrtc.txt"
holds "$scratch/nvrtc.txt" "$unpacked/lib/libnvrtc.so."
holds "$scratch/nvrtc.txt" "$unpacked/lib/libnvrtc-builtins.so."
if grep -vF " $unpacked/lib/" "$scratch/nvrtc.txt" >&2; then fail "these are not the carried ones"; fi
rm -r "$scratch/loaded"

# --- What is carried --------------------------------------------------------------------------------------------------

for program in bin/kiln bin/bench_vs_cudnn bin/bench_open_kernels bin/bench_many_sizes tests/device_tensor_test tests/device_run_test tests/runtime_test tests/templates_test lib/libkiln_emulator.so; do
  foreign=$(ldd "$unpacked/$program" | grep -vE 'linux-vdso|libc\.so\.6|libm\.so\.6|libgcc_s\.so\.1|ld-linux|statically' || true)
  [ -z "$foreign" ] || fail "$program needs $foreign"
done
if ldd "$carried/unpack" >"$scratch/ldd.txt" 2>&1; then fail "unpack needs libraries"; fi
mkdir "$scratch/inside"
if printf '644 1 lib/../../outside\na' | xz --check=sha256 | "$carried/unpack" "$scratch/inside" 2>"$scratch/outside.log"; then
  fail "it unpacked a file that leads out of the folder"
fi
holds "$scratch/outside.log" "it holds a name that leads out of the folder"
[ ! -e "$scratch/outside" ] || fail "there is a file outside of the folder"
newest=$(objdump -T "$unpacked"/{bin,tests}/* "$unpacked/lib/libkiln_emulator.so" | grep -o 'GLIBC_[0-9.]*' | sort -V | tail -n 1)
[ "$newest" = GLIBC_2.34 ] || fail "it needs $newest"
"$unpacked/tests/templates_test" --gtest_filter='*' --gtest_list_tests >"$scratch/tests.txt"
for test in SoftmaxDefaults SoftmaxBackwardDefaults PoolDefaults PoolBackwardDefaults UnpoolBackwardDefaults \
  PointwiseDefaults TensorFunctions ReduceDefaults DropoutTest Gemm CrossEntropy NormDefaults NormBackwardDefaults LocalNormDefaults ConvDefaults \
  ConvBackwardData ConvBackwardFilter LocalConv Regions InPlace FewTaps WinogradDefaults; do
  holds "$scratch/tests.txt" "/$test."
done
for test in UserEpilogue UserPrologue UserCodeOfNorms UserCodeOfCopies UserPrologueOfReductions \
  UserCodeOfDataGradients WinogradConfigs/PairwiseMatch; do
  holds "$scratch/tests.txt" "$test."
done

# --- Killed at work, and resumed --------------------------------------------------------------------------------------

options=(--device emulator:0 --minutes 8 --requests "$scratch/layers.txt" --open none --tests device_run_test --cudnn "$fake")
run() {
  "$carried/gpu" --run "$carried" --out "$out" "${options[@]}" "$@"
}
records() {
  "$unpacked/bin/kiln" cache export --db "$out/tuning.db" "$scratch/all.pack" >/dev/null 2>&1 || { echo 0; return; }
  grep -c '^record' "$scratch/all.pack" || true
}
rows() {
  [ ! -e "$out/vs_cudnn.jsonl" ] || wc -l <"$out/vs_cudnn.jsonl"
}
# at_work: whether a program of the kit runs.
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

# --- Layers that nobody names -----------------------------------------------------------------------------------------

# They are those that are carried. The first to be tuned is the largest, which takes minutes here: the run is ended once a
# kernel for it is compiled, and goes on with a small layer, for which there is a report.
out=$scratch/default
summary=$out/summary.txt
options=(--device emulator:0 --minutes 8 --open none --tests '' --cudnn none)
kernels_of_layers() {
  [ ! -e "$out/tune.partial" ] || { find "$out/cache" -name '*.entry' -newer "$out/tune.partial" || true; } | wc -l
}
mkdir -p "$out/cache"
cp "$scratch/killed/calibration.txt" "$out/"  # so that it is not calibrated again
kill_when kernels_of_layers 1 --resume
cat "$source"/examples/requests/{h200_sample,layer_classes}.txt | cmp - "$out/requests.txt" || fail "these are other layers"
tail -n 1 "$scratch/layers.txt" >"$scratch/small.txt"
succeeds "$scratch/default.log" run --resume --requests "$scratch/small.txt"
holds "$summary" "tune: tune.txt, report.html"
holds "$out/tune.txt" "softmax 3x100"
holds "$out/report.html" "</html>"
[ -z "$(find "$out" -name '*.partial')" ] || fail "what the killed run had written of its report was left there"

# --- Where there is nothing else --------------------------------------------------------------------------------------

# A root of bash, coreutils and glibc: without the compiler's libraries, without a place to write but OUT and --unpack's.
root=$scratch/root
lib=$root/usr/lib/x86_64-linux-gnu
mkdir -p "$root/usr/bin" "$root/usr/lib64" "$lib" "$root"/{proc,dev,carried,work,full}
ln -s usr/bin usr/lib usr/lib64 "$root/"
programs=("$(type -P bash)")
for name in cat chmod date dirname env mkdir mv nproc realpath rm sha256sum tee timeout touch true; do
  programs+=("$(type -P "$name")")
done
cp -L "${programs[@]}" "$root/usr/bin/"
ldd "${programs[@]}" | grep -o '/[^ ]*\.so[^ ]*' | sort -u | while read -r library; do cp -L "$library" "$lib/"; done
for library in libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 ld-linux-x86-64.so.2; do
  cp -L "$(cc -print-file-name="$library")" "$lib/"
done
ln -s ../lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 "$root/usr/lib64/"
cp "$carried"/{gpu,unpack,VERSION,payload.xz} "$root/carried/"
head -n 1 "$scratch/layers.txt" >"$root/work/layers.txt"
head -n 2 "$scratch/open.txt" >"$root/work/open.txt"
# shellcheck disable=SC2016
enter='mount --bind "$1" "$1" && mount --rbind /dev "$1/dev" && mount --rbind /proc "$1/proc" &&
  mount -t tmpfs -o size=20m none "$1/full" && mount --bind "$1/work" "$1/work" && mount -o remount,bind,ro "$1" && cd "$1/work" && shift &&
  exec chroot .. /usr/bin/env -i PATH=/usr/bin "$@"'
in_root() {
  unshare --map-root-user --mount bash -c "$enter" - "$root" "$@"
}
if in_root true; then
  if in_root bash -c 'touch /tmp/file 2>/dev/null || touch /carried/file 2>/dev/null'; then fail "the root can be written"; fi
  if in_root /carried/gpu --run /carried --out /work/out >"$scratch/root.log" 2>&1; then fail "it unpacked into the root"; fi
  holds "$scratch/root.log" "--unpack names a folder to unpack into"
  if in_root /carried/gpu --run /carried --unpack /full --out /work/out >"$scratch/root.log" 2>&1; then fail "20 MB hold it"; fi
  holds "$scratch/root.log" "No space left on device"
  mkdir -p "$root/work/out"
  cp "$scratch/killed/calibration.txt" "$root/work/out/"  # so that it is not calibrated again
  succeeds "$scratch/root.log" in_root /carried/gpu --run /carried --unpack /work --out /work/out --device emulator:0 --tests '' \
    --open /work/open.txt --requests /work/layers.txt --resume
  for line in "/lib/libnvrtc.so." "open kernels of 1 layers: all right" "new sizes: 0 results of 1000 are wrong" "tune: tune.txt, report.html" \
    "comparison with cuDNN: left out"; do
    holds "$root/work/out/summary.txt" "$line"
  done
else
  echo "not run where there is nothing else: this machine does not let a test make a root of its own"
fi
rm -rf "$root"

# --- Unpacking that is disturbed --------------------------------------------------------------------------------------

# Without NVRTC, and held to so much that the whole stays below what may be carried: the other way of packing makes half of it.
small=$scratch/small
succeeds "$scratch/small.log" "$source/scripts/gpu" --kit "$small" --built "$build" --fast --without-nvrtc --limit 24000000
# unpack_small STATUS TEXT: runs it on a device that is not there, for which it unpacks first.
unpack_small() {
  local status=0
  "$small/gpu" --run "$small" --out "$scratch/small.out" --device cuda:99 >"$scratch/small.log" 2>&1 || status=$?
  [ "$status" -eq "$1" ] || { cat "$scratch/small.log" >&2; fail "it ended with status $status, not $1"; }
  holds "$scratch/small.log" "$2"
}
nothing_unpacked() {
  for found in "$small"/unpacked-*; do [[ ! -e "$found" || "$found" == *.partial.* ]] || fail "$1: there is $found"; done
}
payload=$small/payload.xz
cp "$payload" "$scratch/payload.xz"
head -c -1000 "$scratch/payload.xz" >"$payload"
unpack_small 1 "the kit could not be unpacked"
nothing_unpacked "an end that is missing"
{ head -c 5000000 "$scratch/payload.xz"; printf x; tail -c +5000002 "$scratch/payload.xz"; } >"$payload"
unpack_small 1 "the kit could not be unpacked"
nothing_unpacked "a byte that is wrong"
cp "$scratch/payload.xz" "$payload"
(ulimit -f 2000; unpack_small 1 "the kit could not be unpacked") || exit 1
nothing_unpacked "a file that cannot be written"
[ -z "$(find "$small" -name '*.partial.*')" ] || fail "what could not be unpacked was left there"

mv "$small/unpack" "$scratch/unpack"
printf '#!/usr/bin/env bash\nhead -c 5000000 | "%s" "$1"\nsleep 600\n' "$scratch/unpack" >"$small/unpack"
chmod +x "$small/unpack"
setsid "$small/gpu" --run "$small" --out "$scratch/small.out" >"$scratch/small.log" 2>&1 &
pid=$!
for ((i = 0; i < 600; ++i)); do
  [ -z "$(find "$small" -path '*.partial.*/bin/kiln' -size +1000k)" ] || break
  sleep 0.1
done
kill -KILL -- "-$pid"
if wait "$pid" 2>/dev/null; then fail "a killed run succeeded"; fi
nothing_unpacked "a run that was killed"
mv "$scratch/unpack" "$small/unpack"
unpack_small 3 "scripts/gpu: unpacking"
[ -z "$(find "$small" -name '*.partial.*')" ] || fail "what the killed run had unpacked was left there"
[ "$(find "$small"/unpacked-*/bin/kiln -perm 755)" ] || fail "it was not unpacked"
unpack_small 3 "scripts/gpu: "
if grep -F unpacking "$scratch/small.log" >&2; then fail "it was unpacked twice"; fi

rm -r "$small"/unpacked-*
unpack_small 3 "scripts/gpu: " &
pid=$!
(scratch=$scratch/second; mkdir "$scratch"; unpack_small 3 "scripts/gpu: ")
wait "$pid"
[ "$(find "$small" -maxdepth 1 -name 'unpacked-*' | wc -l)" -eq 1 ] || fail "two runs at once left $(ls "$small")"

# Another machine, or a container, may have this folder, too: a process of that number there may be at work.
rm -r "$small"/unpacked-*
mkdir "$small/unpacked-0.partial.elsewhere.1"
unpack_small 3 "scripts/gpu: unpacking"
rmdir "$small/unpacked-0.partial.elsewhere.1" || fail "it took another machine's files for those of a killed run"

# --- What is refused --------------------------------------------------------------------------------------------------

if "$source/scripts/gpu" --kit "$small" --built "$build" --fast --without-nvrtc --limit 1000000 >"$scratch/small.log" 2>&1
then fail "it made a kit that is too large"; fi
holds "$scratch/small.log" "more than the 1000000 bytes that may be carried"
[ ! -e "$small.tar" ] || fail "a kit that is too large was left there"
"$carried/gpu" --run "$carried" --out "$scratch/none" --device cuda:99 >"$scratch/none.log" 2>&1 && fail "it ran without a device"
holds "$scratch/none.log" "there is no device cuda:99"
"$carried/gpu" --run "$scratch/nothing" --out "$scratch/none" >"$scratch/none.log" 2>&1 && fail "it ran without a kit"
holds "$scratch/none.log" "holds no kit"
rm -rf "$scratch"
echo "scripts/gpu: every step ran"
