// Runs PTX on the execution core without a driver: memory, parameters and launches in a few lines.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "machine/machine.h"

namespace kiln::emulator::test {

/// Memory of `n` values that kernels may touch, and a name for reports.
template <class T>
class Buffer {
 public:
  explicit Buffer(size_t n, T value = T{}) : Buffer(std::vector<T>(n, value)) {}
  explicit Buffer(const std::vector<T>& values) {
    // Memory of nobody follows, so that a kernel that runs past the end does not meet the next buffer.
    values_.reserve(values.size() + guard_bytes / sizeof(T));
    values_ = values;
  }
  T& operator[](size_t k) { return values_[k]; }
  const T& operator[](size_t k) const { return values_[k]; }
  size_t size() const { return values_.size(); }
  T* data() { return values_.data(); }
  std::vector<T>& values() { return values_; }
  uint64_t address() const { return reinterpret_cast<uint64_t>(values_.data()); }
  Region region(std::string name = "buffer") const {
    return {address(), address() + values_.size() * sizeof(T), std::move(name)};
  }

 private:
  static constexpr size_t guard_bytes = size_t{1} << 16;

  std::vector<T> values_;
};

/// Kernel arguments in order, each aligned to its size as a parameter block has them.
class Arguments {
 public:
  template <class... T>
  explicit Arguments(const T&... values) {
    (add(values), ...);
  }
  template <class T>
  void add(const T& value) {
    const size_t offset = (bytes_.size() + alignof(T) - 1) / alignof(T) * alignof(T);
    bytes_.resize(offset + sizeof(T));
    std::memcpy(bytes_.data() + offset, &value, sizeof(T));
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// A loaded module and what its launches may touch.
class Module {
 public:
  explicit Module(const std::string& ptx) : program_(load_program(ptx)) {}

  Module& allow(const Region& region) {
    regions_.push_back(region);
    return *this;
  }
  template <class T>
  Module& allow(const Buffer<T>& buffer, std::string name = "buffer") {
    return allow(buffer.region(std::move(name)));
  }
  /// Sets the check level of later launches; bounds unless told otherwise.
  Module& check(CheckLevel level) {
    check_ = level;
    return *this;
  }
  const Program& program() const { return *program_; }

  /// A launch with checks on. Change it and pass it to run().
  LaunchRequest request(const std::string& kernel, Dim3 grid, Dim3 block, const Arguments& arguments) const {
    LaunchRequest r;
    r.kernel = find_kernel(*program_, kernel);
    r.grid = grid;
    r.block = block;
    r.parameters = arguments.bytes();
    r.memory = std::make_shared<RegionTable>(RegionTable::Contents{.regions = regions_});
    r.check = check_;
    return r;
  }
  /// Runs with checks on and expects no fault.
  Counters launch(const std::string& kernel, Dim3 grid, Dim3 block, const Arguments& arguments,
                  uint32_t dynamic_shared = 0) const;
  /// Runs with checks on and returns the fault's report, or "" and a test failure.
  Fault fault(const std::string& kernel, Dim3 grid, Dim3 block, const Arguments& arguments,
              uint32_t dynamic_shared = 0) const;

 private:
  std::shared_ptr<const Program> program_;
  std::vector<Region> regions_;
  CheckLevel check_ = CheckLevel::bounds;
};

/// A module of one kernel `k` with parameters .u64 p0, p1, p2, p3 and the given body. Registers declared: %r<32> (b32),
/// %rd<32> (b64), %f<32> (b32), %fd<16> (b64), %h<16> (b16), %p<16>.
std::string ptx_kernel(const std::string& body,
                       const std::string& parameters =
                           ".param .u64 p0, .param .u64 p1, "
                           ".param .u64 p2, .param .u64 p3",
                       const std::string& before = "");

/// The message of the LoadError that `ptx` causes; "" and a test failure if it loads.
std::string load_error(const std::string& ptx);

}  // namespace kiln::emulator::test
