#include "kiln/execution/bundle.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "../support/failing_flush.h"
#include "../support/file_locks.h"
#include "../support/interrupted_calls.h"
#include "kiln/base/digest.h"
#include "kiln/base/error.h"
#include "kiln/base/file_descriptor.h"

namespace kiln::execution::bundle_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

BundleEntry entry(const std::string& request, const std::string& arch, const std::string& cubin) {
  BundleEntry entry;
  entry.variant.request = request;
  entry.variant.arch = arch;
  entry.variant.algorithm = "conv_direct";
  entry.variant.config = "TILE=4";
  entry.variant.seconds = 1.5e-5;
  entry.variant.device = "name=\"NVIDIA H200\"";
  entry.variant.sms = 132;
  entry.variant.workspace_bytes = 512;
  entry.variant.deterministic = false;
  Launch launch;
  launch.entry = "k";
  launch.block = {64, 1, 1};
  launch.arguments = {OperandArgument{"x"}, WorkspaceArgument{256}};
  entry.compiled.program.sources = {"the source"};
  entry.compiled.program.steps = {launch};
  entry.compiled.program.workspace_bytes = 512;
  entry.compiled.program.deterministic = false;
  entry.variant.program = entry.compiled.program.digest();
  entry.compiled.images = {{"the ptx", cubin, {}}};
  entry.compiled.seconds = 0.25;
  return entry;
}

class BundleTest : public testing::Test {
 protected:
  BundleTest() {
    std::string pattern = (fs::temp_directory_path() / "kiln-bundle-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    path_ = (folder_ / "app.kiln").string();
  }
  ~BundleTest() override { fs::remove_all(folder_); }

  std::string bytes() const {
    std::ifstream stream(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  void put(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

  // Opens and loads everything; what was wrong, or "".
  std::string use() const {
    try {
      const auto bundle = Bundle::open(path_);
      for (size_t i = 0; i < bundle->variants().size(); ++i) bundle->load(i);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }

  // A bundle of nothing but this index, with right lengths and checksums.
  void put_index(const std::string& index, const std::string& body = std::string(64, 'x')) const {
    std::string header =
        fmt::format("kiln-bundle 1 {:020} {:020} {}", 128 + body.size(), index.size(), digest_of(index));
    header.resize(127, ' ');
    put(header + "\n" + body + index);
  }

  fs::path folder_;
  std::string path_;
};

TEST_F(BundleTest, IsFlushedBeforeItIsThere) {
  testing_support::expect_flushed_before_it_is_there(path_, [](const std::string& path) {
    try {
      write_bundle(path, {entry("a", "sm_80", "a cubin")}, "1.2.3", "13.0");
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::io_error);
      return false;
    }
  });
}

TEST_F(BundleTest, GivesBackWhatItsDevicesLoad) {
  BundleEntry emulated = entry("b", "sm_90a", "a cubin");
  emulated.variant.emulated = true;
  write_bundle(path_, {entry("a", "sm_80", "another cubin"), emulated}, "1.2.3", "13.0");
  const auto bundle = Bundle::open(path_);
  EXPECT_EQ(bundle->kiln_version(), "1.2.3");
  EXPECT_EQ(bundle->nvrtc_version(), "13.0");
  ASSERT_EQ(bundle->variants().size(), 2U);
  const BundledVariant& first = bundle->variants()[0];
  EXPECT_EQ(first.request, "a");
  EXPECT_EQ(first.arch, "sm_80");
  EXPECT_EQ(first.device, "name=\"NVIDIA H200\"");
  EXPECT_EQ(first.sms, 132);
  EXPECT_EQ(first.seconds, 1.5e-5);
  EXPECT_EQ(first.workspace_bytes, 512);
  EXPECT_FALSE(first.deterministic);
  EXPECT_FALSE(first.emulated);
  EXPECT_EQ(first.algorithm, "conv_direct");
  EXPECT_EQ(first.config, "TILE=4");
  EXPECT_EQ(first.program, entry("a", "", "").compiled.program.digest());
  EXPECT_TRUE(bundle->variants()[1].emulated);
  EXPECT_EQ(bundle->variants()[1].request, "b");
  const CompiledProgram real = bundle->load(0), modelled = bundle->load(1);
  EXPECT_EQ(real.images.at(0).cubin, "another cubin");
  EXPECT_EQ(real.images.at(0).ptx, "");
  EXPECT_EQ(real.program.sources, std::vector<Source>{""}) << "sources are not needed to run";
  EXPECT_EQ(real.program.steps, entry("a", "", "").compiled.program.steps);
  EXPECT_EQ(modelled.images.at(0).ptx, "the ptx");
  EXPECT_EQ(modelled.images.at(0).cubin, "");
}

TEST_F(BundleTest, HoldsEqualKernelsOnceAtPlacesThatCanBeMapped) {
  const std::string large(100'000, 'c');
  write_bundle(path_, {entry("a", "sm_80", large), entry("b", "sm_80", large), entry("c", "sm_80", "small")}, "1",
               "13");
  EXPECT_LT(fs::file_size(path_), 150'000U);
  EXPECT_EQ(use(), "");
  const std::string text = bytes();
  for (size_t at = text.find("kiln-compiled"); at != std::string::npos; at = text.find("kiln-compiled", at + 1)) {
    EXPECT_EQ(at % 64, 0U);
  }
}

TEST_F(BundleTest, OfEqualEntriesAreEqual) {
  BundleEntry slow = entry("a", "sm_80", "cubin");
  slow.compiled.seconds = 99;
  slow.compiled.log = "a warning";
  write_bundle(path_, {slow}, "1", "13");
  const std::string first = bytes();
  write_bundle(path_, {entry("a", "sm_80", "cubin")}, "1", "13");
  EXPECT_EQ(bytes(), first);
}

TEST_F(BundleTest, IsReadThroughSignals) {
  const testing_support::InterruptedCalls interrupted;
  write_bundle(path_, {entry("a", "sm_80", "cubin")}, "1", "13");
  EXPECT_EQ(use(), "");
  EXPECT_GE(testing_support::InterruptedCalls::count(), 3);
}

TEST_F(BundleTest, ThatCannotBeReadIsNotCalledDamaged) {
  write_bundle(path_, {entry("a", "sm_80", "cubin")}, "1", "13");
  const auto bundle = Bundle::open(path_);
  const testing_support::FailingReads failing(EIO);
  for (const auto& read : {std::function([&] { Bundle::open(path_); }), std::function([&] { bundle->load(0); })}) {
    try {
      read();
      ADD_FAILURE() << "it was read";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::io_error);
      EXPECT_THAT(error.message(), HasSubstr("cannot be read: Input/output error"));
    }
  }
}

TEST_F(BundleTest, ThatIsMissingOrNotAFileIsRefused) {
  EXPECT_THAT(use(), HasSubstr(path_));
  fs::create_directory(path_);
  EXPECT_THAT(use(), HasSubstr("not a file"));
}

TEST_F(BundleTest, ThatIsADatabaseIsRefusedAndKeepsTheLocksOfItsProcess) {
  std::ofstream(path_, std::ios::binary) << std::string("SQLite format 3\0", 16);
  const FileDescriptor file(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(testing_support::lock_file(file.get()));
  EXPECT_THROW(Bundle::open(path_), Error);
  EXPECT_FALSE(testing_support::free_for_others(path_));
}

TEST_F(BundleTest, CutOffOrLongerIsRefusedWhenItIsOpened) {
  write_bundle(path_, {entry("a", "sm_80", "cubin"), entry("b", "sm_90a", "other")}, "1", "13");
  const std::string whole = bytes();
  for (size_t length = 0; length < whole.size(); length += 5) {
    put(whole.substr(0, length));
    EXPECT_THROW(Bundle::open(path_), Error) << length;
  }
  put(whole + "x");
  EXPECT_THROW(Bundle::open(path_), Error);
}

TEST_F(BundleTest, WithAnyByteDamagedIsRefusedOrGivesWhatWasWritten) {
  write_bundle(path_, {entry("a", "sm_80", "cubin")}, "1", "13");
  const std::string whole = bytes();
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    put(damaged);
    const bool padding = whole[i] == '\0';  // between the programs, nobody reads
    EXPECT_EQ(use().empty(), padding) << "byte " << i;
  }
}

TEST_F(BundleTest, OfANewerFormatIsRefusedBySayingSo) {
  write_bundle(path_, {entry("a", "sm_80", "cubin")}, "1", "13");
  std::string newer = bytes();
  newer.replace(0, 14, "kiln-bundle 2 ");
  put(newer);
  EXPECT_THAT(use(), HasSubstr("its format is not 1"));
}

std::string index_with(const std::string& name, const std::string& value) {
  const std::vector<std::pair<std::string, std::string>> fields = {
      {"request", R"("r")"}, {"arch", R"("sm_80")"},    {"emulated", "false"}, {"algorithm", R"("a")"},
      {"config", R"("")"},   {"seconds", "0.1"},        {"device", R"("")"},   {"sms", "0"},
      {"workspace", "0"},    {"deterministic", "true"}, {"program", R"("p")"}, {"offset", "128"},
      {"bytes", "64"}};
  std::string text = R"({"kiln":"1","nvrtc":"13","variants":[{)";
  for (const auto& [field, usual] : fields) text += fmt::format(R"("{}":{},)", field, field == name ? value : usual);
  text.back() = '}';
  return text + "]}";
}

// A hostile writer gets every checksum right.
TEST_F(BundleTest, WhoseIndexMakesNoSenseIsRefused) {
  put_index(index_with("", ""));
  EXPECT_NO_THROW(Bundle::open(path_));
  EXPECT_THAT(use(), HasSubstr("the kernels of r: not a compiled program"));
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"offset", "0"},          {"offset", "129"},    {"offset", "256"},   {"offset", "-64"},
      {"offset", "1e30"},       {"bytes", "65"},      {"bytes", "-1"},     {"bytes", "18446744073709551615"},
      {"bytes", R"("64")"},     {"request", "1"},     {"request", "null"}, {"sms", "99999999999"},
      {"emulated", R"("yes")"}, {"workspace", "1.5"}, {"config", "[]"},    {"request", "\"\xff\xfe\""}};
  for (const auto& [field, value] : wrong) {
    put_index(index_with(field, value));
    EXPECT_THROW(Bundle::open(path_), Error) << field << "=" << value;
  }
  for (const std::string& index :
       {std::string(), std::string("{}"), std::string("[]"), std::string(R"({"kiln":"1","nvrtc":"13","variants":7})"),
        std::string(2'000'000, '['), R"({"kiln":)" + std::string(2'000'000, '{')}) {
    put_index(index);
    EXPECT_THROW(Bundle::open(path_), Error) << index.substr(0, 50);
  }
}

TEST_F(BundleTest, WhoseKernelsAreNotThoseOfItsIndexIsRefused) {
  BundleEntry other = entry("a", "sm_80", "cubin");
  other.variant.workspace_bytes = 0;
  write_bundle(path_, {other}, "1", "13");
  EXPECT_THAT(use(), HasSubstr("not those of its index"));
  write_bundle(path_, {entry("a", "sm_80", "")}, "1", "13");
  EXPECT_THAT(use(), HasSubstr("missing"));
}

}  // namespace
}  // namespace kiln::execution::bundle_test
