// Tests' access to libkiln_emulator.so: a fresh driver per instance, loaded as an application loads libcuda.
#pragma once

#include <cuda_abi/driver.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kiln::emulator::testing {

using namespace cuda_abi;  // NOLINT(google-build-using-namespace): the tests speak the driver API

/// Environment variables, by name.
using Variables = std::map<std::string, std::string>;

/// One instance of the emulator, with state of its own.
///
/// A driver lives as long as its process, so each instance loads a private copy of the library. Loading takes a while:
/// DriverTest shares instances.
class Emulator {
 public:
  /// Loads the library and, unless told otherwise, calls initialise().
  explicit Emulator(const Variables& environment = {}, bool initialise_now = true);
  ~Emulator();
  Emulator(const Emulator&) = delete;
  Emulator& operator=(const Emulator&) = delete;

  /// Calls cuInit with these environment variables set.
  CUresult initialise(const Variables& environment);
  /// kiln_emulator_refused_setting() with them.
  std::string refused_setting(const Variables& environment);

  /// An exported symbol, or null.
  void* symbol(const char* name) const;
  template <typename Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }

  std::string last_fault() const;
  std::string not_timed() const;
  std::string last_launch() const;

  template <typename Signature>
  using Entry = Signature*;
#define KILN_TEST_MEMBER(name, ...) Entry<__VA_ARGS__> name = nullptr;
  KILN_CUDA_DRIVER_ENTRY_POINTS(KILN_TEST_MEMBER)
  KILN_CUDA_DRIVER_OPTIONAL_ENTRY_POINTS(KILN_TEST_MEMBER)
#undef KILN_TEST_MEMBER

 private:
  void* library_ = nullptr;
};

/// Tests with the primary context of device 0, fresh and current, and handy calls. Tests with equal variables share an
/// instance of the emulator.
class DriverTest : public ::testing::Test {
 protected:
  explicit DriverTest(const Variables& environment = {});
  ~DriverTest() override;

  CUdeviceptr allocate(size_t bytes);
  CUmodule load(const std::string& ptx);
  CUfunction function(CUmodule module, const char* name);
  CUstream stream(unsigned flags = CU_STREAM_DEFAULT);
  CUevent event(unsigned flags = CU_EVENT_DEFAULT);
  std::vector<uint32_t> read(CUdeviceptr address, size_t count);
  /// Launches `fill` of fill_ptx: out[i] = value for i < count.
  CUresult fill(CUfunction fill, CUdeviceptr out, uint32_t value, uint32_t count, CUstream stream = nullptr,
                unsigned blocks = 0);
  float elapsed(CUevent start, CUevent end);

  const Emulator& cuda;
  CUcontext context = nullptr;
};

/// PTX of: `fill(out, value, count)`, u32 elements, one per thread; `capped`, at most 256 threads and 40000 bytes of
/// static shared memory; the variable `table` of 256 bytes.
extern const std::string fill_ptx;

/// `ptx` with another .target, e.g. "sm_90a".
std::string with_target(std::string ptx, const std::string& target);

}  // namespace kiln::emulator::testing
