#include "ptx/type.h"

#include <algorithm>
#include <array>

namespace kiln::emulator::ptx {
namespace {

struct Entry {
  std::string_view name;
  Type type;
  uint32_t bytes;
};

constexpr std::array entries = {
    Entry{"pred", Type::pred, 0},     Entry{"b8", Type::b8, 1},         Entry{"b16", Type::b16, 2},
    Entry{"b32", Type::b32, 4},       Entry{"b64", Type::b64, 8},       Entry{"b128", Type::b128, 16},
    Entry{"u8", Type::u8, 1},         Entry{"u16", Type::u16, 2},       Entry{"u32", Type::u32, 4},
    Entry{"u64", Type::u64, 8},       Entry{"u16x2", Type::u16x2, 4},   Entry{"s8", Type::s8, 1},
    Entry{"s16", Type::s16, 2},       Entry{"s32", Type::s32, 4},       Entry{"s64", Type::s64, 8},
    Entry{"s16x2", Type::s16x2, 4},   Entry{"f16", Type::f16, 2},       Entry{"f16x2", Type::f16x2, 4},
    Entry{"bf16", Type::bf16, 2},     Entry{"bf16x2", Type::bf16x2, 4}, Entry{"tf32", Type::tf32, 4},
    Entry{"f32", Type::f32, 4},       Entry{"f32x2", Type::f32x2, 8},   Entry{"f64", Type::f64, 8},
    Entry{"e4m3", Type::e4m3, 1},     Entry{"e4m3x2", Type::e4m3x2, 2}, Entry{"e5m2", Type::e5m2, 1},
    Entry{"e5m2x2", Type::e5m2x2, 2}, Entry{"none", Type::none, 0},
};

const Entry& entry(Type type) {
  return *std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.type == type; });
}

}  // namespace

std::optional<Type> type_from(std::string_view word) {
  for (const Entry& e : entries) {
    if (e.name == word && e.type != Type::none) return e.type;
  }
  return std::nullopt;
}

std::string_view name(Type type) {
  return entry(type).name;
}
uint32_t bytes(Type type) {
  return entry(type).bytes;
}
bool is_signed(Type type) {
  return type >= Type::s8 && type <= Type::s16x2;
}
bool is_integer(Type type) {
  return type >= Type::b8 && type <= Type::s16x2;
}
bool is_floating(Type type) {
  return type >= Type::f16;
}

std::optional<Space> space_from(std::string_view word) {
  if (const size_t scope = word.find("::"); scope != std::string_view::npos) {
    const std::string_view detail = word.substr(scope + 2);
    word = word.substr(0, scope);
    // A cluster is one block here, whose shared memory the cluster's window consists of.
    const bool known = word == "shared" ? detail == "cta" || detail == "cluster"
                                        : word == "param" && (detail == "entry" || detail == "func");
    if (!known) return std::nullopt;
  }
  if (word == "global") return Space::global;
  if (word == "shared") return Space::shared;
  if (word == "local") return Space::local;
  if (word == "const") return Space::constant;
  if (word == "param") return Space::param;
  return std::nullopt;
}

}  // namespace kiln::emulator::ptx
