// What libkiln_emulator.so exports, and how it is set up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "driver_fixture.h"

namespace kiln::emulator::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

TEST(DriverExports, HoldEverySymbolThatTheLoaderAsksFor) {
  const Emulator cuda({}, false);
#define KILN_TEST_EXPORTED(name, ...) EXPECT_NE(cuda.symbol(#name), nullptr) << #name;
  KILN_CUDA_DRIVER_ENTRY_POINTS(KILN_TEST_EXPORTED)
#undef KILN_TEST_EXPORTED
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
  EXPECT_EQ(find("cuCtxCreate", &found, 12000, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(found, cuda.symbol("cuCtxCreate_v2")) << "the fourth variant has another signature";
  EXPECT_EQ(find("cuCtxCreate", &found, 13000, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(found, cuda.symbol("cuCtxCreate_v4"));
  EXPECT_EQ(find("cuGraphCreate", &found, 13000, 0, &status), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(found, nullptr);
  EXPECT_EQ(status, 1);
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
        Case{"KILN_EMULATOR_DEVISE", "h200", "unknown environment variable KILN_EMULATOR_DEVISE"}}) {
    CaptureStderr();
    EXPECT_EQ(cuda.initialise({{wrong.name, wrong.value}}), CUDA_ERROR_INVALID_VALUE) << wrong.name;
    EXPECT_THAT(GetCapturedStderr(), HasSubstr(wrong.message));
  }
  EXPECT_EQ(cuda.initialise({}), CUDA_SUCCESS) << "once the settings are mended";
}

}  // namespace
}  // namespace kiln::emulator::testing
