// Arrays in NumPy's files: what is read, what is refused, what is written.
#include "npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "kiln/base/error.h"

namespace kiln::cli::npy_test {
namespace {

using models::HostArray;
using testing::HasSubstr;

class Npy : public testing::Test {
 protected:
  ~Npy() override { std::filesystem::remove(path_); }

  HostArray read(const std::string& contents) {
    std::ofstream(path_, std::ios::binary).write(contents.data(), static_cast<std::streamsize>(contents.size()));
    return read_npy(path_);
  }
  std::string written(const HostArray& array) {
    write_npy(path_, array);
    std::ifstream stream(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  std::string refusal(const std::string& contents) {
    try {
      (void)read(contents);
      return "read";
    } catch (const Error& error) {
      return error.what();
    }
  }

  const std::string path_ = testing::TempDir() + "kiln_npy_test.npy";
};

/// A file of that version of the format, whose header takes `length` bytes.
std::string file_of(int version, const std::string& header, const std::string& elements, size_t length = 118) {
  std::string text = header;
  text.resize(length - 1, ' ');
  std::string start = "\x93NUMPY";
  start += {static_cast<char>(version), '\0'};
  for (int byte = 0; byte < (version == 1 ? 2 : 4); ++byte) start += static_cast<char>(length >> (8 * byte) & 0xff);
  return start + text + '\n' + elements;
}

std::string header_of(const std::string& type, const std::string& shape, const std::string& columns = "False") {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", type, columns, shape);
}

std::vector<int> bytes_of(const HostArray& array) {
  std::vector<int> bytes;
  for (const std::byte byte : array.bytes) bytes.push_back(static_cast<int>(byte));
  return bytes;
}

TEST_F(Npy, HeadersOfEveryVersionAndLengthAreRead) {
  struct Row {
    int version;
    size_t length;
  };
  for (const Row& row : {Row{1, 118}, {1, 255}, {1, 256}, {1, 700}, {2, 118}, {2, 300}, {2, 70000}, {3, 118}}) {
    const HostArray array = read(file_of(row.version, header_of("|u1", "(2, 3)"), "abcdef", row.length));
    EXPECT_EQ(array.type, "uint8") << row.version << ' ' << row.length;
    EXPECT_EQ(array.extents, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(bytes_of(array), (std::vector<int>{'a', 'b', 'c', 'd', 'e', 'f'}));
  }
}

TEST_F(Npy, ShapesMayHaveAnyNumberOfDimensions) {
  const std::vector<std::tuple<std::string, std::vector<int64_t>, std::string>> rows = {
      {"()", {}, "a"},
      {"(3,)", {3}, "abc"},
      {"( 1 , 2)", {1, 2}, "ab"},
      {"(0, 4)", {0, 4}, ""},
      {"(1,1,1,2)", {1, 1, 1, 2}, "ab"}};
  for (const auto& [shape, extents, elements] : rows) {
    const HostArray array = read(file_of(1, header_of("|u1", shape), elements));
    EXPECT_EQ(array.extents, extents) << shape;
    EXPECT_EQ(array.bytes.size(), elements.size()) << shape;
  }
}

TEST_F(Npy, TheFirstDimensionMayBeTheInnermost) {
  // Elements of two bytes: a number, and the same in capitals.
  const std::string header = header_of("<u2", "(2, 3, 2)", "True");
  const HostArray array = read(file_of(1, header, "aAbBcCdDeEfFgGhHiIjJkKlL"));
  const std::string rows(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
  EXPECT_EQ(rows, "aAgGcCiIeEkKbBhHdDjJfFlL");
}

TEST_F(Npy, WhatIsNoneIsRefusedWithTheReason) {
  const std::string good = file_of(1, header_of("<f4", "(1,)"), "1234");
  EXPECT_EQ(refusal(good), "read");
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"", "is no .npy file"},
      {"\x93NUMPX" + good.substr(6), "is no .npy file"},
      {good.substr(0, 11), "is no .npy file"},
      {good.substr(0, 12), "is cut short"},
      {good.substr(0, 127), "is cut short"},
      {good.substr(0, 128), "has 0 bytes of elements, expected 4"},
      {good + "5", "has 5 bytes of elements, expected 4"},
      {file_of(1, "{'shape': (1,), 'fortran_order': False}", "1234"), "has a header without 'descr'"},
      {file_of(1, "{'descr': '<f4', 'fortran_order': False}", "1234"), "has a header without 'shape'"},
      {file_of(1, "{'descr': '<f4', 'shape': (1,)}", "1234"), "has a header without 'fortran_order'"},
      {file_of(1, header_of("<f4", "4"), "1234"), "has a shape that is no tuple"},
      {file_of(1, header_of("<f4", "(x,)"), "1234"), "has a shape that is no list of extents"},
      {file_of(1, header_of("<f4", "(-1,)"), "1234"), "has a shape that is no list of extents"},
      {file_of(1, header_of("<f4", "(99999999999, 99999999999)"), "1234"),
       "has 4 bytes of elements, and the shape 99999999999x99999999999, which no file holds"},
      {file_of(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "1234"), "holds records"},
      {file_of(1, header_of(">f4", "(1,)"), "1234"), "holds elements of type '>f4'"},
      {file_of(1, header_of("<c8", "(1,)"), "12345678"), "holds elements of type '<c8'"},
      {file_of(1, header_of("", "(1,)"), "1234"), "holds elements of type ''"},
  };
  for (const auto& [contents, message] : rows) {
    EXPECT_THAT(refusal(contents), testing::AllOf(testing::StartsWith(path_ + " "), HasSubstr(message)));
  }
  std::filesystem::remove(path_);
  EXPECT_THROW((void)read_npy(path_), Error);
}

TEST_F(Npy, EveryTypeIsWrittenAsNumPyNamesItAndComesBack) {
  const std::vector<std::tuple<std::string, std::string, size_t>> rows = {
      {"float", "<f4", 4}, {"double", "<f8", 8}, {"float16", "<f2", 2}, {"int64", "<i8", 8}, {"int32", "<i4", 4},
      {"int16", "<i2", 2}, {"uint16", "<u2", 2}, {"int8", "|i1", 1},    {"uint8", "|u1", 1}, {"bool", "|b1", 1}};
  for (const auto& [type, name, size] : rows) {
    HostArray array{type, {1, 3}, std::vector<std::byte>(3 * size)};
    for (size_t i = 0; i < array.bytes.size(); ++i) array.bytes[i] = static_cast<std::byte>(i + 1);
    EXPECT_THAT(written(array), HasSubstr("{'descr': '" + name + "', 'fortran_order': False, 'shape': (1, 3), }"));
    const HostArray back = read_npy(path_);
    EXPECT_EQ(back.type, type);
    EXPECT_EQ(back.extents, array.extents);
    EXPECT_EQ(back.bytes, array.bytes) << type;
  }
  // NumPy has no bfloat16.
  const HostArray brain{"bfloat16", {1}, {std::byte{0x80}, std::byte{0x3f}}};
  EXPECT_THAT(written(brain), HasSubstr("'<f4'"));
  EXPECT_EQ(bytes_of(read_npy(path_)), (std::vector<int>{0, 0, 0x80, 0x3f}));
}

TEST_F(Npy, ElementsBeginAtMultiplesOf64BytesBehindAnyHeader) {
  for (size_t rank = 0; rank < 130; ++rank) {
    const HostArray array{"uint8", std::vector<int64_t>(rank, 1), {std::byte{7}}};
    const std::string file = written(array);
    EXPECT_EQ(file.size() % 64, 1U) << rank;
    EXPECT_EQ(file[file.size() - 2], '\n') << rank;
    EXPECT_EQ(file.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8)) << rank;
    EXPECT_LT(file.size(), 200 + 3 * rank) << "blanks are less than 64";
    EXPECT_EQ(file.find("(1,)") != std::string::npos, rank == 1);
    EXPECT_EQ(read_npy(path_).extents, array.extents) << rank;
  }
}

}  // namespace
}  // namespace kiln::cli::npy_test
