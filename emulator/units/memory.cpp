// Loads and stores.
#include "units/addresses.h"
#include "units/lanes.h"
#include "units/units.h"
#include "units/vector_access.h"

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

/// The register of element `k`.
template <int elements>
uint32_t element_register(const Warp& warp, const Instruction* i, int k, uint32_t single) {
  return elements == 1 ? single : warp.lists[i->extra + static_cast<uint32_t>(k)];
}

template <class Space, class E, int elements, bool inspected>
const Instruction* load_from(Warp& warp, const Instruction* i) {
  const Mask mask = guarded(warp, i);
  if (mask == 0) return i + 1;
  Addresses<typename Space::Offset> addresses;
  Space::locate(warp, i, addresses);
  if constexpr (inspected) {
    if (!inspect<Space>(warp, i, mask, addresses, sizeof(E) * elements, AccessKind::load)) return nullptr;
  }
  const bool direct = i->c == sizeof(E);
  Row<E> scratch[elements];
  E* to[elements];
  for (int k = 0; k < elements; ++k) {
    to[k] = direct ? row<E>(warp, element_register<elements>(warp, i, k, i->d)) : scratch[k].lane;
  }
  if (mask == full_mask) {
    load_all<E, elements>(addresses, to);
  } else {
    load_some<E, elements>(addresses, mask, to);
  }
  if (!direct) {
    for (int k = 0; k < elements; ++k) {
      extend_into(warp, element_register<elements>(warp, i, k, i->d), scratch[k].lane, mask, i->c);
    }
  }
  return i + 1;
}

template <class Space, class E, int elements, bool inspected>
const Instruction* store_to(Warp& warp, const Instruction* i) {
  const Mask mask = guarded(warp, i);
  if (mask == 0) return i + 1;
  Addresses<typename Space::Offset> addresses;
  Space::locate(warp, i, addresses);
  if constexpr (inspected) {
    if (!inspect<Space>(warp, i, mask, addresses, sizeof(E) * elements, AccessKind::store)) return nullptr;
  }
  const bool direct = i->c == sizeof(E);
  Row<E> scratch[elements];
  const E* from[elements];
  for (int k = 0; k < elements; ++k) {
    const uint32_t offset = element_register<elements>(warp, i, k, i->b);
    if (!direct) cut_from(warp, offset, scratch[k].lane, i->c);
    from[k] = direct ? row<E>(warp, offset) : scratch[k].lane;
  }
  if (mask == full_mask) {
    store_all<E, elements>(addresses, from);
  } else {
    store_some<E, elements>(addresses, mask, from);
  }
  return i + 1;
}

/// A kernel parameter: the same for all threads.
template <class E, int elements>
const Instruction* load_parameter(Warp& warp, const Instruction* i) {
  const Mask mask = guarded(warp, i);
  E value[elements];
  std::memcpy(value, warp.block->parameters + i->immediate, sizeof(value));
  for (int k = 0; k < elements; ++k) {
    Row<E> all;
    for (int lane = 0; lane < 32; ++lane) all.lane[lane] = value[k];
    const uint32_t offset = element_register<elements>(warp, i, k, i->d);
    if (i->c == sizeof(E)) {
      blend(row<E>(warp, offset), all.lane, mask);
    } else {
      extend_into(warp, offset, all.lane, mask, i->c);
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
    default:
      return narrow ? HandlerPair{} : loads<GlobalSpace>(access);
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
      return narrow ? HandlerPair{} : stores<GlobalSpace>(access);
  }
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
