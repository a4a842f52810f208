#include "cutlass_cases.h"

#include <fmt/format.h>

#include <array>
#include <ostream>
#include <string_view>

namespace kiln::bench {
namespace {

using Requests = std::vector<std::string>;

// Awkward extents, rows of 16 bytes: edges of tiles, gaps between rows, strides, dilation, a blend.
Requests forward(std::string_view type) {
  return {
      fmt::format("conv_forward x={0}:2x24x7x9:nhwc w={0}:40x24x3x3:nhwc pad=1", type),
      fmt::format("conv_forward x={0}:1x16x11x8:nhwc w={0}:72x16x3x5:nhwc pad=1,2,0,1 stride=2,1 dilation=1,2", type),
      fmt::format("conv_forward x={0}:3x8x5x6:960,1,192,32 w={0}:16x8x2x2:64,1,16,8 y={0}:3x16x4x5:640,1,160,32"
                  " alpha=any beta=any",
                  type),
      fmt::format("conv_forward x={0}:1x104x1x5:nhwc w={0}:8x104x1x1:nhwc", type),
  };
}

Requests backward_data(std::string_view type) {
  return {
      fmt::format("conv_backward_data dy={0}:2x24x7x9:nhwc w={0}:24x40x3x3:nhwc pad=1", type),
      fmt::format(
          "conv_backward_data dy={0}:1x8x5x6:1920,1,192,32 w={0}:8x16x2x2:64,1,32,16 dx={0}:1x16x6x7:2000,1,224,32"
          " alpha=any beta=any",
          type),
      fmt::format("conv_backward_data dy={0}:1x72x3x3:nhwc w={0}:72x8x3x3:nhwc pad=1,0 dilation=1,2", type),
  };
}

Requests strided_backward_data(std::string_view type) {
  return {
      fmt::format("conv_backward_data dy={0}:2x24x4x5:nhwc w={0}:24x40x3x3:nhwc pad=1 stride=2", type),
      fmt::format("conv_backward_data dy={0}:1x16x3x4:nhwc w={0}:16x8x3x2:nhwc pad=1,0 stride=3,2 output_pad=1", type),
  };
}

Requests backward_filter(std::string_view type) {
  return {
      fmt::format("conv_backward_filter x={0}:2x24x7x9:nhwc dy={0}:2x40x7x9:nhwc dw={0}:40x24x3x3:nhwc pad=1", type),
      fmt::format("conv_backward_filter x={0}:3x16x11x8:nhwc dy={0}:3x8x5x8:nhwc dw={0}:8x16x3x5:nhwc pad=1,2,0,2"
                  " stride=2,1",
                  type),
      fmt::format("conv_backward_filter x={0}:2x8x5x6:960,1,192,32 dy={0}:2x16x4x5:640,1,160,32"
                  " dw={0}:16x8x2x2:64,1,16,8 alpha=any beta=any",
                  type),
  };
}

// A product of M x K and K x N matrices; `column_a` and `column_b`: column-major.
std::string product(std::array<std::string_view, 3> types, std::array<int, 3> extents, bool column_a, bool column_b,
                    std::string_view more = "") {
  const auto [m, n, k] = extents;
  const auto matrix = [](std::string_view type, int rows, int columns, bool column_major) {
    return fmt::format("{}:{}x{}{}", type, rows, columns, column_major ? fmt::format(":1,{}", rows) : "");
  };
  return fmt::format("gemm a={} b={} c={}{}", matrix(types[0], m, k, column_a), matrix(types[1], k, n, column_b),
                     matrix(types[2], m, n, false), more);
}

Requests products(std::array<std::string_view, 3> types, bool column_a, bool column_b, std::string_view more = "") {
  return {product(types, {72, 136, 104}, column_a, column_b, more),
          product(types, {8, 16, 264}, column_a, column_b, fmt::format(" alpha=any beta=any{}", more))};
}

Requests joined(Requests first, const Requests& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Requests permitted(Requests requests, std::string_view arithmetic) {
  for (std::string& request : requests) request += fmt::format(" {}", arithmetic);
  return requests;
}

using Shape = std::array<int, 3>;
constexpr Shape m16n8k4{16, 8, 4}, m16n8k8{16, 8, 8}, m16n8k16{16, 8, 16}, m16n8k32{16, 8, 32}, m8n8k16{8, 8, 16};

CutlassChoice choice(Shape block, Shape warp, Shape instruction, int stages, DType sum = DType::f32, int slices = 1) {
  return {.tile = {block, warp, instruction, stages}, .sum = sum, .slices = slices};
}

CutlassChoice small(Shape instruction, DType sum = DType::f32, int slices = 1) {
  return choice({64, 64, 32}, {32, 32, 32}, instruction, 3, sum, slices);
}

CutlassChoice analytic(CutlassChoice from) {
  from.analytic = true;
  return from;
}

// A second kernel adds the slices.
CutlassChoice parallel(CutlassChoice from, int slices) {
  from.slices = slices;
  from.parallel = true;
  return from;
}

// Two stages in registers and shared memory, before cp.async.
CutlassChoice turing(Shape instruction, DType sum = DType::f32, int slices = 1) {
  return choice({64, 64, 32}, {32, 32, 32}, instruction, 2, sum, slices);
}

void add_7_5(std::vector<CutlassCase>& cases) {
  const auto add = [&](std::string_view name, const CutlassChoice& how, Requests requests) {
    cases.push_back({fmt::format("On75{}", name), 7, 5, how, std::move(requests)});
  };
  add("Forward", turing(m16n8k8), forward("f16"));
  add("ForwardOfLargeTiles", choice({128, 128, 32}, {64, 64, 32}, m16n8k8, 2), forward("f16"));
  add("ForwardSumsInF16", turing(m16n8k8, DType::f16), permitted(forward("f16"), "fast"));
  add("ForwardInSlices", turing(m16n8k8, DType::f32, 3), forward("f16"));
  add("BackwardData", turing(m16n8k8), backward_data("f16"));
  add("BackwardDataStrided", turing(m16n8k8), strided_backward_data("f16"));
  add("BackwardFilter", turing(m16n8k8), backward_filter("f16"));
  add("BackwardFilterInSlices", turing(m16n8k8, DType::f32, 2), backward_filter("f16"));
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      add(fmt::format("Product{}{}", a ? 'T' : 'N', b ? 'T' : 'N'), turing(m16n8k8),
          products({"f16", "f16", "f16"}, a, b));
    }
  }
  add("ProductOfI8", choice({64, 64, 64}, {32, 32, 64}, m8n8k16, 2, DType::i32),
      {product({"i8", "i8", "i32"}, {80, 144, 112}, false, true)});
}

void add_convolutions_8_0(std::vector<CutlassCase>& cases) {
  const auto add = [&](std::string_view name, const CutlassChoice& how, Requests requests) {
    cases.push_back({fmt::format("On80{}", name), 8, 0, how, std::move(requests)});
  };
  const CutlassChoice tf32 = choice({64, 64, 16}, {32, 32, 16}, m16n8k8, 3);
  add("Forward", small(m16n8k16), forward("f16"));
  add("ForwardOfLargeTiles", choice({128, 128, 32}, {64, 64, 32}, m16n8k16, 4), forward("f16"));
  add("ForwardAnalytic", analytic(small(m16n8k16)), forward("f16"));
  add("ForwardSumsInF16", small(m16n8k16, DType::f16), permitted(forward("f16"), "fast"));
  add("ForwardInSlices", small(m16n8k16, DType::f32, 3), forward("f16"));
  add("ForwardInParallelSlices", parallel(small(m16n8k16), 3), forward("f16"));
  add("ForwardOf8Bytes", analytic(small(m16n8k16)), {"conv_forward x=f16:2x20x7x9:nhwc w=f16:36x20x3x3:nhwc pad=1"});
  add("ForwardOf4Bytes", analytic(small(m16n8k16)), {"conv_forward x=f16:2x6x7x9:nhwc w=f16:10x6x3x3:nhwc pad=1"});
  add("ForwardOfBf16", small(m16n8k16), forward("bf16"));
  add("ForwardOfTf32", tf32, permitted(forward("f32"), "tf32"));
  add("BackwardData", small(m16n8k16), backward_data("f16"));
  add("BackwardDataStrided", small(m16n8k16), strided_backward_data("f16"));
  add("BackwardDataOfBf16", small(m16n8k16), joined(backward_data("bf16"), strided_backward_data("bf16")));
  add("BackwardDataOfTf32", tf32, permitted(backward_data("f32"), "tf32"));
  add("BackwardFilter", small(m16n8k16), backward_filter("f16"));
  add("BackwardFilterInSlices", small(m16n8k16, DType::f32, 2), backward_filter("f16"));
  add("BackwardFilterInParallelSlices", parallel(small(m16n8k16), 2), backward_filter("f16"));
  add("BackwardFilterOfBf16", small(m16n8k16), backward_filter("bf16"));
  add("BackwardFilterOfTf32", tf32, permitted(backward_filter("f32"), "tf32"));
}

void add_products_8_0(std::vector<CutlassCase>& cases) {
  const auto add = [&](std::string_view name, const CutlassChoice& how, Requests requests) {
    cases.push_back({fmt::format("On80Product{}", name), 8, 0, how, std::move(requests)});
  };
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      add(fmt::format("{}{}", a ? 'T' : 'N', b ? 'T' : 'N'), small(m16n8k16), products({"f16", "f16", "f16"}, a, b));
    }
  }
  add("OfBf16", small(m16n8k16), products({"bf16", "bf16", "f32"}, true, false));
  add("OfBf16K8", small(m16n8k8), products({"bf16", "bf16", "f32"}, false, true));
  add("OfTf32", choice({64, 64, 16}, {32, 32, 16}, m16n8k8, 3), products({"f32", "f32", "f32"}, true, false, " tf32"));
  add("OfTf32K4", choice({64, 64, 16}, {32, 32, 16}, m16n8k4, 3),
      products({"f32", "f32", "f32"}, false, true, " tf32"));
  add("SumsInF16", small(m16n8k16, DType::f16),
      permitted({product({"f16", "f16", "f16"}, {72, 136, 72}, false, true)}, "fast"));
  add("InSlices", small(m16n8k16, DType::f32, 4), products({"f16", "f16", "f16"}, false, true));
  add("Of8Bytes", small(m16n8k16), {product({"f16", "f16", "f16"}, {68, 60, 44}, false, true)});
  add("Of4Bytes", small(m16n8k16), {product({"f16", "f16", "f16"}, {70, 62, 46}, false, true)});
  const std::array<std::string_view, 2> bytes = {"i8", "u8"};
  for (const std::string_view a : bytes) {
    for (const std::string_view b : bytes) {
      add(fmt::format("Of{}And{}", a, b), choice({64, 64, 64}, {32, 32, 64}, m16n8k32, 3, DType::i32),
          {product({a, b, "i32"}, {80, 144, 112}, false, true)});
    }
  }
  add("OfI8K16", choice({64, 64, 64}, {32, 32, 64}, m16n8k16, 3, DType::i32),
      {product({"i8", "i8", "i32"}, {80, 144, 112}, false, true)});
}

void add_8_9(std::vector<CutlassCase>& cases) {
  const std::array<std::string_view, 2> bytes = {"f8e4m3", "f8e5m2"};
  for (const std::string_view a : bytes) {
    for (const std::string_view b : bytes) {
      cases.push_back({fmt::format("On89ProductOf{}And{}", a.substr(2), b.substr(2)),
                       8,
                       9,
                       choice({64, 64, 64}, {32, 32, 64}, m16n8k32, 3),
                       {product({a, b, "f32"}, {80, 144, 112}, false, true)}});
    }
  }
}

}  // namespace

const std::vector<CutlassCase>& cutlass_cases() {
  static const std::vector<CutlassCase> all = [] {
    std::vector<CutlassCase> cases;
    add_7_5(cases);
    add_convolutions_8_0(cases);
    add_products_8_0(cases);
    add_8_9(cases);
    return cases;
  }();
  return all;
}

void PrintTo(const CutlassCase& peer, std::ostream* out) {
  *out << peer.choice.print();
}

}  // namespace kiln::bench
