// gpu_kit/unpack.cpp as a function: what it writes is on the disk when it says so.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lzma.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "failing_flush.h"

int unpack_main(int count, char** arguments);

namespace kiln::unpack_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::Flushes;

std::string packed(const std::string& text, lzma_check check = LZMA_CHECK_SHA256) {
  std::vector<uint8_t> out(lzma_stream_buffer_bound(text.size()));
  size_t used = 0;
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  EXPECT_EQ(lzma_easy_buffer_encode(6, check, nullptr, bytes, text.size(), out.data(), &used, out.size()), LZMA_OK);
  return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(used)};
}

class Unpack : public testing::Test {
 protected:
  Unpack() : scratch_(fs::path(testing::TempDir()) / "unpack"), folder_(scratch_ / "folder") {
    fs::remove_all(scratch_);
    fs::create_directories(folder_);
  }
  ~Unpack() override { fs::remove_all(scratch_); }

  // Its status with these bytes as its input.
  int run(const std::string& input) {
    const fs::path file = scratch_ / "input";
    std::ofstream(file, std::ios::binary) << input;
    if (std::freopen(file.c_str(), "rb", stdin) == nullptr) ADD_FAILURE() << "no input";
    std::string program = "unpack", folder = folder_;
    char* arguments[] = {program.data(), folder.data(), nullptr};
    testing::internal::CaptureStderr();
    const int status = unpack_main(2, arguments);
    said_ = testing::internal::GetCapturedStderr();
    return status;
  }

  std::string content(const std::string& name) const {
    std::ifstream stream(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  static fs::perms mode(const fs::path& file) { return fs::status(file).permissions() & fs::perms(0777); }

  fs::path scratch_, folder_;
  std::string said_;
};

const std::string files = "644 5 a/b\nhello755 3 c\nabc600 0 empty\n";

TEST_F(Unpack, WritesEveryFileDownToTheDisk) {
  const Flushes watched;
  EXPECT_EQ(run(packed(files)), 0) << said_;
  EXPECT_EQ(content("a/b"), "hello");
  EXPECT_EQ(content("c"), "abc");
  EXPECT_EQ(content("empty"), "");
  EXPECT_EQ(mode(folder_ / "a/b"), fs::perms(0644));
  EXPECT_EQ(mode(folder_ / "c"), fs::perms(0755));
  EXPECT_EQ(mode(folder_ / "empty"), fs::perms(0600));
  EXPECT_THAT(watched.paths(), ElementsAre(folder_ / "a/b", folder_ / "c", folder_ / "empty"));
}

TEST_F(Unpack, SaysThatADiskDoesNotTakeAFile) {
  for (const std::string& one : {files, std::string("600 0 empty\n")}) {
    const Flushes broken(Flushes::Of::files);
    EXPECT_EQ(run(packed(one)), 1);
    EXPECT_THAT(said_, HasSubstr(": Input/output error"));
  }
}

TEST_F(Unpack, SaysThatItsInputIsNotWhatWasPacked) {
  const std::string whole = packed(files);
  std::string damaged = whole;
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 1);
  const std::vector<std::pair<std::string, std::string>> inputs = {
      {damaged, "damaged"},
      {whole.substr(0, whole.size() - 1), "ends early"},
      {"", "ends early"},
      {whole + "x", ""},
      {packed(files, LZMA_CHECK_NONE), "not known here"},
      {files, "no .xz file"},
      {packed(files.substr(0, files.size() - 1)), "its last file ends early"},
      {packed("644 5 b\nhell"), "its last file ends early"},
      {packed("nonsense\n"), "it holds no files"},
      {packed("644 1 a/../../b\nx"), "leads out of the folder"}};
  for (const auto& [input, reason] : inputs) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    EXPECT_EQ(run(input), 1) << reason;
    EXPECT_THAT(said_, HasSubstr(reason));
  }
}

TEST_F(Unpack, ReplacesNoFile) {
  std::ofstream(folder_ / "c") << "what was there";
  EXPECT_EQ(run(packed(files)), 1);
  EXPECT_THAT(said_, HasSubstr("File exists"));
  EXPECT_EQ(content("c"), "what was there");
}

}  // namespace
}  // namespace kiln::unpack_test
