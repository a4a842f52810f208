# Collects the carried files, and packs them: `scripts/gpu --kit`. Read by scripts/gpu, from which come the settings,
# the names of what is carried, fail and find_library; the other machine has no use for it.
# shellcheck shell=bash

# The NVRTC to carry.
choose_nvrtc() {
  local build=$1 name
  [ -n "$nvrtc" ] || nvrtc=${KILN_NVRTC:-}
  if [ -z "$nvrtc" ]; then  # a build without a toolkit brings its own
    for name in "$build"/lib/libnvrtc.so.[0-9]*; do [ ! -e "$name" ] || nvrtc=$name; done
  fi
  [ -n "$nvrtc" ] || nvrtc=$(find_library "${nvrtc_names[@]}")
  [ -e "$nvrtc" ] || fail "there is no NVRTC to carry${nvrtc:+ at $nvrtc}: --nvrtc names one, --without-nvrtc carries none"
}

# collect_nvrtc LIB: NVRTC under the name by which it is looked for; the library that it loads itself, whose name is left in
# `builtins`; and the compiler's two libraries that the latter names.
collect_nvrtc() {
  local lib=$1 soname name  # and make_kit's builtins
  soname=$(objdump -p "$nvrtc" | awk '$1 == "SONAME" { print $2 }')
  builtins=$(grep -aom 1 'libnvrtc-builtins\.so\.[0-9]*\.[0-9]*' "$nvrtc" || true)
  builtins=${builtins%%$'\n'*}
  [ -n "$soname" ] && [ -n "$builtins" ] || fail "$nvrtc is no NVRTC"
  cp -L "$nvrtc" "$lib/$soname"
  cp -L "$(dirname "$(realpath "$nvrtc")")/$builtins" "$lib/$builtins"
  mkdir "$lib/gcc"
  for name in libstdc++.so.6 libgcc_s.so.1; do cp -L "$(g++ -print-file-name="$name")" "$lib/gcc/"; done
}

collect_files() {
  local files=$1 build=$2 name
  mkdir -p "$files/bin" "$files/examples" "$files/lib" "$files/tests" "$files/requests"
  for name in kiln bench_vs_cudnn bench_open_kernels bench_many_sizes; do cp "$build/kit/$name" "$files/bin/"; done
  cp "$build/kit/lib/libkiln_emulator.so" "$files/lib/"
  for name in "${programs[@]}"; do cp "$build/kit/$name" "$files/tests/"; done
  for name in "${suites[@]}"; do cp "examples/requests/$name" "$files/requests/"; done
  bench/open_kernels/sweep.py 1 >"$files/requests/open_kernels.txt"
  cp -r examples/user_template "$files/examples/"
}

# join_files FOLDER: all that is in it, as one stream; gpu_kit/unpack.cpp says how.
join_files() {
  local mode size name
  cd "$1"
  find . -type f -printf '%m %s %P\n' | sort -k 3 | while read -r mode size name; do
    echo "$mode $size $name"
    cat "$name"
  done
}

make_kit() {
  local target=$1 build=$2 files=$1.files version builtins newest bytes
  local how=(--threads=1 "--lzma2=preset=9e,dict=192MiB")  # all at once: the programs have much in common
  if [ -z "$build" ]; then
    build=$PWD/build/release
    scripts/setup
    scripts/build release
    CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 cmake --build --preset release --target kit </dev/null
  fi
  rm -rf "$files"
  scrap=$files
  collect_files "$files" "$build"
  newest=$(objdump -T "$files"/{bin,lib,tests}/* | grep -o 'GLIBC_[0-9.]*' | sort --version-sort | tail -n 1)
  version=$(git describe --always --dirty 2>/dev/null || echo unknown)
  if $carry_nvrtc; then
    choose_nvrtc "$build"
    collect_nvrtc "$files/lib"
    version="$version, NVRTC ${builtins#libnvrtc-builtins.so.}"
  fi

  mkdir -p "$target"
  cp scripts/gpu "$target/gpu"
  cp "$build/kit/unpack" "$target/unpack"
  echo "$version" >"$target/VERSION"
  echo "scripts/gpu: packing $version"
  ! $fast || how=(--threads=0 --lzma2=preset=0)
  join_files "$files" | xz --check=sha256 --x86 "${how[@]}" >"$target/payload.xz"
  rm -rf "$files"
  tar -C "$(dirname "$target")" -cf "$target.tar" "${carried[@]/#/"$(basename "$target")/"}"
  bytes=$(stat --format %s "$target.tar")
  echo "scripts/gpu: $target.tar holds $bytes bytes; it needs glibc ${newest#GLIBC_} or later"
  [ "$bytes" -le "$limit" ] || { rm "$target.tar"; fail "that is more than the $limit bytes that may be carried"; }
}

# Where the kit was made, as on the other machine: unpacked in an empty folder, on the device in software.
try_kit() {
  local target=$1 empty=$1.try
  shift
  rm -rf "$empty"
  mkdir -p "$empty"
  tar -C "$empty" -xf "$target.tar"
  cd "$empty"
  echo "scripts/gpu: trying it in $empty"
  exec "./$(basename "$target")/gpu" --run "$(basename "$target")" --out results "$@"
}
