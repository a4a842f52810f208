// Matrix products that stand one behind the other run as one instruction, which unpacks shared factors once: that shows
// in nothing but time.
#include <random>

#include "core_strict_fixture.h"
#include "machine/program.h"
#include "units/unit_table.h"

namespace kiln::emulator::test::core_product_runs_test {
namespace {

using testing::HasSubstr;

constexpr uint32_t lanes = 32, registers = 24;

/// So many registers of those there are, all different.
std::string draw_vector(std::mt19937& random, uint32_t count) {
  std::vector<uint32_t> all(registers);
  for (uint32_t r = 0; r < registers; ++r) all[r] = r;
  std::string text = "{";
  for (uint32_t k = 0; k < count; ++k) {
    std::swap(all[k], all[k + random() % (registers - k)]);
    text += (k == 0 ? "%r" : ", %r") + std::to_string(all[k]);
  }
  return text + "}";
}

/// A product of random registers, most of whose factors are among `factors`.
std::string draw_product(std::mt19937& random, const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const std::string sums = draw_vector(random, 4);
  return "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " + draw_vector(random, 4) + ", " + a[random() % a.size()] +
         ", " + b[random() % b.size()] + ", " + sums + ";\n";
}

/// Contents of the registers after `products`, with `between` behind each.
std::vector<uint32_t> after(const std::vector<std::string>& products, const std::string& between,
                            const UnitTable& units) {
  std::string body = "mov.u32 %r30, %tid.x;\nld.param.u64 %rd0, [p0];\nmad.wide.u32 %rd0, %r30, 4, %rd0;\n";
  const auto place = [](uint32_t r) { return "[%rd0+" + std::to_string(4 * lanes * r) + "]"; };
  for (uint32_t r = 0; r < registers; ++r) body += "ld.global.b32 %r" + std::to_string(r) + ", " + place(r) + ";\n";
  for (const std::string& product : products) body += product + between;
  for (uint32_t r = 0; r < registers; ++r) body += "st.global.b32 " + place(r) + ", %r" + std::to_string(r) + ";\n";
  std::mt19937 random(7);
  Buffer<uint32_t> memory(size_t{lanes} * registers);
  for (uint32_t& word : memory.values()) {  // pairs of small halves, which are small floats, too
    word = (static_cast<uint32_t>(random()) & 0x83FF83FFu) | 0x3C003C00u;
  }
  const auto program = load_program(ptx_kernel(body), units);
  const Arguments arguments(memory.address(), uint64_t{0}, uint64_t{0}, uint64_t{0});
  LaunchRequest request;
  request.kernel = find_kernel(*program, "k");
  request.block = {lanes};
  request.parameters = arguments.bytes();
  request.memory = std::make_shared<RegionTable>(RegionTable::Contents{.regions = {memory.region()}});
  EXPECT_FALSE(run(request).fault);
  return memory.values();
}

TEST(ProductRuns, AreAsTheirProductsOneByOne) {
  // Random registers: results overwrite factors that were unpacked, and that later products want again.
  std::mt19937 random(38);
  for (const auto& [a_count, b_count] : std::vector<std::pair<uint32_t, uint32_t>>{{1, 1}, {2, 3}, {4, 8}, {6, 12}}) {
    for (int round = 0; round < 10; ++round) {
      std::vector<std::string> a, b, products;
      for (uint32_t k = 0; k < a_count; ++k) a.push_back(draw_vector(random, 4));
      for (uint32_t k = 0; k < b_count; ++k) b.push_back(draw_vector(random, 2));
      for (int k = 0; k < 20; ++k) products.push_back(draw_product(random, a, b));
      for (const UnitTable* const units : unit_tables()) {
        EXPECT_EQ(after(products, "", *units), after(products, "mov.b32 %r31, %r30;\n", *units)) << units->name;
      }
    }
  }
}

TEST(ProductRuns, CountEachProduct) {
  std::string body;
  for (int k = 0; k < 5; ++k) {
    body +=
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1}, {%r2}, "
        "{%f0, %f1, %f2, %f3};\n";
  }
  Module module(ptx_kernel(body));
  const Counters counters =
      module.launch("k", {1}, {lanes}, Arguments(uint64_t{0}, uint64_t{0}, uint64_t{0}, uint64_t{0}));
  EXPECT_EQ(counters.tensor, 5u);
  EXPECT_EQ(counters.tensor_multiply_adds, uint64_t{5} * 16 * 8 * 8);
}

TEST(ProductRuns, FollowUnwrittenValuesFromProductToProduct) {
  const std::string products =
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r8, %r9}, {%r10}, {%f4, %f5, %f6, "
      "%f7};\n"
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f8, %f9, %f10, %f11}, {%r9, %r9}, {%r10}, {%f0, %f1, %f2, "
      "%f3};"
      "\n";
  std::string zeros = "mov.b32 %r9, 0;\nmov.b32 %r10, 0;\n";
  for (int r = 4; r < 8; ++r) zeros += "mov.f32 %f" + std::to_string(r) + ", 0f00000000;\n";
  const std::string body = zeros + "ld.shared.b32 %r8, [%r2];\n" + products;  // of rows 0 to 7
  const Fault fault = run_strict({body + "st.global.f32 [%rd0], %f8;", lanes});
  EXPECT_THAT(fault.report, HasSubstr("(uninitialised)"));
  expect_silence({body + "st.global.f32 [%rd0], %f10;", lanes});
}

}  // namespace
}  // namespace kiln::emulator::test::core_product_runs_test
