// Files of measured launches, as bench/time_model/tensor_kernels.py writes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "kiln/base/error.h"
#include "launches.h"

namespace kiln::bench::measured_launches_test {
namespace {

constexpr const char* header =
    "table,row,ms,device,arch,sms,clock_mhz,l2_bytes,dram_gbs,cubin,kernel,grid,block,shared,parameters\n";
constexpr const char* first =
    "wmma,a 1,2.5,NVIDIA GeForce RTX 3090,86,82,1695,6291456,936,a.cubin,multiply,16x8x1,256x1x1,49152,0100007f\n";

std::string written(const std::string& text) {
  const std::string path = testing::TempDir() + "launches.csv";
  std::ofstream(path) << text;
  return path;
}

std::string message_of(const std::string& text) {
  try {
    (void)read_launches(written(text));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string with(std::string line, const std::string& cell, const std::string& other) {
  return line.replace(line.find(cell), cell.size(), other);
}

TEST(MeasuredLaunches, AreReadByTheirColumns) {
  const std::string second = with(first, "wmma,a 1,2.5", "other,b,1");
  const std::vector<LaunchTable> tables = read_launches(written(std::string(header) + first + second + first));
  ASSERT_EQ(tables.size(), 2U);
  EXPECT_EQ(tables[0].name, "wmma");
  EXPECT_EQ(tables[0].device, "NVIDIA GeForce RTX 3090");
  ASSERT_EQ(tables[0].launches.size(), 2U);
  EXPECT_EQ(tables[1].launches.size(), 1U);
  const MeasuredLaunch& one = tables[0].launches[0];
  EXPECT_EQ(one.row, "a 1");
  EXPECT_EQ(one.milliseconds, 2.5);
  EXPECT_EQ(one.card.sms, 82U);
  EXPECT_EQ(one.card.clock_mhz, 1695U);
  EXPECT_EQ(one.card.tensor_float * 2, one.card.tensor_half) << "a GeForce card";
  EXPECT_EQ(one.cubin, testing::TempDir() + "a.cubin");
  EXPECT_EQ(one.launch.grid, (timing::Extents{16, 8, 1}));
  EXPECT_EQ(one.launch.block, (timing::Extents{256, 1, 1}));
  EXPECT_EQ(one.launch.dynamic_shared_bytes, 49152U);
  EXPECT_EQ(one.launch.parameters, std::string("\x01\x00\x00\x7f", 4));
}

TEST(MeasuredLaunches, SayWhatIsWrong) {
  const auto message = [](const char* cell, const char* other) {
    return message_of(header + with(first, cell, other));
  };
  EXPECT_THAT(message(",2.5,", ",0,"), testing::HasSubstr("launches.csv, line 2: ms is 0, and has to be a time"));
  EXPECT_THAT(message(",82,", ",many,"), testing::HasSubstr("sms is many, and has to be a whole number"));
  EXPECT_THAT(message("16x8x1", "16x8"), testing::HasSubstr("grid is 16x8, and has to be like 64x32x1"));
  EXPECT_THAT(message("0100007f", "01g0"), testing::HasSubstr("parameters has no byte 1"));
  EXPECT_THAT(message(",0100007f", ""), testing::HasSubstr("it has 14 cells in place of 15"));
  EXPECT_THAT(message_of(header), testing::HasSubstr("has no launches"));
  EXPECT_THAT(message_of(with(header, "sms", "sm") + first), testing::HasSubstr("the file has no column sms"));
  EXPECT_THROW((void)read_launches(testing::TempDir() + "none.csv"), Error);
}

}  // namespace
}  // namespace kiln::bench::measured_launches_test
