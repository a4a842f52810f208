// Long sums of matrix products, by the arithmetic of chips, within the bounds of docs/numerics.md.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <random>

#include "core_fixture.h"
#include "core_run_fragments.h"
#include "kiln/reference/convert.h"
#include "kiln/reference/tensor_memory.h"
#include "kiln/reference/tolerance.h"
#include "machine/program.h"

namespace kiln::emulator::test::core_tensor_error_test {
namespace {

using namespace testing_support::mma;
using Memory = std::vector<std::byte>;

constexpr uint32_t rows = 16;

std::string dtype_of(const std::string& type) {
  if (type == "tf32") return "f32";
  return type == "e4m3" || type == "e5m2" ? "f8" + type : type;
}

/// A product of a rows x k and a k x columns matrix by one form of mma, and the request that it serves.
struct Product {
  Form form;
  uint32_t k;
  std::string arithmetic;  // words of the request
  uint32_t promoted = 0;   // instructions after which sums go on in f32; 0: never

  uint32_t element_bytes() const { return form.bits() / 8; }
  uint32_t steps() const { return (k + form.k - 1) / form.k; }
  uint32_t row_bytes() const { return steps() * form.k * element_bytes(); }
  Request request() const {
    const std::string extent = std::to_string(k);
    return Request::parse("gemm a=" + dtype_of(form.a) + ":16x" + extent + " b=" + dtype_of(form.b) + ":" + extent +
                          "x8 c=" + form.sum + ":16x8 " + arithmetic);
  }
};

std::string load_text(const std::string& to, const std::string& base, uint32_t offset) {
  return "ld.global.b32 " + to + ", [" + base + "+" + std::to_string(offset) + "];\n";
}

/// One warp. Parameters: rows of A and columns of B, with zeros up to row_bytes(), and the lanes' sums.
std::string kernel_of(const Product& product) {
  const Form& form = product.form;
  const uint32_t groups = form.b_registers(), sums = form.sum_registers();
  const auto each_sum = [&](const std::function<std::string(const std::string&, const std::string&)>& text) {
    std::string all;
    for (uint32_t i = 0; i < sums; ++i) {
      all += text("%r" + std::to_string(c_first + i), "%r" + std::to_string(24 + i));
    }
    return all;
  };
  std::string body =
      "mov.u32 %r0, %tid.x;\nshr.u32 %r1, %r0, 2;\nand.b32 %r2, %r0, 3;\nshl.b32 %r2, %r2, 2;\n"
      "mad.lo.u32 %r2, %r1, " +
      std::to_string(product.row_bytes()) +
      ", %r2;\ncvt.u64.u32 %rd4, %r2;\n"
      "ld.param.u64 %rd0, [p0];\nld.param.u64 %rd1, [p1];\nadd.u64 %rd0, %rd0, %rd4;\n"
      "add.u64 %rd1, %rd1, %rd4;\nmov.u32 %r3, 0;\nmov.u32 %r4, 0;\n";
  body += each_sum([](const std::string& sum, const std::string& total) {
    return "mov.b32 " + sum + ", 0;\nmov.b32 " + total + ", 0;\n";
  });
  body += "next:\n";
  for (uint32_t g = 0; g < groups; ++g) {
    body += load_text("%r" + std::to_string(a_first + 2 * g), "%rd0", 16 * g);
    body += load_text("%r" + std::to_string(a_first + 2 * g + 1), "%rd0", 8 * product.row_bytes() + 16 * g);
    body += load_text("%r" + std::to_string(b_first + g), "%rd1", 16 * g);
  }
  body += product_text(form);
  for (uint32_t i = 0; i < sums; ++i) {
    body += "mov.b32 %r" + std::to_string(c_first + i) + ", %r" + std::to_string(d_first + i) + ";\n";
  }
  const std::string promote = each_sum([](const std::string& sum, const std::string& total) {
    return "add.f32 " + total + ", " + total + ", " + sum + ";\nmov.b32 " + sum + ", 0;\n";
  });
  if (product.promoted != 0) {
    body += "add.u32 %r4, %r4, 1;\nsetp.ne.u32 %p1, %r4, " + std::to_string(product.promoted) +
            ";\n@%p1 bra kept;\nmov.u32 %r4, 0;\n" + promote + "kept:\n";
  }
  const std::string bytes = std::to_string(16 * groups);
  body += "add.u64 %rd0, %rd0, " + bytes + ";\nadd.u64 %rd1, %rd1, " + bytes + ";\nadd.u32 %r3, %r3, 1;\n" +
          "setp.lt.u32 %p0, %r3, " + std::to_string(product.steps()) + ";\n@%p0 bra next;\n";
  if (product.promoted != 0) body += promote;
  body += "ld.param.u64 %rd2, [p2];\nmad.wide.u32 %rd2, %r0, " + std::to_string(4 * sums) + ", %rd2;\n";
  for (uint32_t i = 0; i < sums; ++i) {
    body += "st.global.b32 [%rd2+" + std::to_string(4 * i) + "], %r" +
            std::to_string((product.promoted != 0 ? 24 : c_first) + i) + ";\n";
  }
  return ptx_kernel(body);
}

/// `count` rows of k elements, each with zeros up to row_bytes().
Memory rows_of(const Product& product, const TensorSpec& spec, const Memory& elements, bool columns_are_rows) {
  Memory padded(size_t{columns_are_rows ? columns : rows} * product.row_bytes());
  for (uint32_t at = 0; at < (columns_are_rows ? columns : rows); ++at) {
    for (uint32_t k = 0; k < product.k; ++k) {
      const int64_t offset =
          columns_are_rows ? k * spec.strides[0] + at * spec.strides[1] : at * spec.strides[0] + k * spec.strides[1];
      std::copy_n(elements.begin() + offset * product.element_bytes(), product.element_bytes(),
                  padded.begin() + at * product.row_bytes() + k * product.element_bytes());
    }
  }
  return padded;
}

/// Results by row and column, on a chip of `capability`.
std::vector<double> run_product(const Product& product, const Request& request, const Memory& a, const Memory& b,
                                int capability) {
  const Form& form = product.form;
  Memory in_a = rows_of(product, request.at("a"), a, false), in_b = rows_of(product, request.at("b"), b, true);
  std::vector<uint32_t> out(lanes * form.sum_registers());
  const auto program = load_program(kernel_of(product), unit_table(), capability);
  std::vector<Region> regions;
  Arguments arguments;
  const auto give = [&](auto& memory) {
    const auto address = reinterpret_cast<uint64_t>(memory.data());
    regions.push_back({address, address + memory.size() * sizeof(memory[0]), "memory"});
    arguments.add(address);
  };
  give(in_a);
  give(in_b);
  give(out);
  arguments.add(uint64_t{0});
  LaunchRequest r;
  r.kernel = find_kernel(*program, "k");
  r.block = {lanes};
  r.parameters = arguments.bytes();
  r.memory = std::make_shared<RegionTable>(RegionTable::Contents{.regions = regions});
  const LaunchOutcome outcome = run(r);
  EXPECT_FALSE(outcome.fault) << outcome.fault->report;
  std::vector<double> results(rows * columns);
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    for (uint32_t i = 0; i < form.lane_sums(); ++i) {
      const Place at = place_in_sums(lane, i);
      const uint32_t word = out[lane * form.sum_registers() + (form.half_sums() ? i / 2 : i)];
      const auto half = static_cast<uint16_t>(word >> (16 * (i % 2)));
      results[at.row * columns + at.column] =
          form.half_sums() ? reference::load(DType::f16, reinterpret_cast<const std::byte*>(&half))
                           : std::bit_cast<float>(word);
    }
  }
  return results;
}

/// Largest errors, as shares of what is granted and of n u M.
struct Shares {
  double of_bound = 0, of_n_u = 0;
  int64_t exact = 0;  // elements that had to be exact
};

using Fill = std::function<double(uint32_t k)>;

/// Fills both factors, and expects all results to be right.
Shares expect_right(const Product& product, int capability, const Fill& fill_a, const Fill& fill_b) {
  const Request request = product.request();
  const TensorSpec &a = request.at("a"), &b = request.at("b");
  Memory in_a(static_cast<size_t>(reference::byte_span(a))), in_b(static_cast<size_t>(reference::byte_span(b)));
  for (int64_t k = 0; k < product.k; ++k) {
    for (int64_t row = 0; row < rows; ++row) {
      reference::write(a, in_a, std::array{row, k}, fill_a(static_cast<uint32_t>(k)));
    }
    for (int64_t column = 0; column < columns; ++column) {
      reference::write(b, in_b, std::array{k, column}, fill_b(static_cast<uint32_t>(k)));
    }
  }
  const std::vector<double> results = run_product(product, request, in_a, in_b, capability);
  const reference::Oracle oracle(request, {.operands = {{"a", in_a}, {"b", in_b}}});
  Shares shares;
  int failures = 0;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      const reference::Expected expected = oracle.at(std::array{row, column});
      const double got = results[static_cast<size_t>(row * columns + column)];
      const double error = std::fabs(got - expected.value), granted = reference::bound(request, expected);
      if (!reference::is_right(request, expected, got) && ++failures < 4) {
        ADD_FAILURE() << product.form.opcode() << " on " << capability << ", k " << product.k << ": got " << got
                      << " for " << expected.value << ", off by " << error << " of " << granted;
      }
      if (reference::arithmetic_error(request, expected) == 0) ++shares.exact;
      if (granted > 0 && std::isfinite(granted)) shares.of_bound = std::max(shares.of_bound, error / granted);
      if (expected.magnitude > 0) {
        shares.of_n_u = std::max(shares.of_n_u, error / (product.k * 0x1p-24 * expected.magnitude));
      }
    }
  }
  return shares;
}

/// A chip, and a form that its kernels use.
struct Chip {
  int capability;
  Form form;
  std::string arithmetic = "";
  uint32_t promoted = 0;
};

std::vector<Chip> chips() {
  const Form half8 = {"m16n8k8", "f16", "f16", "f32", 16, 8}, half = {"m16n8k16", "f16", "f16", "f32", 16, 16};
  const Form bfloat = {"m16n8k16", "bf16", "bf16", "f32", 16, 16}, tf32 = {"m16n8k8", "tf32", "tf32", "f32", 16, 8};
  const Form fine = {"m16n8k32", "e4m3", "e4m3", "f32", 16, 32}, mixed = {"m16n8k32", "e5m2", "e4m3", "f32", 16, 32};
  std::vector<Chip> all = {{75, half8}};
  for (const int capability : {80, 89, 90, 120}) {
    all.insert(all.end(), {{capability, half}, {capability, bfloat}, {capability, tf32, "tf32"}});
    if (capability == 80) continue;
    all.insert(all.end(), {{capability, fine, "", 4}, {capability, mixed, "", 4}, {capability, fine, "fast"}});
  }
  return all;
}

/// Fills by name, of a seed.
std::vector<std::pair<std::string, std::pair<Fill, Fill>>> fills(std::mt19937& random, const Form& form) {
  const auto drawn = [&random](double low, double high) {
    return [&random, low, high](uint32_t) { return std::uniform_real_distribution(low, high)(random); };
  };
  const auto wide = [&random](uint32_t) {
    return std::ldexp(std::uniform_real_distribution(-2.0, 2.0)(random), static_cast<int>(random() % 16) - 8);
  };
  const auto sparse = [&random](uint32_t) {
    return random() % 8 == 0 ? std::uniform_real_distribution(0.5, 1.0)(random) : 0.0;
  };
  const auto integers = [&random](uint32_t) { return static_cast<double>(random() % 9) - 4; };
  // Whole multiples of a power of two whose magnitudes add up to about 2^24 of it: sums are exact, just.
  const double most = form.bits() == 8 ? 8 : 128;
  const auto large_integers = [&random, most](uint32_t) {
    return std::round(std::uniform_real_distribution(-most, most)(random)) * 0x1p-3;
  };
  // Denormal numbers of f16, and of bf16 and tf32, beside large factors.
  const double tiny = form.a == "f16" || form.bits() == 8 ? 0x1p-22 : 0x1p-128, huge = form.a == "f16" ? 0x1p14 : 128;
  const auto denormal = [&random, tiny](uint32_t k) {
    return k % 5 == 0 ? std::uniform_real_distribution(-tiny, tiny)(random)
                      : std::uniform_real_distribution(-1.0, 1.0)(random);
  };
  const auto beside = [&random, huge, tiny](uint32_t k) {
    return k % 5 == 0 ? huge
                      : (tiny < 0x1p-100 ? 0x1p-120 : 0x1p-14) * std::uniform_real_distribution(-1.0, 1.0)(random);
  };
  return {{"uniform", {drawn(-1, 1), drawn(-1, 1)}},
          {"of one sign", {drawn(0.5, 1), drawn(0.5, 1)}},
          {"wide", {wide, wide}},
          {"sparse", {sparse, drawn(0.5, 1)}},
          {"integers", {integers, integers}},
          {"large integers", {large_integers, large_integers}},
          {"denormal", {denormal, beside}}};
}

TEST(TensorErrors, StayWithinTheBounds) {
  std::mt19937 random(4096);
  for (const Chip& chip : chips()) {
    int64_t exact = 0;
    for (const uint32_t k : {1, 2, 3, 7, 8, 9, 16, 17, 33, 127, 130, 1000, 4096}) {
      for (const auto& [name, fill] : fills(random, chip.form)) {
        if (k == 4096 && name != "uniform" && name != "of one sign" && name != "integers") continue;
        SCOPED_TRACE(name);
        const Product product{chip.form, k, chip.arithmetic, chip.promoted};
        const Shares shares = expect_right(product, chip.capability, fill.first, fill.second);
        if (name.ends_with("integers")) exact += shares.exact;
        if (name == "integers" && chip.arithmetic.empty()) {
          EXPECT_EQ(shares.exact, rows * columns) << k;
        }
      }
    }
    EXPECT_GT(exact, 1000);
  }
}

TEST(TensorErrors, ComeCloseToTheBounds) {
  // A step loses of each product all that is below F bits beside the sum, and of one a bit more when it is rounded: 9 u
  // for 8 products, 5 u for 4, on 9.0 9.5 u for 16.
  const auto lost = [](uint32_t step, double below) {
    return [step, below](uint32_t k) {
      if (k < step) return k == 0 ? 1.0 : 0.0;  // the first step puts 1 into the sum
      const double all = below * (1 - 0x1p-9), twice = 2 * below * (1 - 0x1p-9);
      return (k % step == 0 ? (below < 0x1p-24 ? 4 * below - below * 0x1p-8 : twice) : all) * 0x1p12;
    };
  };
  const auto second = [](uint32_t step) { return [step](uint32_t k) { return k < step ? 1.0 : 0x1p-12; }; };
  const Form half = {"m16n8k16", "f16", "f16", "f32", 16, 16};
  for (const auto& [capability, step, below, share] :
       {std::tuple{80, 8u, 0x1p-24, 9.0 / 8}, {90, 16u, 0x1p-25, 9.5 / 16}}) {
    const Shares shares = expect_right({half, 1024, ""}, capability, lost(step, below), second(step));
    EXPECT_GT(shares.of_n_u, 0.95 * share) << capability;
    EXPECT_GT(shares.of_bound, 0.45 * share) << capability;
    EXPECT_LT(shares.of_n_u, 1.01 * share) << capability;
  }
  // Steps with one product each reach what is granted: of 16 products only one is not 0.
  const auto single = [](uint32_t k) { return k % 8 != 0 ? 0.0 : k == 0 ? 1.0 : 0x1.ffcp-12; };
  const Shares alone = expect_right({half, 2048, ""}, 80, single, [](uint32_t k) { return k == 0 ? 1.0 : 0x1p-12; });
  EXPECT_GT(alone.of_n_u * 8, 1.95);  // per product that is not 0
  EXPECT_LT(alone.of_n_u * 8, 2);
}

TEST(TensorErrors, OfBytesComeCloseToTheBoundsOnAda) {
  // The first product of 128 is 256; the others are below its 13 bits.
  const Form fine = {"m16n8k32", "e4m3", "e4m3", "f32", 16, 32};
  const auto a = [](uint32_t k) { return k % 128 == 0 ? 16.0 : k % 128 < 16 ? 0.0 : 0x1.ep-3; };
  const auto b = [](uint32_t k) { return k % 128 == 0 ? 16.0 : 0x1p-3; };
  const Shares shares = expect_right({fine, 1024, "", 4}, 89, a, b);
  EXPECT_GT(shares.of_bound, 0.7);
  EXPECT_LT(expect_right({fine, 1024, "", 4}, 90, a, b).of_n_u, 2);
}

TEST(TensorErrors, OfHalfSumsStayWithinTheBoundsOfFast) {
  const Form sums = {"m16n8k16", "f16", "f16", "f16", 16, 16};
  std::mt19937 random(7);
  const auto drawn = [&random](uint32_t) { return std::uniform_real_distribution(-0.25, 0.25)(random); };
  const auto positive = [&random](uint32_t) { return std::uniform_real_distribution(0.125, 0.25)(random); };
  for (const int capability : {80, 89, 90, 120}) {
    for (const uint32_t k : {1, 2, 9, 64, 1000}) {
      expect_right({sums, k, "fast"}, capability, drawn, drawn);
      expect_right({sums, k, "fast"}, capability, positive, positive);
    }
  }
}

}  // namespace
}  // namespace kiln::emulator::test::core_tensor_error_test
