// How a handler walks the 32 lanes. Included by the sources of the execution units only, which are compiled once per
// instruction set; everything here stands in that set's own namespace so that the linker never mixes them.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernel/instruction.h"
#include "warp/warp.h"

#ifndef KILN_EMULATOR_ISA
#error "the execution units are compiled with KILN_EMULATOR_ISA set to avx512, avx2 or baseline"
#endif

namespace kiln::emulator::KILN_EMULATOR_ISA {

/// A row of lanes on the stack.
template <class T, int n = 32>
struct alignas(64) Row {
  T lane[n];
};

/// d = s where `mask` says so.
template <class T>
inline void blend(T* d, const T* s, Mask mask) {
#pragma GCC ivdep
  for (int lane = 0; lane < 32; ++lane) d[lane] = (mask >> lane & 1) != 0 ? s[lane] : d[lane];
}

/// Packs 32 bytes of 0 or 1 into a mask.
inline Mask pack_bytes(const uint8_t* bytes) {
#ifdef __SSE2__
  using Bytes = char __attribute__((vector_size(16)));
  Bytes low, high;
  std::memcpy(&low, bytes, 16);
  std::memcpy(&high, bytes + 16, 16);
  const auto bits = [](Bytes b) { return static_cast<uint32_t>(__builtin_ia32_pmovmskb128(Bytes{} - b)); };
  return bits(low) | bits(high) << 16;
#else
  Mask mask = 0;
  for (int lane = 0; lane < 32; ++lane) mask |= static_cast<Mask>(bytes[lane]) << lane;
  return mask;
#endif
}

/// Where a handler puts its result: the register itself, or a row that finish() blends in when lanes are masked off.
/// Results of masked lanes are computed and dropped, so an operation must be harmless for any input.
template <class T>
class Result {
 public:
  Result(Warp& warp, uint32_t offset, Mask mask) : to_(row<T>(warp, offset)), mask_(mask) {}
  T* data() { return mask_ == full_mask ? to_ : scratch_.lane; }
  void finish() {
    if (mask_ != full_mask) blend(to_, scratch_.lane, mask_);
  }

 private:
  T* to_;
  Mask mask_;
  Row<T> scratch_;
};

/// Runs a handler whose only effect is its destination, a register of lanes of T, on all lanes, and takes back what it
/// did to those that `mask` leaves out. Keeps the handler's own code free of masks.
template <class T>
[[gnu::noinline]] const Instruction* run_masked(Warp& warp, const Instruction* i, Mask mask, Handler handler) {
  if (mask == 0) return i + 1;
  T* const d = row<T>(warp, i->d);
  Row<T> before;
  std::memcpy(before.lane, d, sizeof(before.lane));
  Instruction unguarded = *i;
  unguarded.guard = 0;
  unguarded.guard_flip = 0;
  const Mask active = warp.active;
  warp.active = full_mask;
  handler(warp, &unguarded);
  warp.active = active;
  blend(d, before.lane, ~mask);
  return i + 1;
}

/// How wide the lanes of T are, as an unsigned type: run_masked() need not know more.
template <class T>
using LaneBits = std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;

// d = Op(a, ...). A destination may be the register of a source (the loops have no dependence between lanes), but
// rows of different width never overlap.
template <class Op, class D, class A>
const Instruction* map1(Warp& warp, const Instruction* i) {
  if (const Mask mask = guarded(warp, i); mask != full_mask) [[unlikely]] {
    return run_masked<LaneBits<D>>(warp, i, mask, map1<Op, D, A>);
  }
  D* const d = row<D>(warp, i->d);
  const A* const a = row<A>(warp, i->a);
#pragma GCC ivdep
  for (int lane = 0; lane < 32; ++lane) d[lane] = Op::apply(a[lane]);
  return i + 1;
}

template <class Op, class D, class A, class B>
const Instruction* map2(Warp& warp, const Instruction* i) {
  if (const Mask mask = guarded(warp, i); mask != full_mask) [[unlikely]] {
    return run_masked<LaneBits<D>>(warp, i, mask, map2<Op, D, A, B>);
  }
  D* const d = row<D>(warp, i->d);
  const A* const a = row<A>(warp, i->a);
  const B* const b = row<B>(warp, i->b);
#pragma GCC ivdep
  for (int lane = 0; lane < 32; ++lane) d[lane] = Op::apply(a[lane], b[lane]);
  return i + 1;
}

template <class Op, class D, class A, class B, class C>
const Instruction* map3(Warp& warp, const Instruction* i) {
  if (const Mask mask = guarded(warp, i); mask != full_mask) [[unlikely]] {
    return run_masked<LaneBits<D>>(warp, i, mask, map3<Op, D, A, B, C>);
  }
  D* const d = row<D>(warp, i->d);
  const A* const a = row<A>(warp, i->a);
  const B* const b = row<B>(warp, i->b);
  const C* const c = row<C>(warp, i->c);
#pragma GCC ivdep
  for (int lane = 0; lane < 32; ++lane) d[lane] = Op::apply(a[lane], b[lane], c[lane]);
  return i + 1;
}

/// d (a predicate) = bits where `mask` says so. Offset 0, the predicate that is always true, means no destination.
inline void set_predicate(Warp& warp, uint32_t offset, Mask bits, Mask mask) {
  if (offset == 0) return;
  Mask& d = *row<Mask>(warp, offset);
  d = (d & ~mask) | (bits & mask);
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
