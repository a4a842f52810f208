// Loads and stores. Strong ones (volatile, or with a memory order) are atomic among host threads, element by element.
#include "addresses.h"
#include "lanes.h"
#include "units.h"
#include "vector_access.h"
#include "vector_access_512.h"

namespace kiln::emulator::KILN_EMULATOR_ISA {
namespace {

// Instruction::c of an access: what the registers look like beside the elements.
enum Shape : uint32_t { register_bytes_mask = 0xFF, sign_extends = 0x100 };

template <class E, class R>
void extend(R* to, const E* from, Mask mask, bool sign) {
  Row<R> wide;
  if (sign) {
    using S = std::make_signed_t<E>;
    for (int lane = 0; lane < 32; ++lane) wide.lane[lane] = static_cast<R>(static_cast<S>(from[lane]));
  } else {
    for (int lane = 0; lane < 32; ++lane) wide.lane[lane] = from[lane];
  }
  blend(to, wide.lane, mask);
}

/// Puts elements into registers that are wider than they.
template <class E>
void extend_into(Warp& warp, uint32_t offset, const E* from, Mask mask, uint32_t shape) {
  const bool sign = (shape & sign_extends) != 0;
  switch (shape & register_bytes_mask) {
    case 2:
      return extend(row<uint16_t>(warp, offset), from, mask, sign);
    case 4:
      return extend(row<uint32_t>(warp, offset), from, mask, sign);
    default:
      return extend(row<uint64_t>(warp, offset), from, mask, sign);
  }
}

template <class E, class R>
void cut(E* to, const R* from) {
  for (int lane = 0; lane < 32; ++lane) to[lane] = static_cast<E>(from[lane]);
}

template <class E>
void cut_from(const Warp& warp, uint32_t offset, E* to, uint32_t shape) {
  switch (shape & register_bytes_mask) {
    case 2:
      return cut(to, row<uint16_t>(warp, offset));
    case 4:
      return cut(to, row<uint32_t>(warp, offset));
    default:
      return cut(to, row<uint64_t>(warp, offset));
  }
}

/// Global memory in strong accesses. Blocks of several host threads may meet there, in shared memory they cannot.
struct StrongSpace : GlobalSpace {};

template <class Space>
constexpr bool is_plain_global = std::is_base_of_v<GlobalSpace, Space> && !std::is_same_v<Space, StrongSpace>;

/// Acquire and release are what hosts of this kind do anyway, and what any order that PTX asks for amounts to.
template <class E, int elements>
void load_atomically(const Addresses<uint64_t>& addresses, Mask mask, E* const* to) {
  for (; mask != 0; mask &= mask - 1) {
    const int lane = __builtin_ctz(mask);
    const E* const from = reinterpret_cast<const E*>(addresses.at(lane));
    for (int k = 0; k < elements; ++k) to[k][lane] = __atomic_load_n(from + k, __ATOMIC_ACQUIRE);
  }
}

template <class E, int elements>
void store_atomically(const Addresses<uint64_t>& addresses, Mask mask, const E* const* from) {
  for (; mask != 0; mask &= mask - 1) {
    const int lane = __builtin_ctz(mask);
    E* const to = reinterpret_cast<E*>(addresses.at(lane));
    for (int k = 0; k < elements; ++k) __atomic_store_n(to + k, from[k][lane], __ATOMIC_RELEASE);
  }
}

/// The register offsets of the elements.
template <int elements>
const uint32_t* element_registers(const Warp& warp, const Instruction* i, const uint32_t& single) {
  return elements == 1 ? &single : warp.lists + i->extra;
}

/// The short cuts for registers as wide as the elements. False, and nothing done, where none applies.
template <class Space, class E, int elements>
bool load_fast([[maybe_unused]] Warp& warp, [[maybe_unused]] const Instruction* i, [[maybe_unused]] Mask mask) {
#ifdef __AVX512F__
  const auto* const a = row<typename Space::Register>(warp, i->a);
  if constexpr (Space::space == ptx::Space::shared && sizeof(E) == 4 && elements <= 4) {
    return load_window<elements>(warp.shared, shared_offsets(a, i->immediate), mask, warp.registers,
                                 element_registers<elements>(warp, i, i->d));
  } else if constexpr (is_plain_global<Space> && sizeof(E) > 1 && elements == 1) {
    const int leader = __builtin_ctz(mask);
    const uint64_t first = a[leader] - static_cast<uint64_t>(leader) * sizeof(E);
    if (off_line(a, first, sizeof(E), mask) == 0) {
      copy_in(row<E>(warp, i->d), reinterpret_cast<const std::byte*>(first + static_cast<uint64_t>(i->immediate)),
              mask);
      return true;
    }
    if (off_line(a, a[leader], 0, mask) != 0) return false;
    E value;
    std::memcpy(&value, reinterpret_cast<const void*>(a[leader] + static_cast<uint64_t>(i->immediate)), sizeof(E));
    Row<E> all;
    for (int lane = 0; lane < 32; ++lane) all.lane[lane] = value;
    copy_in(row<E>(warp, i->d), reinterpret_cast<const std::byte*>(all.lane), mask);
    return true;
  }
#endif
  return false;
}

template <class Space, class E, int elements>
bool store_fast([[maybe_unused]] Warp& warp, [[maybe_unused]] const Instruction* i, [[maybe_unused]] Mask mask) {
#ifdef __AVX512F__
  if constexpr (sizeof(E) > 1 && elements == 1) {
    const auto* const a = row<typename Space::Register>(warp, i->a);
    const int leader = __builtin_ctz(mask);
    const auto before = static_cast<uint64_t>(leader) * sizeof(E);
    if constexpr (Space::space == ptx::Space::shared) {
      const auto first = static_cast<uint32_t>(a[leader] + static_cast<uint64_t>(i->immediate) - before);
      if (off_line(shared_offsets(a, i->immediate), first, sizeof(E), mask) != 0) return false;
      copy_out(warp.shared + static_cast<int32_t>(first), row<E>(warp, i->b), mask);
      return true;
    } else if constexpr (is_plain_global<Space>) {
      if (off_line(a, a[leader] - before, sizeof(E), mask) != 0) return false;
      const uint64_t first = a[leader] - before + static_cast<uint64_t>(i->immediate);
      copy_out(reinterpret_cast<std::byte*>(first), row<E>(warp, i->b), mask);
      return true;
    }
  }
#endif
  return false;
}

/// Any pattern, any registers.
template <class Space, class E, int elements>
[[gnu::noinline]] void load_general(Warp& warp, const Instruction* i, Mask mask) {
  Addresses<typename Space::Offset> addresses;
  Space::locate(warp, i, addresses);
  const uint32_t* const registers = element_registers<elements>(warp, i, i->d);
  const bool direct = i->c == sizeof(E);
  Row<E> scratch[elements];
  E* to[elements];
  for (int k = 0; k < elements; ++k) to[k] = direct ? row<E>(warp, registers[k]) : scratch[k].lane;
  if constexpr (std::is_same_v<Space, StrongSpace>) {
    load_atomically<E, elements>(addresses, mask, to);
  } else if (mask == full_mask) {
    load_all<E, elements>(addresses, to);
  } else {
    load_some<E, elements>(addresses, mask, to);
  }
  if (direct) return;
  for (int k = 0; k < elements; ++k) extend_into(warp, registers[k], scratch[k].lane, mask, i->c);
}

template <class Space, class E, int elements, bool inspected>
const Instruction* load_from(Warp& warp, const Instruction* i) {
  const Mask mask = guarded(warp, i);
  if constexpr (inspected) {
    const bool settled = is_plain_global<Space> && mask != 0 && is_settled_line(warp, i, mask, sizeof(E) * elements);
    if (!settled && !inspect<Space>(warp, i, mask, sizeof(E) * elements, AccessKind::load)) return nullptr;
  }
  if (mask == 0) return i + 1;
  if (i->c == sizeof(E) && load_fast<Space, E, elements>(warp, i, mask)) return i + 1;
  load_general<Space, E, elements>(warp, i, mask);
  return i + 1;
}

template <class Space, class E, int elements>
[[gnu::noinline]] void store_general(Warp& warp, const Instruction* i, Mask mask) {
  Addresses<typename Space::Offset> addresses;
  Space::locate(warp, i, addresses);
  const uint32_t* const registers = element_registers<elements>(warp, i, i->b);
  const bool direct = i->c == sizeof(E);
  Row<E> scratch[elements];
  const E* from[elements];
  for (int k = 0; k < elements; ++k) {
    if (!direct) cut_from(warp, registers[k], scratch[k].lane, i->c);
    from[k] = direct ? row<E>(warp, registers[k]) : scratch[k].lane;
  }
  if constexpr (std::is_same_v<Space, StrongSpace>) {
    store_atomically<E, elements>(addresses, mask, from);
  } else if (mask == full_mask) {
    store_all<E, elements>(addresses, from);
  } else {
    store_some<E, elements>(addresses, mask, from);
  }
}

/// Copies to `to` the value that a lane is about to store, for the checks.
template <class E, int elements>
void value_of(const Warp& warp, const Instruction* i, int lane, std::byte* to) {
  const uint32_t* const registers = element_registers<elements>(warp, i, i->b);
  for (int k = 0; k < elements; ++k) {
    // Little-endian: the element's bytes come first in the register, however wide that is.
    const std::byte* const from = warp.registers + registers[k] + lane * static_cast<int>(i->c & register_bytes_mask);
    std::memcpy(to + k * sizeof(E), from, sizeof(E));
  }
}

template <class Space, class E, int elements, bool inspected>
const Instruction* store_to(Warp& warp, const Instruction* i) {
  const Mask mask = guarded(warp, i);
  if constexpr (inspected) {
    const AccessDetails details = {.value_of = value_of<E, elements>};
    if (!inspect<Space>(warp, i, mask, sizeof(E) * elements, AccessKind::store, details)) return nullptr;
  }
  if (mask == 0) return i + 1;
  if (i->c == sizeof(E) && store_fast<Space, E, elements>(warp, i, mask)) return i + 1;
  store_general<Space, E, elements>(warp, i, mask);
  return i + 1;
}

/// A kernel parameter: the same for all threads.
template <class E, int elements>
const Instruction* load_parameter(Warp& warp, const Instruction* i) {
  const Mask mask = guarded(warp, i);
  E value[elements];
  std::memcpy(value, warp.block->parameters + i->immediate, sizeof(value));
  const uint32_t* const registers = element_registers<elements>(warp, i, i->d);
  for (int k = 0; k < elements; ++k) {
    Row<E> all;
    for (int lane = 0; lane < 32; ++lane) all.lane[lane] = value[k];
    if (i->c == sizeof(E)) {
      blend(row<E>(warp, registers[k]), all.lane, mask);
    } else {
      extend_into(warp, registers[k], all.lane, mask, i->c);
    }
  }
  return i + 1;
}

/// Calls use.template operator()<E, elements>() for the elements' size and number.
template <class Use>
HandlerPair with_elements(uint32_t bytes, uint32_t elements, Use use) {
  switch (bytes * 16 + elements) {
    case 0x11:
      return use.template operator()<uint8_t, 1>();
    case 0x12:
      return use.template operator()<uint8_t, 2>();
    case 0x14:
      return use.template operator()<uint8_t, 4>();
    case 0x21:
      return use.template operator()<uint16_t, 1>();
    case 0x22:
      return use.template operator()<uint16_t, 2>();
    case 0x24:
      return use.template operator()<uint16_t, 4>();
    case 0x41:
      return use.template operator()<uint32_t, 1>();
    case 0x42:
      return use.template operator()<uint32_t, 2>();
    case 0x44:
      return use.template operator()<uint32_t, 4>();
    case 0x48:
      return use.template operator()<uint32_t, 8>();
    case 0x81:
      return use.template operator()<uint64_t, 1>();
    case 0x82:
      return use.template operator()<uint64_t, 2>();
    case 0x84:
      return use.template operator()<uint64_t, 4>();
    default:
      return {};
  }
}

template <class Space>
HandlerPair loads(const Access& access) {
  return with_elements(access.bytes, access.elements, []<class E, int n>() -> HandlerPair {
    return {load_from<Space, E, n, false>, load_from<Space, E, n, true>};
  });
}

template <class Space>
HandlerPair stores(const Access& access) {
  return with_elements(access.bytes, access.elements, []<class E, int n>() -> HandlerPair {
    return {store_to<Space, E, n, false>, store_to<Space, E, n, true>};
  });
}

}  // namespace

HandlerPair load(const Access& access) {
  const bool narrow = access.address_bytes == 4;
  switch (access.space) {
    case ptx::Space::param:
      return with_elements(access.bytes, access.elements, []<class E, int n>() -> HandlerPair {
        return {load_parameter<E, n>, load_parameter<E, n>};
      });
    case ptx::Space::shared:
      return narrow ? loads<SharedSpace<uint32_t>>(access) : loads<SharedSpace<uint64_t>>(access);
    case ptx::Space::local:
      return narrow ? loads<LocalSpace<uint32_t>>(access) : loads<LocalSpace<uint64_t>>(access);
    case ptx::Space::constant:
      if (narrow) return {};
      return loads<ConstantSpace>(access);
    default:
      if (narrow) return {};
      return access.strong ? loads<StrongSpace>(access) : loads<GlobalSpace>(access);
  }
}

HandlerPair store(const Access& access) {
  const bool narrow = access.address_bytes == 4;
  switch (access.space) {
    case ptx::Space::param:
    case ptx::Space::constant:
      return {};
    case ptx::Space::shared:
      return narrow ? stores<SharedSpace<uint32_t>>(access) : stores<SharedSpace<uint64_t>>(access);
    case ptx::Space::local:
      return narrow ? stores<LocalSpace<uint32_t>>(access) : stores<LocalSpace<uint64_t>>(access);
    default:
      if (narrow) return {};
      return access.strong ? stores<StrongSpace>(access) : stores<GlobalSpace>(access);
  }
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
