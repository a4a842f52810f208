// atom, red and cp.async. Atomics are atomic among host threads; within a warp the lanes go one after the other.
#include <bit>

#include "addresses.h"
#include "checks/fault.h"
#include "floating_ops.h"
#include "lanes.h"
#include "units.h"

namespace kiln::emulator::KILN_EMULATOR_ISA {
namespace {

using ptx::Type;

/// *at = f(*at), atomically; returns what was there.
template <class U, class F>
U update(U* at, F f) {
  U old = __atomic_load_n(at, __ATOMIC_RELAXED);
  U wanted = f(old);
  while (!__atomic_compare_exchange_n(at, &old, wanted, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) wanted = f(old);
  return old;
}

/// The new value: T is what U's bits mean.
template <AtomicOp op, class T, class U>
U combined(U old_bits, U operand_bits) {
  const T old = std::bit_cast<T>(old_bits), x = std::bit_cast<T>(operand_bits);
  if constexpr (op == AtomicOp::add) {
    if constexpr (std::is_floating_point_v<T>) return std::bit_cast<U>(static_cast<T>(old + x));
    return old_bits + operand_bits;
  } else if constexpr (op == AtomicOp::min) {
    return std::bit_cast<U>(old < x ? old : x);
  } else if constexpr (op == AtomicOp::max) {
    return std::bit_cast<U>(old > x ? old : x);
  } else if constexpr (op == AtomicOp::inc) {
    return old >= x ? T{0} : old + 1;
  } else if constexpr (op == AtomicOp::dec) {
    return old == 0 || old > x ? x : old - 1;
  } else if constexpr (op == AtomicOp::bit_and) {
    return old_bits & operand_bits;
  } else if constexpr (op == AtomicOp::bit_or) {
    return old_bits | operand_bits;
  } else if constexpr (op == AtomicOp::bit_xor) {
    return old_bits ^ operand_bits;
  } else {
    return operand_bits;  // exch
  }
}

template <class Format>
uint16_t add_half(uint16_t old, uint16_t x) {
  Row<uint16_t, 16> in{}, out{};
  Row<float, 16> sum{}, wide{};
  in.lane[0] = old, in.lane[1] = x;
  Format::widen(wide.lane, in.lane, 16);
  sum.lane[0] = wide.lane[0] + wide.lane[1];
  Format::narrow(out.lane, sum.lane, 16);
  return out.lane[0];
}

/// atom.add.f32 on global memory "flushes subnormal inputs and results to sign-preserving zero", and on shared memory
/// does not.
struct FloatAdd32 {
  using Bits = uint32_t;
  static uint32_t apply(uint32_t* at, uint32_t b, uint32_t) {
    return update(at, [&](uint32_t old) { return combined<AtomicOp::add, float, uint32_t>(old, b); });
  }
  static uint32_t apply_in_global(uint32_t* at, uint32_t b, uint32_t) {
    return update(at, [&](uint32_t old) { return bits_of(flushed(flushed(float_of(old)) + flushed(float_of(b)))); });
  }
};

// Policies: the C++ type in memory, and the update.
template <AtomicOp op, class T, class U>
struct Plain {
  using Bits = U;
  static U apply(U* at, U b, U c) {
    if constexpr (op == AtomicOp::cas) {
      U found = b;
      __atomic_compare_exchange_n(at, &found, c, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
      return found;
    } else {
      return update(at, [&](U old) { return combined<op, T, U>(old, b); });
    }
  }
};
template <class Format>
struct HalfAdd {
  using Bits = uint16_t;
  static uint16_t apply(uint16_t* at, uint16_t b, uint16_t) {
    return update(at, [&](uint16_t old) { return add_half<Format>(old, b); });
  }
};
template <class Format>
struct PairAdd {
  using Bits = uint32_t;
  static uint32_t apply(uint32_t* at, uint32_t b, uint32_t) {
    return update(at, [&](uint32_t old) {
      const uint32_t low = add_half<Format>(static_cast<uint16_t>(old), static_cast<uint16_t>(b));
      const uint32_t high = add_half<Format>(static_cast<uint16_t>(old >> 16), static_cast<uint16_t>(b >> 16));
      return low | high << 16;
    });
  }
};

template <class Space, class Policy>
typename Policy::Bits apply_to(const Warp& warp, typename Policy::Bits* at, typename Policy::Bits b,
                               typename Policy::Bits c) {
  if constexpr (std::is_base_of_v<GlobalSpace, Space> && requires { Policy::apply_in_global(at, b, c); }) {
    const auto offset = reinterpret_cast<uintptr_t>(at) - reinterpret_cast<uintptr_t>(warp.shared);
    if (offset >= warp.block->shared_bytes)
      return Policy::apply_in_global(at, b, c);  // a generic address may be shared
  }
  return Policy::apply(at, b, c);
}

template <class Space, class Policy, bool returns, bool inspected>
const Instruction* atomic_in(Warp& warp, const Instruction* i) {
  using U = typename Policy::Bits;
  const Mask mask = guarded(warp, i);
  Addresses<typename Space::Offset> addresses;
  Space::locate(warp, i, addresses);
  if constexpr (inspected) {
    if (!inspect<Space>(warp, i, mask, addresses, sizeof(U), AccessKind::atomic)) return nullptr;
  }
  const U* const b = row<U>(warp, i->b);
  const U* const c = row<U>(warp, i->c);
  U* const d = row<U>(warp, i->d);
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    U* const at = reinterpret_cast<U*>(addresses.at(lane));
    const U old = apply_to<Space, Policy>(warp, at, b[lane], c[lane]);
    if constexpr (returns) d[lane] = old;
  }
  return i + 1;
}

template <class Policy, bool returns>
HandlerPair in_space(const Atomic& atomic) {
  using Narrow = SharedSpace<uint32_t>;
  using Wide = SharedSpace<uint64_t>;
  if (atomic.space == ptx::Space::shared && atomic.address_bytes == 4) {
    return {atomic_in<Narrow, Policy, returns, false>, atomic_in<Narrow, Policy, returns, true>};
  }
  if (atomic.address_bytes == 4) return {};
  if (atomic.space == ptx::Space::shared) {
    return {atomic_in<Wide, Policy, returns, false>, atomic_in<Wide, Policy, returns, true>};
  }
  return {atomic_in<GlobalSpace, Policy, returns, false>, atomic_in<GlobalSpace, Policy, returns, true>};
}

template <class Policy>
HandlerPair with_policy(const Atomic& atomic) {
  return atomic.returns ? in_space<Policy, true>(atomic) : in_space<Policy, false>(atomic);
}

template <class T, class U>
HandlerPair integer_atomic(const Atomic& atomic) {
  switch (atomic.op) {
    case AtomicOp::add:
      return with_policy<Plain<AtomicOp::add, T, U>>(atomic);
    case AtomicOp::min:
      return with_policy<Plain<AtomicOp::min, T, U>>(atomic);
    case AtomicOp::max:
      return with_policy<Plain<AtomicOp::max, T, U>>(atomic);
    default:
      return {};
  }
}

template <class U>
HandlerPair bit_atomic(const Atomic& atomic) {
  switch (atomic.op) {
    case AtomicOp::exch:
      return with_policy<Plain<AtomicOp::exch, U, U>>(atomic);
    case AtomicOp::cas:
      return with_policy<Plain<AtomicOp::cas, U, U>>(atomic);
    case AtomicOp::bit_and:
      return with_policy<Plain<AtomicOp::bit_and, U, U>>(atomic);
    case AtomicOp::bit_or:
      return with_policy<Plain<AtomicOp::bit_or, U, U>>(atomic);
    case AtomicOp::bit_xor:
      return with_policy<Plain<AtomicOp::bit_xor, U, U>>(atomic);
    default:
      return {};
  }
}

/// Copies to `to` what a lane of the coming cp.async is about to bring, for the checks.
void copied_value(const Warp& warp, const Instruction*, int lane, std::byte* to) {
  const AsyncCopies::Copy& copy = warp.copies.coming();
  bring(copy, static_cast<size_t>(lane), copy.bytes, to);
}

/// Both sides of a copy, looked at lane group by lane group: each group reads the same number of bytes. The source
/// comes first, because copied_value() reads it when the other side is looked at.
template <class Shared>
bool inspect_copy(Warp& warp, const Instruction* i, Mask mask, const Addresses<typename Shared::Offset>& to,
                  const Addresses<uint64_t>& from, uint32_t bytes, const AsyncCopies::Addresses& wanted) {
  if (mask == 0 && !inspect<GlobalSpace>(warp, i, mask, from, bytes, AccessKind::load)) return false;
  bool first = true;
  for (Mask open = mask; open != 0; first = false) {
    const uint64_t size = wanted[static_cast<size_t>(std::countr_zero(open))];
    Mask group = 0;
    for (int lane = 0; lane < 32; ++lane) {
      if ((open >> lane & 1) != 0 && wanted[static_cast<size_t>(lane)] == size) group |= Mask{1} << lane;
    }
    open &= ~group;
    // Lanes that only fill with zeros read nothing, wherever they point.
    const Mask reading = size == 0 ? 0 : group;
    const auto part = static_cast<uint32_t>(size);
    if (!inspect<GlobalSpace>(warp, i, reading, from, part, AccessKind::load, {.is_part = !first})) return false;
  }
  const AccessDetails later = {.is_part = true, .is_asynchronous = true, .value_of = copied_value};
  return inspect<Shared>(warp, i, mask, to, bytes, AccessKind::store, later);
}

template <bool inspected, class Shared>
const Instruction* copy_async_of(Warp& warp, const Instruction* i) {
  const Mask mask = guarded(warp, i);
  const uint32_t bytes = warp.lists[i->extra];
  Addresses<typename Shared::Offset> to;
  Instruction place = *i;
  place.immediate = static_cast<int32_t>(warp.lists[i->extra + 1]);
  Shared::locate(warp, &place, to);
  Addresses<uint64_t> from;
  place.a = i->b;
  place.immediate = i->immediate;
  GlobalSpace::locate(warp, &place, from);
  AsyncCopies::Copy& copy = warp.copies.next();
  copy.at = i;
  copy.lanes = mask;
  copy.bytes = bytes;
  const uint32_t* const sizes = i->c != 0 ? row<uint32_t>(warp, i->c) : nullptr;
  for (size_t lane = 0; lane < 32; ++lane) {
    copy.to[lane] = to.base + to.offset.lane[lane];
    copy.from[lane] = from.offset.lane[lane];
    copy.source_bytes[lane] = sizes == nullptr || sizes[lane] > bytes ? bytes : sizes[lane];
  }
  if constexpr (inspected) {
    Mask excessive = 0;  // is undefined in PTX
    for (int lane = 0; lane < 32; ++lane)
      excessive |= static_cast<Mask>(sizes != nullptr && sizes[lane] > bytes) << lane;
    if ((excessive & mask) != 0 && warp.block->checking) {
      return fault_here(warp, i, FaultKind::illegal_instruction, excessive & mask,
                        "the copy is to read more bytes than it writes");
    }
    if (!inspect_copy<Shared>(warp, i, mask, to, from, bytes, copy.source_bytes)) return nullptr;
  }
  if (mask != 0) warp.copies.issue();
  return i + 1;
}

}  // namespace

HandlerPair atomic(const Atomic& atomic) {
  switch (atomic.type) {
    case Type::u32:
      if (atomic.op == AtomicOp::inc) return with_policy<Plain<AtomicOp::inc, uint32_t, uint32_t>>(atomic);
      if (atomic.op == AtomicOp::dec) return with_policy<Plain<AtomicOp::dec, uint32_t, uint32_t>>(atomic);
      return integer_atomic<uint32_t, uint32_t>(atomic);
    case Type::s32:
      return integer_atomic<int32_t, uint32_t>(atomic);
    case Type::u64:
      return integer_atomic<uint64_t, uint64_t>(atomic);
    case Type::s64:
      return integer_atomic<int64_t, uint64_t>(atomic);
    case Type::b16:
      return atomic.op == AtomicOp::cas ? with_policy<Plain<AtomicOp::cas, uint16_t, uint16_t>>(atomic) : HandlerPair{};
    case Type::b32:
      return bit_atomic<uint32_t>(atomic);
    case Type::b64:
      return bit_atomic<uint64_t>(atomic);
    default:
      break;
  }
  if (atomic.op != AtomicOp::add) return {};
  switch (atomic.type) {
    case Type::f32:
      return with_policy<FloatAdd32>(atomic);
    case Type::f64:
      return with_policy<Plain<AtomicOp::add, double, uint64_t>>(atomic);
    case Type::f16:
      return with_policy<HalfAdd<F16>>(atomic);
    case Type::bf16:
      return with_policy<HalfAdd<BF16>>(atomic);
    case Type::f16x2:
      return with_policy<PairAdd<F16>>(atomic);
    case Type::bf16x2:
      return with_policy<PairAdd<BF16>>(atomic);
    default:
      return {};
  }
}

HandlerPair copy_async(uint32_t shared_address_bytes) {
  if (shared_address_bytes == 4) {
    return {copy_async_of<false, SharedSpace<uint32_t>>, copy_async_of<true, SharedSpace<uint32_t>>};
  }
  return {copy_async_of<false, SharedSpace<uint64_t>>, copy_async_of<true, SharedSpace<uint64_t>>};
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
