#include "core_evaluate.h"

#include <cmath>
#include <limits>

namespace kiln::emulator::test {
namespace {

constexpr uint64_t untouched = 0xABCD1234DEADBEEFu;
constexpr const char* names[] = {"a", "b", "c"};

std::string load(const std::string& name, size_t parameter, uint32_t bytes) {
  const std::string bits = std::to_string(8 * bytes);
  return "ld.param.u64 %at, [p" + std::to_string(parameter) + "];\nadd.u64 %at, %at, %offset;\nld.global.b" + bits +
         " " + name + ", [%at];\n";
}

/// %G in the instruction stands for the guard; without one it goes in front.
std::string with_guard(std::string text, bool guarded) {
  const std::string guard = guarded ? "@p " : "";
  if (text.find("%G") == std::string::npos) return guard + text;
  for (size_t at; (at = text.find("%G")) != std::string::npos;) text.replace(at, 2, guard);
  return text;
}

std::string kernel_text(const Evaluation& e, bool guarded) {
  const auto bits = [](uint32_t bytes) { return ".b" + std::to_string(8 * bytes); };
  std::string text =
      ".version 8.8\n.target sm_100\n.address_size 64\n.visible .entry k(.param .u64 p0, .param .u64 p1, "
      ".param .u64 p2, .param .u64 p3, .param .u32 n)\n{\n.reg .pred p, %done, q, q2;\n.reg .b32 %i, %t, %n, w, "
      "w2;\n.reg .b16 h, h2;\n"
      ".reg .b64 %at, %offset, l;\n.reg " +
      bits(e.result_bytes) + " d;\n";
  for (size_t k = 0; k < e.source_bytes.size(); ++k) text += ".reg " + bits(e.source_bytes[k]) + " " + names[k] + ";\n";
  text +=
      "mov.u32 %i, %ctaid.x;\nmov.u32 %t, %tid.x;\nmad.lo.u32 %i, %i, 128, %t;\nld.param.u32 %n, [n];\n"
      "setp.ge.u32 %done, %i, %n;\n@%done bra END;\nand.b32 %t, %i, 1;\nsetp.eq.u32 p, %t, 1;\n"
      "mul.wide.u32 %offset, %i, 8;\n";
  for (size_t k = 0; k < e.source_bytes.size(); ++k) text += load(names[k], k + 1, e.source_bytes[k]);
  text += load("d", 0, e.result_bytes) + with_guard(e.instruction, guarded) +
          "\nld.param.u64 %at, [p0];\nadd.u64 %at, %at, %offset;\nst.global" + bits(e.result_bytes) +
          " [%at], d;\nEND: ret;\n}\n";
  return text;
}

std::vector<uint64_t> run_once(const std::string& text, const std::vector<std::vector<uint64_t>>& sources,
                               const UnitTable& units) {
  const auto program = load_program(text, units);
  const size_t n = sources.front().size();
  Buffer<uint64_t> out(n, untouched);
  std::vector<Region> regions = {out.region()};
  uint64_t address[3] = {};
  for (size_t k = 0; k < sources.size(); ++k) {
    address[k] = reinterpret_cast<uint64_t>(sources[k].data());
    regions.push_back({address[k], address[k] + 8 * n, "source"});
  }
  const Arguments arguments(out.address(), address[0], address[1], address[2], static_cast<uint32_t>(n));
  LaunchRequest r;
  r.kernel = find_kernel(*program, "k");
  r.grid = {static_cast<uint32_t>((n + 127) / 128)};
  r.block = {128};
  r.parameters = arguments.bytes();
  r.memory = std::make_shared<RegionTable>(RegionTable::Contents{.regions = regions});
  const LaunchOutcome outcome = run(r);
  EXPECT_FALSE(outcome.fault) << outcome.fault->report;
  return out.values();
}

}  // namespace

std::vector<uint64_t> evaluate_bits(const Evaluation& e, const std::vector<std::vector<uint64_t>>& sources,
                                    const UnitTable& units) {
  const std::vector<uint64_t> all = run_once(kernel_text(e, false), sources, units);
  const std::vector<uint64_t> odd = run_once(kernel_text(e, true), sources, units);
  for (size_t k = 0; k < all.size(); ++k) {
    if (odd[k] == (k % 2 == 1 ? all[k] : untouched)) continue;
    ADD_FAILURE() << units.name << ": " << e.instruction << " under a guard that is " << (k % 2 == 1 ? "true" : "false")
                  << " in thread " << k;
    break;
  }
  return all;
}

template <>
std::vector<float> awkward<float>() {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  return {0.0f,          -0.0f,         1.0f,          -1.0f,          0.5f,        1.5f,     2.5f,       -2.5f,
          3.14159274f,   1e-3f,         1e10f,         -3e5f,          255.5f,      65504.0f, 65519.9f,   65520.0f,
          2147483520.0f, 2147483648.0f, 4294967040.0f, 1.00000012f,    0.33333334f, 0x1p-24f, 0x1.8p-25f, 0x1p-126f,
          -0x1p-127f,    0x1p-149f,     3.4028235e38f, -3.4028235e38f, inf,         -inf,     nan};
}

template <>
std::vector<double> awkward<double>() {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  return {0.0,
          -0.0,
          1.0,
          -1.0,
          0.5,
          1.5,
          -2.5,
          3.141592653589793,
          1e-3,
          1e10,
          1e300,
          -3e5,
          0x1.000001p0,
          0x1.0000010000001p0,
          65519.999999999,
          0x1p-24,
          9007199254740993.0,
          9.3e18,
          1.9e19,
          0x1p-1022,
          0x1p-1074,
          1.7976931348623157e308,
          inf,
          -inf,
          nan};
}

}  // namespace kiln::emulator::test
