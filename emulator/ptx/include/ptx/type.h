// PTX's fundamental types and state spaces.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace kiln::emulator::ptx {

// clang-format off
enum class Type : uint8_t {
  none, pred,
  b8, b16, b32, b64, b128,
  u8, u16, u32, u64, u16x2,
  s8, s16, s32, s64, s16x2,
  f16, f16x2, bf16, bf16x2, tf32, f32, f32x2, f64,
  e4m3, e4m3x2, e5m2, e5m2x2,
};
// clang-format on

enum class Space : uint8_t { generic, global, shared, local, constant, param };

/// "f32" -> Type::f32; nullopt for a word that names no type.
std::optional<Type> type_from(std::string_view word);
std::string_view name(Type type);

/// Bytes of one value; 0 for pred and none.
uint32_t bytes(Type type);

bool is_signed(Type type);    ///< s8 ... s64, s16x2
bool is_integer(Type type);   ///< u*, s* and b*
bool is_floating(Type type);  ///< f16 ... f64, tf32, fp8

/// "global", "shared", "shared::cta", "local", "const", "param", "param::entry", ...; nullopt for other words.
std::optional<Space> space_from(std::string_view word);

}  // namespace kiln::emulator::ptx
