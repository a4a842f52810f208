// Tables of times that a GPU measured, as bench/measured/table.py writes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "kiln/base/error.h"
#include "measured.h"

namespace kiln::bench::measured_variants_test {
namespace {

constexpr const char* head = "# A comment.\n# device name=\"NVIDIA H100 80GB HBM3\" cc=9.0 sms=132\n";
constexpr const char* columns = "request\talgorithm\tconfig\tmicroseconds\tspread\tsamples\tsource\n";
constexpr const char* row = "softmax_forward x=f32:3x100\tsoftmax_row\tTHREADS=64\t4.500\t0.100\t7\tab\n";

std::string written(const std::string& text) {
  const std::string path = testing::TempDir() + "measured.tsv";
  std::ofstream(path) << text;
  return path;
}

std::string message_of(const std::string& text) {
  try {
    (void)read_measured(written(text));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(MeasuredVariants, AreReadByLayer) {
  const std::string other = "softmax_forward x=f32:9x900\tsoftmax_row\tTHREADS=64\t9\t0.1\t3\tcd\n";
  const std::string second = "softmax_forward x=f32:3x100\tsoftmax_row\tTHREADS=128\t5\t0.1\t3\tef\n";
  const MeasuredTable table = read_measured(written(std::string(head) + columns + row + other + second));
  EXPECT_EQ(table.device, "NVIDIA H100 80GB HBM3");
  EXPECT_FALSE(table.calibration);
  ASSERT_EQ(table.layers.size(), 2U);
  EXPECT_EQ(table.layers[0].request, Request::parse("softmax_forward x=f32:3x100").key());
  ASSERT_EQ(table.layers[0].variants.size(), 2U);
  EXPECT_DOUBLE_EQ(table.layers[0].variants[0].seconds, 4.5e-6);
  EXPECT_EQ(table.layers[0].variants[0].source, "ab");
  EXPECT_EQ(name_of(table.layers[0].variants[1].choice), "softmax_row THREADS=128");
  EXPECT_EQ(table.layers[1].times(), (Times{{"softmax_row THREADS=64", 9e-6}}));
}

TEST(MeasuredVariants, HaveTheCalibrationOfTheirDevice) {
  const Calibration figures{.launch_seconds = 4e-6};
  const std::string line = "# calibration " + figures.print() + "\n";
  EXPECT_EQ(read_measured(written(head + line + columns + row)).calibration, figures);
  EXPECT_THAT(message_of(std::string(head) + "# calibration launch_seconds=1\n" + columns + row),
              testing::HasSubstr(", line 3: no figures of a calibration"));
}

TEST(MeasuredVariants, SayWhatIsWrong) {
  const auto message = [](const std::string& line) { return message_of(std::string(head) + columns + line); };
  EXPECT_THAT(message_of(std::string(head) + row), testing::HasSubstr(", line 3: the columns are not \"request"));
  EXPECT_THAT(message_of(std::string(columns) + row), testing::HasSubstr("ends without a device, or without times"));
  EXPECT_THAT(message(""), testing::HasSubstr("ends without a device, or without times"));
  EXPECT_THAT(message("a\tb\tc\t4\t1\t3\n"), testing::HasSubstr(", line 4: not 7 cells (bench/measured/table.py"));
  EXPECT_THAT(message("a\tb\tc\t4\t1\t3\td\t\n"), testing::HasSubstr(", line 4: not 7 cells"));
  for (const char* time : {"0", "-1", "nan", "4x", ""}) {
    EXPECT_THAT(message("softmax_forward x=f32:3x100\ta\t-\t" + std::string(time) + "\t1\t3\td\n"),
                testing::HasSubstr(", line 4: " + std::string(time) + " is no time"));
  }
  EXPECT_THROW((void)read_measured(testing::TempDir() + "none.tsv"), Error);
}

size_t variants_of(const MeasuredTable& table) {
  size_t variants = 0;
  for (const MeasuredLayer& layer : table.layers) variants += layer.variants.size();
  return variants;
}
// Lines of a file behind its comments and the names of its columns.
size_t lines_of(const std::filesystem::path& path) {
  size_t lines = 0;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines += line.starts_with('#') ? 0 : 1;
  return lines - 1;
}

TEST(MeasuredVariants, OfTheRepositoryCanBeRead) {
  size_t files = 0, layers = 0;
  for (const auto& entry : std::filesystem::directory_iterator(KILN_MEASURED)) {
    if (entry.path().extension() != ".tsv") continue;
    const MeasuredTable table = read_measured(entry.path());
    EXPECT_GE(table.layers.size(), 10U) << entry.path();
    EXPECT_EQ(variants_of(table), lines_of(entry.path())) << entry.path();
    layers += table.layers.size();
    ++files;
  }
  EXPECT_GE(files, 4U);
  EXPECT_GE(layers, 24U * files);
}

}  // namespace
}  // namespace kiln::bench::measured_variants_test
