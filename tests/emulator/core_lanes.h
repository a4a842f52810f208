// Tables of instructions: PTX text run for every combination of awkward operands, one lane each, against a host oracle.
#pragma once

#include <bit>
#include <climits>
#include <cmath>
#include <cstdint>
#include <limits>
#include <tuple>
#include <type_traits>

#include "core_fixture.h"

namespace kiln::emulator::test {

inline const std::vector<int32_t> awkward_s32 = {0,  1,  -1, 2,  -3, 7,      31,      32,
                                                 33, 63, 64, 65, 97, 0x8001, INT_MAX, INT_MIN};
inline const std::vector<uint32_t> awkward_u32 = {0, 1, 2, 31, 32, 33, 64, 255, 0x8000, 0x7FFFFFFF, 0x80000000, ~0u};
inline const std::vector<int64_t> awkward_s64 = {0,         1,         -1,      -7,        63, 64, INT64_C(1) << 33,
                                                 INT64_MAX, INT64_MIN, INT_MIN, UINT32_MAX};
inline const std::vector<uint64_t> awkward_u64 = {
    0, 1, 3, 64, UINT32_MAX, UINT64_C(1) << 32, UINT64_MAX, UINT64_C(1) << 63, 0x0123456789ABCDEF};

template <class T>
std::vector<T> awkward_floats() {
  using Limits = std::numeric_limits<T>;
  return {T(0),
          -T(0),
          T(1),
          -T(1.5),
          T(0.3),
          Limits::denorm_min(),
          -Limits::min() / 2,
          Limits::min(),
          -Limits::max(),
          Limits::max(),
          Limits::infinity(),
          -Limits::infinity(),
          Limits::quiet_NaN(),
          T(1e-30),
          Limits::epsilon(),
          T(3)};
}

/// Bits equal, or both a NaN: the payload of a NaN is not promised.
template <class T>
bool same_lane(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  }
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class T>
std::string bits_name() {
  return "b" + std::to_string(sizeof(T) * 8);
}

/// Loads element tid.x of parameter `index` to register %a, %b or %c.
template <class S>
std::string load_lane(size_t index) {
  const std::string name = std::string("%") + static_cast<char>('a' + index), k = std::to_string(index + 1);
  return ".reg ." + bits_name<S>() + " " + name + ";\nld.param.u64 %rd1, [p" + k + "];\nmad.wide.u32 %rd1, %r0, " +
         std::to_string(sizeof(S)) + ", %rd1;\nld.global." + bits_name<S>() + " " + name + ", [%rd1];\n";
}

/// Runs `text`, which reads %a, %b, %c and writes %d, with one thread per element of the sources.
template <class D, class... S>
std::vector<D> run_lanes(const std::string& text, Buffer<S>&... sources) {
  std::string body = "mov.u32 %r0, %tid.x;\n";
  size_t index = 0;
  ((body += load_lane<S>(index++)), ...);
  body += ".reg ." + bits_name<D>() + " %d;\n" + text + "\nld.param.u64 %rd1, [p0];\nmad.wide.u32 %rd1, %r0, " +
          std::to_string(sizeof(D)) + ", %rd1;\nst.global." + bits_name<D>() + " [%rd1], %d;";
  Module module(ptx_kernel(body));
  const uint32_t threads = static_cast<uint32_t>(std::get<0>(std::tie(sources...)).size());
  Buffer<D> results(threads);
  module.allow(results);
  (module.allow(sources), ...);
  Arguments arguments(results.address(), sources.address()...);
  for (size_t k = sizeof...(S) + 1; k < 4; ++k) arguments.add(uint64_t{0});
  module.launch("k", {1}, {threads}, arguments);
  return results.values();
}

/// Every combination of the pools' values (at most 1024) through `text`; each lane must be what `oracle` says.
template <class Oracle, class... S>
void expect_lanes(const std::string& text, Oracle oracle, const std::vector<S>&... pools) {
  using D = std::invoke_result_t<Oracle, S...>;
  const size_t lanes = (pools.size() * ...);
  ASSERT_LE(lanes, 1024u) << text;
  size_t stride = 1;
  const auto spread = [&](const auto& pool) {
    auto values = pool;
    values.resize(lanes);
    for (size_t k = 0; k < lanes; ++k) values[k] = pool[k / stride % pool.size()];
    stride *= pool.size();
    return Buffer(std::move(values));
  };
  std::tuple<Buffer<S>...> sources{spread(pools)...};
  const auto results = std::apply([&](auto&... each) { return run_lanes<D>(text, each...); }, sources);
  for (size_t k = 0; k < lanes; ++k) {
    std::apply(
        [&](const auto&... each) {
          const D expected = oracle(each[k]...);
          EXPECT_TRUE(same_lane(results[k], expected))
              << text << " of " << testing::PrintToString(std::make_tuple(each[k]...)) << ": " << results[k]
              << ", expected " << expected;
        },
        sources);
  }
}

}  // namespace kiln::emulator::test
