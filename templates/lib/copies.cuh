// Asynchronous copies from global to shared memory, by the PTX ISA: cp.async. From compute capability 8.0 on.
constexpr bool HAS_COPIES = __CUDA_ARCH__ >= 800;

// Starts copying BYTES (4, 8 or 16) from global to shared memory, or zeros if there is nothing to copy: `from` is not
// read then. L1 keeps the bytes if IN_L1, or there are less than 16: for what the block reads again soon.
template <int BYTES, bool IN_L1>
__device__ __forceinline__ void start_copy(unsigned to, const void* from, bool exists) {
  const int bytes = exists ? BYTES : 0;
  if constexpr (BYTES == 16 && !IN_L1) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(BYTES), "r"(bytes)
                 : "memory");
  }
}

// Ends a group of copies that this thread has started.
__device__ __forceinline__ void end_group() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until all groups but the last PENDING are there.
template <int PENDING>
__device__ __forceinline__ void wait_for_groups() {
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// The address of an element: one instruction where the offset has 32 bits. The compiler would widen offsets that it
// keeps, and add and shift both halves.
template <class T>
__device__ __forceinline__ const T* element_at(const T* first, int offset) {
  const T* address;
  asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(address) : "r"(offset), "n"(static_cast<int>(sizeof(T))), "l"(first));
  return address;
}
template <class T>
__device__ __forceinline__ const T* element_at(const T* first, long long offset) {
  return first + offset;
}

// Bytes from a tile's first to where a thread's copy number `i` goes, whose line is STEP lines behind that of the copy
// before. Most steps are whole repetitions of the exchange of pieces.
template <class Tile, int STEP>
__device__ __forceinline__ int byte_of_copy(int row, int column, int i) {
  if constexpr (STEP % 8 == 0) return Tile::byte_of(row, column) + i * STEP * Tile::LINE_BYTES;
  return Tile::IS_DOWN ? Tile::byte_of(row, column + i * STEP) : Tile::byte_of(row + i * STEP, column);
}
