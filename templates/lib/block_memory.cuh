// The shared memory of a block as a T: as much as the launch asks for (Launch::dynamic_shared_bytes), so that a block
// may have more than 48 KiB, and blocks of every class (lib/class_blocks.cuh) make of it what they need.

extern __shared__ uint4 block_memory_words[];

template <class T>
__device__ __forceinline__ T& block_memory() {
  static_assert(alignof(T) <= alignof(uint4), "the memory is aligned for T");
  return *reinterpret_cast<T*>(block_memory_words);
}
