// Blocks of several classes in one launch: each class is a namespace with constants and code of its own (`#include
// "per_class/..."`), and the grid has CLASSES blocks in y for each that one class needs. In large grids, blocks that
// run side by side are of different classes and at the same place in theirs, so that operands which classes share are
// read at the same time. In small ones the classes follow each other, those with the most to do first: a block of them
// that began last would run alone.
//
// From the prelude: CLASSES, ordered by what they have to do.
#include "lib/epilogue.cuh"
#include "lib/regions.cuh"
#include "lib/strided.cuh"

// Static shared memory of a block is that of its class: `__shared__ union { FOR_EACH_CLASS(CLASS_MEMORY) } memory`.
// Blocks of any class may take block_memory() (lib/block_memory.cuh) instead.
#define CLASS_MEMORY(NAME) NAME::BlockMemory of_##NAME;

// A block's class, and its place in the grid that this class would have alone.
class ClassBlock {
 public:
  __device__ __forceinline__ ClassBlock() {
    if constexpr (CLASSES > 1) {
      constexpr unsigned LARGE = 1024;  // blocks: several times as many as run at once, and more than L2 holds
      if (gridDim.y * gridDim.x <= LARGE) {
        const unsigned of_class = gridDim.y / CLASSES;
        class_ = static_cast<int>(blockIdx.y / of_class);
        place_.x = blockIdx.x;
        place_.y = blockIdx.y % of_class;
        return;
      }
      const unsigned number = blockIdx.y * gridDim.x + blockIdx.x;
      // The classes of a group take turns: SMs often number a multiple of CLASSES, and each is given every so many-th
      // block. Without turns, one would get the blocks of the class that has the most to do, and none of the others.
      const unsigned group = number / CLASSES;
      class_ = static_cast<int>((number + group + group / CLASSES) % CLASSES);
      place_.x = group % gridDim.x;
      place_.y = group / gridDim.x;
    }
  }

  __device__ __forceinline__ bool is_of(int number) const { return CLASSES == 1 || class_ == number; }

  // For the code of the class. The compiler knows nothing of what this returns: it would compute what classes have in
  // common before it branches to one of them, in up to 22 registers more than the largest class takes.
  __device__ __forceinline__ GridBlock place() const {
    GridBlock place = place_;
    if constexpr (CLASSES > 1) asm volatile("" : "+r"(place.x), "+r"(place.y));
    return place;
  }

 private:
  int class_ = 0;
  GridBlock place_;
};
