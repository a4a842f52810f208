// mov between a register and the vector of its parts, lowest part first.
#include "lanes.h"
#include "units.h"

namespace kiln::emulator::KILN_EMULATOR_ISA {
namespace {

template <class Whole, class Part>
inline constexpr int parts_of = sizeof(Whole) / sizeof(Part);

template <class Whole, class Part>
const Instruction* pack_row(Warp& warp, const Instruction* i) {
  Result<Whole> result(warp, i->d, guarded(warp, i));
  Row<Whole> whole;
  for (int lane = 0; lane < 32; ++lane) whole.lane[lane] = 0;
  for (int k = 0; k < parts_of<Whole, Part>; ++k) {
    const Part* const part = row<Part>(warp, warp.lists[i->extra + static_cast<uint32_t>(k)]);
    for (int lane = 0; lane < 32; ++lane) whole.lane[lane] |= static_cast<Whole>(part[lane]) << (8 * sizeof(Part) * k);
  }
  std::memcpy(result.data(), whole.lane, sizeof(whole.lane));
  result.finish();
  return i + 1;
}

template <class Whole, class Part>
const Instruction* unpack_row(Warp& warp, const Instruction* i) {
  const Mask mask = guarded(warp, i);
  Row<Whole> whole;
  std::memcpy(whole.lane, row<Whole>(warp, i->a), sizeof(whole.lane));
  for (int k = 0; k < parts_of<Whole, Part>; ++k) {
    Row<Part> part;
    for (int lane = 0; lane < 32; ++lane)
      part.lane[lane] = static_cast<Part>(whole.lane[lane] >> (8 * sizeof(Part) * k));
    blend(row<Part>(warp, warp.lists[i->extra + static_cast<uint32_t>(k)]), part.lane, mask);
  }
  return i + 1;
}

}  // namespace

Handler pack(uint32_t part_bytes, uint32_t parts) {
  if (part_bytes == 2 && parts == 2) return pack_row<uint32_t, uint16_t>;
  if (part_bytes == 2 && parts == 4) return pack_row<uint64_t, uint16_t>;
  if (part_bytes == 4 && parts == 2) return pack_row<uint64_t, uint32_t>;
  return nullptr;
}

Handler unpack(uint32_t part_bytes, uint32_t parts) {
  if (part_bytes == 2 && parts == 2) return unpack_row<uint32_t, uint16_t>;
  if (part_bytes == 2 && parts == 4) return unpack_row<uint64_t, uint16_t>;
  if (part_bytes == 4 && parts == 2) return unpack_row<uint64_t, uint32_t>;
  return nullptr;
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
