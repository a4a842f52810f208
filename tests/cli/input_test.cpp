#include "input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "device_choice.h"
#include "kiln/base/error.h"

namespace kiln::cli {
namespace {

using testing::HasSubstr;

Input input(const std::string& text) {
  Input result;
  result.text = text;
  return result;
}

std::string failure(const Input& what) {
  try {
    read_workload(what);
    return "accepted";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Workload, ReadsARequestInQuotes) {
  const Workload workload = read_workload(input("softmax_forward x=f32:1x10 *2"));
  ASSERT_EQ(workload.jobs.size(), 1u);
  EXPECT_EQ(workload.jobs[0].count, 2);
}

TEST(Workload, AddsUpRepeatedLinesOfAFile) {
  const std::string path = testing::TempDir() + "kiln_requests.txt";
  std::ofstream(path)
      << "softmax_forward x=f32:1x10\n# again, written differently\nsoftmax_forward x=f32:1x10 axis=-1 *3\n";
  const Workload workload = read_workload(input(path));
  ASSERT_EQ(workload.jobs.size(), 1u);
  EXPECT_EQ(workload.jobs[0].count, 4);
}

// What `<(...)` of a shell is.
TEST(Workload, ReadsAPipe) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const std::string_view line = "softmax_forward x=f32:1x10 *2\n";
  ASSERT_EQ(::write(ends[1], line.data(), line.size()), static_cast<ssize_t>(line.size()));
  ::close(ends[1]);
  const Workload workload = read_workload(input("/dev/fd/" + std::to_string(ends[0])));
  ::close(ends[0]);
  ASSERT_EQ(workload.jobs.size(), 1u);
  EXPECT_EQ(workload.jobs[0].count, 2);
}

TEST(Workload, NamesFileLineAndColumn) {
  const std::string path = testing::TempDir() + "kiln_bad_requests.txt";
  std::ofstream(path) << "softmax_forward x=f32:1x10\nsoftmax_forward x=f33:1x10\n";
  EXPECT_THAT(failure(input(path)), HasSubstr(path + ": line 2: column 17"));
}

TEST(Workload, RefusesWhatIsNotThereOrEmpty) {
  EXPECT_THAT(failure(input("no_such_file.txt")), HasSubstr("there is no file no_such_file.txt"));
  EXPECT_THAT(failure(input("no_such_model.onnx")), HasSubstr("no_such_model.onnx"));
  const std::string path = testing::TempDir() + "kiln_empty.txt";
  std::ofstream(path) << "# nothing\n";
  EXPECT_THAT(failure(input(path)), HasSubstr("holds no request"));
}

TEST(Workload, TakesAnOperationAloneForARequest) {
  EXPECT_THAT(failure(input("gemm")), HasSubstr("request: line 1: gemm"));
}

TEST(Workload, RefusesModelFlagsForRequests) {
  Input half = input("softmax_forward x=f32:1x10");
  half.dtype = "f16";
  EXPECT_THAT(failure(half), HasSubstr("apply to ONNX models"));
}

TEST(DeviceChoice, TakesOrdinalsAndDrivers) {
  EXPECT_EQ(DeviceChoice{"2"}.ordinal(), 2);
  EXPECT_EQ(DeviceChoice{"cuda:1"}.ordinal(), 1);
  EXPECT_EQ(DeviceChoice{"cuda:1"}.environment().driver, "cuda");
  EXPECT_EQ(DeviceChoice{"emulator"}.environment().driver, "emulator");
  for (const char* text : {"", "gpu", "cuda:", "cuda:x", "-1", "1:cuda"}) {
    EXPECT_THROW((void)DeviceChoice{text}.ordinal(), Error) << text;
  }
}

}  // namespace
}  // namespace kiln::cli
