// Exports of libkiln_emulator.so, and how it is set up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "driver/exports.h"
#include "driver/other_entry_points.h"
#include "driver_fixture.h"
#include "exported_symbols.h"

namespace kiln::emulator::testing::driver_exports_test {
namespace {

using ::testing::HasSubstr;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

TEST(DriverExports, HoldEverySymbolThatTheLoaderAsksFor) {
  const Emulator cuda({}, false);
#define KILN_TEST_EXPORTED(name, ...) EXPECT_NE(cuda.symbol(#name), nullptr) << #name;
  KILN_CUDA_DRIVER_ENTRY_POINTS(KILN_TEST_EXPORTED)
  KILN_CUDA_DRIVER_OPTIONAL_ENTRY_POINTS(KILN_TEST_EXPORTED)
#undef KILN_TEST_EXPORTED
}

// The version script is written from the headers' text, this from what the compiler makes of them.
TEST(DriverExports, AreTheNamesThatAreListedAndNoOthers) {
  const std::set<std::string> listed = {
#define KILN_TEST_LISTED(name, ...) #name,
      KILN_CUDA_DRIVER_ENTRY_POINTS(KILN_TEST_LISTED) KILN_CUDA_DRIVER_OPTIONAL_ENTRY_POINTS(KILN_TEST_LISTED)
          KILN_EMULATOR_EXTRA_ENTRY_POINTS(KILN_TEST_LISTED) KILN_EMULATOR_OTHER_ENTRY_POINTS(KILN_TEST_LISTED)
#undef KILN_TEST_LISTED
#define KILN_TEST_LISTED(name, suffix) #name #suffix,
              KILN_EMULATOR_PER_THREAD_ENTRY_POINTS(KILN_TEST_LISTED)
#undef KILN_TEST_LISTED
      // include/kiln/emulator/extensions.h
      "kiln_emulator_last_fault",
      "kiln_emulator_last_launch_json",
      "kiln_emulator_launches_json",
      "kiln_emulator_not_timed",
      "kiln_emulator_refused_setting",
      "kiln_emulator_time_only",
      "kiln_emulator_trace_launches"};
  const std::vector<std::string> symbols = exported_symbols(KILN_EMULATOR_LIBRARY);
  const std::set<std::string> exported(symbols.begin(), symbols.end());
  EXPECT_THAT(missing_of(exported, listed), ::testing::IsEmpty()) << "listed, and not exported";
  EXPECT_THAT(missing_of(listed, exported), ::testing::IsEmpty()) << "exported, and not listed";
}

TEST(DriverExports, HoldWhatProgramsBuiltWithTheNewestHeadersCall) {
  const Emulator cuda({}, false);
  for (const char* name : {"cuCtxCreate_v4", "cuCtxDestroy_v2", "cuEventElapsedTime_v2", "cuGetProcAddress_v2",
                           "cuGetExportTable", "cuMemHostRegister_v2", "cuMemcpyDtoD_v2", "cuModuleLoadData"}) {
    EXPECT_NE(cuda.symbol(name), nullptr) << name;
  }
}

TEST(DriverExports, FindEntryPointsByNameAndVersion) {
  const Emulator cuda;
  auto* find = cuda.function<CUresult(const char*, void**, int, uint64_t, int*)>("cuGetProcAddress_v2");
  void* found = nullptr;
  int status = -1;
  EXPECT_EQ(find("cuMemAlloc", &found, 12000, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(found, cuda.symbol("cuMemAlloc_v2"));
  EXPECT_EQ(status, 0);
  // Each variant has a signature of its own, which callers of that CUDA version and later expect.
  EXPECT_EQ(find("cuCtxCreate", &found, 11030, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(found, cuda.symbol("cuCtxCreate_v2"));
  EXPECT_EQ(find("cuCtxCreate", &found, 12000, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(found, cuda.symbol("cuCtxCreate_v3"));
  EXPECT_EQ(find("cuCtxCreate", &found, 13000, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(found, cuda.symbol("cuCtxCreate_v4"));
  EXPECT_EQ(find("cuGraphKernelNodeGetParams", &found, 11080, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(found, cuda.symbol("cuGraphKernelNodeGetParams")) << "whose structure is shorter";
  EXPECT_EQ(find("cuCtxSynchronize", &found, 13000, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(found, cuda.symbol("cuCtxSynchronize")) << "no header maps it to the variant that takes a context";
  EXPECT_EQ(find("cuGraphMake", &found, 13000, 0, &status), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(found, nullptr);
  EXPECT_EQ(status, 1);
}

TEST(DriverExports, OfADefaultStreamOfEachThreadAreFoundToo) {
  const Emulator cuda;
  auto* find = cuda.function<CUresult(const char*, void**, int, uint64_t, int*)>("cuGetProcAddress_v2");
  constexpr uint64_t per_thread = 2;  // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
  void* found = nullptr;
  for (const auto& [name, variant] : std::map<const char*, const char*>{{"cuLaunchKernel", "cuLaunchKernel_ptsz"},
                                                                        {"cuLaunchKernelEx", "cuLaunchKernelEx_ptsz"},
                                                                        {"cuMemcpyHtoD", "cuMemcpyHtoD_v2_ptds"},
                                                                        {"cuMemAllocAsync", "cuMemAllocAsync_ptsz"},
                                                                        {"cuMemAlloc", "cuMemAlloc_v2"}}) {
    EXPECT_EQ(find(name, &found, 13000, per_thread, nullptr), CUDA_SUCCESS) << name;
    EXPECT_NE(found, nullptr) << name;
    EXPECT_EQ(found, cuda.symbol(variant)) << name;
  }
}

TEST(DriverExports, AnswerNotSupportedWhereNothingIsImplemented) {
  const Emulator cuda;
  for (const char* name : {"cuMemAllocManaged", "cuGraphCreate", "cuTexObjectCreate", "cuLinkCreate_v2",
                           "cuMemAllocAsync", "cuMemAllocAsync_ptsz", "cuTensorMapEncodeIm2col", "cuMemcpy2D_v2",
                           "cuLibraryLoadData", "cuStreamGetCaptureInfo_v3", "cuProfilerStart"}) {
    auto* const call = cuda.function<CUresult(void*, void*, void*)>(name);
    ASSERT_NE(call, nullptr) << name;
    EXPECT_EQ(call(nullptr, nullptr, nullptr), CUDA_ERROR_NOT_SUPPORTED) << name;
  }
}

#ifdef KILN_CUDA_HEADER
/// Every function that the driver's header declares, and what it renames calls to.
std::set<std::string> names_in(const std::string& header) {
  std::set<std::string> names;
  const std::regex declared(R"(CUDAAPI\s+(cu[A-Z]\w*)\s*\()"), renamed(R"(define\s+cu[A-Z]\w*\s+(\w+)(\(\w+\))?)");
  for (std::sregex_iterator at(header.begin(), header.end(), declared), end; at != end; ++at) names.insert((*at)[1]);
  for (std::sregex_iterator at(header.begin(), header.end(), renamed), end; at != end; ++at) {
    const std::string to = (*at)[1], inner = (*at)[2];
    const bool per_stream = to == "__CUDA_API_PTSZ", per_thread = to == "__CUDA_API_PTDS";
    if (!per_stream && !per_thread) {
      if (to.starts_with("cu")) names.insert(to);
      continue;
    }
    const std::string name = inner.substr(1, inner.size() - 2);
    names.insert(name);
    names.insert(name + (per_stream ? "_ptsz" : "_ptds"));
  }
  return names;
}
#endif

TEST(DriverExports, HoldEveryNameOfTheToolkitsHeader) {
#ifdef KILN_CUDA_HEADER
  const Emulator cuda({}, false);
  std::ifstream file(KILN_CUDA_HEADER);
  const std::string header{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::set<std::string> names = names_in(header);
  EXPECT_GT(names.size(), 400u);
  for (const std::string& name : names) EXPECT_NE(cuda.symbol(name.c_str()), nullptr) << name;
#else
  GTEST_SKIP() << "needs the driver's header of a CUDA toolkit of version 13";
#endif
}

TEST(DriverExports, HaveNoPrivateTables) {
  const Emulator cuda;
  const void* table = &cuda;
  const CUuuid id = {};
  EXPECT_EQ(cuda.function<CUresult(const void**, const CUuuid*)>("cuGetExportTable")(&table, &id),
            CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(table, nullptr);
}

TEST(DriverErrors, HaveTheNamesAndTextsOfTheRealDriver) {
  const Emulator cuda({}, false);
  const char* text = nullptr;
  EXPECT_EQ(cuda.cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text), CUDA_SUCCESS);
  EXPECT_STREQ(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_EQ(cuda.cuGetErrorString(CUDA_ERROR_ILLEGAL_ADDRESS, &text), CUDA_SUCCESS);
  EXPECT_STREQ(text, "an illegal memory access was encountered");
  EXPECT_EQ(cuda.cuGetErrorName(static_cast<CUresult>(12345), &text), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(text, nullptr);
}

TEST(DriverInit, IsNeededBeforeAnythingElse) {
  const Emulator cuda({}, false);
  int count = 0;
  CUcontext context = nullptr;
  EXPECT_EQ(cuda.cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(cuda.cuCtxGetCurrent(&context), CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(cuda.last_fault(), "");
  EXPECT_EQ(cuda.last_launch(), "");
  EXPECT_EQ(cuda.cuInit(1), CUDA_ERROR_INVALID_VALUE) << "flags must be 0";
  EXPECT_EQ(cuda.cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuDeviceGetCount(&count), CUDA_SUCCESS);
}

TEST(DriverInit, RefusesSettingsThatItDoesNotUnderstandAndSaysWhich) {
  Emulator cuda({}, false);
  struct Case {
    const char* name;
    const char* value;
    const char* message;
  };
  for (const Case& wrong :
       {Case{"KILN_EMULATOR_DEVICE", "h300", "unknown device \"h300\"; expected one of h200"},
        Case{"KILN_EMULATOR_DEVICE", "", "unknown device \"\""},
        Case{"KILN_EMULATOR_DEVICE", "h200,", "unknown device \"\""},
        Case{"KILN_EMULATOR_CHECK", "yes", "KILN_EMULATOR_CHECK=yes"},
        Case{"KILN_EMULATOR_THREADS", "0", "KILN_EMULATOR_THREADS=0"},
        Case{"KILN_EMULATOR_THREADS", "2x", "KILN_EMULATOR_THREADS=2x"},
        Case{"KILN_EMULATOR_INSTRUCTION_LIMIT", "-1", "KILN_EMULATOR_INSTRUCTION_LIMIT=-1"},
        Case{"KILN_EMULATOR_COUNTED_BLOCKS", "all", "KILN_EMULATOR_COUNTED_BLOCKS=all"},
        Case{"KILN_EMULATOR_TENSOR", "exact", "KILN_EMULATOR_TENSOR=exact is neither \"chain\" nor \"hardware\""},
        Case{"KILN_EMULATOR_DEVISE", "h200",
             "unknown environment variable KILN_EMULATOR_DEVISE; did you mean KILN_EMULATOR_DEVICE?"},
        Case{
            "KILN_EMULATOR_FAR_FROM_ALL_NAMES", "h200",
            "unknown environment variable KILN_EMULATOR_FAR_FROM_ALL_NAMES; expected one of KILN_EMULATOR_DEVICE, "}}) {
    CaptureStderr();
    EXPECT_EQ(cuda.initialise({{wrong.name, wrong.value}}), CUDA_ERROR_INVALID_VALUE) << wrong.name;
    EXPECT_THAT(GetCapturedStderr(), HasSubstr(wrong.message));
    CaptureStderr();
    EXPECT_THAT(cuda.refused_setting({{wrong.name, wrong.value}}), HasSubstr(wrong.message));
    EXPECT_EQ(GetCapturedStderr(), "") << "who asks says it";
  }
  EXPECT_EQ(cuda.refused_setting({}), "");
  EXPECT_EQ(cuda.initialise({}), CUDA_SUCCESS) << "once the settings are mended";
}

}  // namespace
}  // namespace kiln::emulator::testing::driver_exports_test
