#include "product_forms.h"

#include <bit>
#include <cmath>

namespace kiln::testing_support::mma {
namespace {

// The ISA's formulas for element i of a lane's fragment.
Place place_in_a(const Form& form, uint32_t lane, uint32_t i) {
  const uint32_t group = lane / 4, in_group = lane % 4;
  if (form.rows == 8) return {group, in_group * 4 + i};
  if (form.bits() == 32) return {i % 2 == 0 ? group : group + 8, i < 2 ? in_group : in_group + 4};
  if (form.bits() == 16) {
    return {i < 2 || (i >= 4 && i < 6) ? group : group + 8, in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
  }
  return {i < 4 || (i >= 8 && i < 12) ? group : group + 8, in_group * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
}
Place place_in_b(const Form& form, uint32_t lane, uint32_t i) {
  const uint32_t group = lane / 4, in_group = lane % 4;
  if (form.bits() == 32) return {i == 0 ? in_group : in_group + 4, group};
  if (form.bits() == 16) return {in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0), group};
  return {in_group * 4 + (i & 3) + (i >= 4 ? 16 : 0), group};
}

std::string vector_text(uint32_t first, uint32_t count) {
  std::string text = "{";
  for (uint32_t k = 0; k < count; ++k) text += (k == 0 ? "%r" : ", %r") + std::to_string(first + k);
  return text + "}";
}

/// "ld.global" or "st.global" of a fragment's registers, parameter `index`.
std::string move_text(bool store, uint32_t index, uint32_t first, uint32_t count) {
  std::string text = "ld.param.u64 %rd0, [p" + std::to_string(index) + "];\nmul.lo.u32 %r30, %r2, " +
                     std::to_string(count * lanes) + ";\nadd.u32 %r30, %r30, %r1;\nmad.wide.u32 %rd0, %r30, 4, %rd0;\n";
  for (uint32_t k = 0; k < count; ++k) {
    const std::string at = "[%rd0+" + std::to_string(128 * k) + "]", r = "%r" + std::to_string(first + k);
    text += store ? "st.global.b32 " + at + ", " + r + ";\n" : "ld.global.b32 " + r + ", " + at + ";\n";
  }
  return text;
}

/// Puts element i of a lane's fragment of so many registers in its place.
void put(std::vector<uint32_t>& words, size_t first_register, uint32_t lane, uint32_t i, uint32_t bits,
         uint32_t element_bits) {
  const uint32_t in_word = 32 / element_bits;
  words[(first_register + i / in_word) * lanes + lane] |= bits << (element_bits * (i % in_word));
}

}  // namespace

std::vector<Form> all_forms() {
  std::vector<Form> forms = {{"m16n8k8", "f16", "f16", "f16", 16, 8},   {"m16n8k8", "f16", "f16", "f32", 16, 8},
                             {"m16n8k16", "f16", "f16", "f16", 16, 16}, {"m16n8k16", "f16", "f16", "f32", 16, 16},
                             {"m16n8k8", "bf16", "bf16", "f32", 16, 8}, {"m16n8k16", "bf16", "bf16", "f32", 16, 16},
                             {"m16n8k4", "tf32", "tf32", "f32", 16, 4}, {"m16n8k8", "tf32", "tf32", "f32", 16, 8}};
  for (const std::string a : {"s8", "u8"}) {
    for (const std::string b : {"s8", "u8"}) {
      for (const bool saturates : {false, true}) {
        forms.push_back({"m8n8k16", a, b, "s32", 8, 16, saturates});
        forms.push_back({"m16n8k16", a, b, "s32", 16, 16, saturates});
        forms.push_back({"m16n8k32", a, b, "s32", 16, 32, saturates});
      }
    }
  }
  for (const std::string a : {"e4m3", "e5m2"}) {
    for (const std::string b : {"e4m3", "e5m2"}) {
      for (const std::string sum : {"f16", "f32"}) {
        forms.push_back({"m16n8k16", a, b, sum, 16, 16});
        forms.push_back({"m16n8k32", a, b, sum, 16, 32});
      }
    }
  }
  return forms;
}

Place place_in_sums(uint32_t lane, uint32_t i) {
  return {lane / 4 + (i >= 2 ? 8 : 0), lane % 4 * 2 + (i & 1)};
}

std::string product_text(const Form& form) {
  return form.opcode() + " " + vector_text(d_first, form.sum_registers()) + ", " +
         vector_text(a_first, form.a_registers()) + ", " + vector_text(b_first, form.b_registers()) + ", " +
         vector_text(c_first, form.sum_registers()) + ";\n";
}

int first_target(const Form& form) {
  if (form.a == "e4m3" || form.a == "e5m2") return 89;
  return form.rows == 8 || (form.a == "f16" && form.k == 8) ? 75 : 80;
}

std::string kernel_text(const Form& form, int target) {
  const bool is_fp8 = first_target(form) == 89, is_late = is_fp8 && (form.k == 16 || form.half_sums());
  const std::string parameters = ".param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3";
  return std::string(".version ") +
         (is_late  ? "8.7"
          : is_fp8 ? "8.4"
                   : "8.0") +
         "\n.target sm_" + std::to_string(target) + "\n.address_size 64\n.visible .entry k(" + parameters +
         ")\n{\n.reg .b32 %r<32>;\n.reg .b64 %rd<1>;\n" +
         "mov.u32 %r0, %tid.x;\nmov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmad.lo.u32 %r0, %r3, %r4, %r0;\n"
         "and.b32 %r1, %r0, 31;\nshr.u32 %r2, %r0, 5;\n" +
         move_text(false, 0, a_first, form.a_registers()) + move_text(false, 1, b_first, form.b_registers()) +
         move_text(false, 2, c_first, form.sum_registers()) + product_text(form) +
         move_text(true, 3, d_first, form.sum_registers()) + "ret;\n}\n";
}

Fragments fragments_of(const Form& form, const std::vector<Tile>& tiles) {
  Fragments f;
  f.a.resize(tiles.size() * form.a_registers() * lanes);
  f.b.resize(tiles.size() * form.b_registers() * lanes);
  f.c.resize(tiles.size() * form.sum_registers() * lanes);
  for (size_t t = 0; t < tiles.size(); ++t) {
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      for (uint32_t i = 0; i < form.in_word() * form.a_registers(); ++i) {
        const Place at = place_in_a(form, lane, i);
        put(f.a, t * form.a_registers(), lane, i, tiles[t].a[at.row * form.k + at.column], form.bits());
      }
      for (uint32_t i = 0; i < form.in_word() * form.b_registers(); ++i) {
        const Place at = place_in_b(form, lane, i);
        put(f.b, t * form.b_registers(), lane, i, tiles[t].b[at.row * columns + at.column], form.bits());
      }
      for (uint32_t i = 0; i < form.lane_sums(); ++i) {
        const Place at = place_in_sums(lane, i);
        put(f.c, t * form.sum_registers(), lane, i, tiles[t].c[at.row * columns + at.column],
            form.half_sums() ? 16 : 32);
      }
    }
  }
  return f;
}

uint32_t result_at(const Form& form, const Fragments& f, size_t tile, uint32_t lane, uint32_t i) {
  if (!form.half_sums()) return f.d[(tile * form.sum_registers() + i) * lanes + lane];
  return f.d[(tile * form.sum_registers() + i / 2) * lanes + lane] >> (16 * (i % 2)) & 0xFFFF;
}

double value_of(const std::string& type, uint32_t bits) {
  if (type == "tf32") return std::bit_cast<float>(bits & ~0x1FFFu);
  if (type == "f32") return std::bit_cast<float>(bits);
  if (type == "s8") return static_cast<int8_t>(bits);
  if (type == "u8") return static_cast<uint8_t>(bits);
  if (type == "s32") return static_cast<int32_t>(bits);
  const Landmarks marks = landmarks_of(type);
  const uint32_t magnitude = bits & (marks.sign - 1), fraction = magnitude & marks.fraction;
  const double sign = (bits & marks.sign) != 0 ? -1 : 1;
  if (magnitude >= marks.infinity) return magnitude == marks.infinity && marks.infinity != 0x7F ? sign * INFINITY : NAN;
  const int bits_of_fraction = std::popcount(marks.fraction);
  const int bias = static_cast<int>(marks.one >> bits_of_fraction);
  const auto exponent = static_cast<int>(magnitude >> bits_of_fraction);
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - bias - bits_of_fraction)
                               : std::ldexp(marks.fraction + 1 + fraction, exponent - bias - bits_of_fraction));
}

Landmarks landmarks_of(const std::string& type) {
  if (type == "f16") return {0x3C00, 0x0400, 0x7C00, 0x3FF, 0x8000};
  if (type == "bf16") return {0x3F80, 0x0080, 0x7F80, 0x7F, 0x8000};
  if (type == "e4m3") return {0x38, 0x08, 0x7F, 7, 0x80};
  if (type == "e5m2") return {0x3C, 0x04, 0x7C, 3, 0x80};
  return {0x3F800000, 0x00800000, 0x7F800000, 0x7FFFFF, 0x80000000};
}

}  // namespace kiln::testing_support::mma
