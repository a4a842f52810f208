#include "kiln/timing/cubin.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "kiln/base/error.h"
#include "machine_code_texts.h"
#include "time_limits.h"

namespace kiln::timing::cubin_test {
namespace {

using testing_support::processor_seconds;

// The expected figures are ptxas -v's for the same file.
TEST(Cubin, TellsRegistersAndMemory) {
  const auto kernels = read_cubin(read_data("kernels_sm_80.cubin"));
  ASSERT_EQ(kernels.size(), 8U);
  const KernelFacts& exchange = find_kernel(kernels, "exchange");
  EXPECT_EQ(exchange.registers, 12);
  EXPECT_EQ(exchange.shared_bytes, 8192U);
  EXPECT_EQ(exchange.local_bytes, 0U);
  EXPECT_EQ(exchange.parameter_base, 0x160U);
  EXPECT_EQ(exchange.parameter_bytes, 12U);
  const KernelFacts& indexed = find_kernel(kernels, "indexed");
  EXPECT_EQ(indexed.registers, 26);
  EXPECT_EQ(indexed.local_bytes, 96U);
  EXPECT_EQ(find_kernel(kernels, "divide").constants.size(), 8U);
  EXPECT_EQ(find_kernel(kernels, "divide").parameter_bytes, 24U);
}

TEST(Cubin, ListsItsKernelsIfOneIsMissing) {
  const auto kernels = read_cubin(read_data("kernels_sm_80.cubin"));
  try {
    find_kernel(kernels, "exchanges");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("no kernel exchanges"), testing::HasSubstr("lanes")));
  }
}

TEST(Cubin, RefusesWhatIsNone) {
  EXPECT_THROW(read_cubin(""), Error);
  EXPECT_THROW(read_cubin(std::string(1000, 'x')), Error);
  const std::string whole = read_data("kernels_sm_80.cubin");
  size_t refused = 0;
  for (size_t size = 0; size < whole.size(); size += 97) {
    try {
      read_cubin(std::string_view(whole).substr(0, size));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::parse_error);
      ++refused;
    }
  }
  EXPECT_GT(refused, whole.size() / 97 / 2);
}

// An attribute of .nv.info: its format 4, what it is, 8 bytes, a symbol, and its value.
void set_attribute(std::string& cubin, char attribute, uint32_t value) {
  const std::string header{'\4', attribute, '\10', '\0'};
  const size_t place = cubin.find(header);
  ASSERT_NE(place, std::string::npos);
  std::memcpy(cubin.data() + place + 8, &value, sizeof value);
}

TEST(Cubin, RefusesKernelsThatNoMachineRuns) {
  constexpr char register_count = 0x2f, frame_size = 0x11;
  const std::string whole = read_data("kernels_sm_80.cubin");
  std::string allowed = whole, registers = whole, frame = whole, sections = whole;
  set_attribute(allowed, register_count, 255);
  EXPECT_NO_THROW(read_cubin(allowed));
  set_attribute(registers, register_count, uint32_t{1} << 27);  // a warp's are 2^32
  EXPECT_THROW(read_cubin(registers), Error);
  set_attribute(frame, frame_size, ~uint32_t{0});
  EXPECT_THROW(read_cubin(frame), Error);
  const uint16_t of_header = 0;  // all 65,535 sections would be the same one
  std::memcpy(sections.data() + offsetof(Elf64_Ehdr, e_shentsize), &of_header, sizeof of_header);
  EXPECT_THROW(read_cubin(sections), Error);
}

// A cubin of `count` sections of each name, which all hold the same `bytes` bytes.
std::string sections_upon_each_other(const std::vector<std::string>& names, uint32_t count, size_t bytes) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_machine = EM_CUDA;
  header.e_shoff = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  std::vector<Elf64_Shdr> sections(1);
  std::string texts(1, '\0');  // the name of the names
  for (uint32_t i = 0; i < count; ++i) {
    for (const std::string& name : names) {
      Elf64_Shdr section{};
      section.sh_name = static_cast<uint32_t>(texts.size());
      section.sh_type = SHT_PROGBITS;
      section.sh_size = bytes;
      sections.push_back(section);
      texts += name;
      if (name.ends_with('.')) texts += std::to_string(i);
      texts += '\0';
    }
  }
  header.e_shnum = static_cast<uint16_t>(sections.size());
  const size_t data = sizeof header + sections.size() * sizeof(Elf64_Shdr);
  for (Elf64_Shdr& section : sections) section.sh_offset = data;
  sections[0].sh_offset = data + bytes;
  sections[0].sh_size = texts.size();
  std::string cubin(reinterpret_cast<const char*>(&header), sizeof header);
  cubin.append(reinterpret_cast<const char*>(sections.data()), sections.size() * sizeof(Elf64_Shdr));
  return cubin + std::string(bytes, '\1') + texts;
}

TEST(Cubin, IsReadInTheTimeOfItsSize) {
  const std::string many = sections_upon_each_other({".text.", ".nv.shared.", ".nv.constant2."}, 21'000, 8);
  const double before = processor_seconds();
  const auto kernels = read_cubin(many);
  EXPECT_LT(processor_seconds() - before, 2);
  ASSERT_EQ(kernels.size(), 21'000U);
  EXPECT_EQ(kernels[20'999].name, "20999");
  EXPECT_EQ(kernels[20'999].shared_bytes, 8U);
  EXPECT_EQ(kernels[20'999].constants, std::string(8, '\1'));
}

TEST(Cubin, RefusesWhatTakesMoreThanItsSize) {
  for (const std::vector<std::string>& names :
       std::vector<std::vector<std::string>>{{".text.", ".nv.constant3"},  // all variables are every kernel's
                                             {".text.", ".nv.constant2"},
                                             {".nv.info"}}) {  // the same attributes again and again
    const std::string cubin = sections_upon_each_other(names, 30'000, names[0] == ".nv.info" ? 1 << 20 : 1 << 10);
    const double before = processor_seconds();
    try {
      read_cubin(cubin);
      ADD_FAILURE() << names.back();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("the same bytes again and again")) << names.back();
    }
    EXPECT_LT(processor_seconds() - before, 2) << names.back();
  }
  EXPECT_THROW(read_cubin(sections_upon_each_other({".text.", ".text."}, 2, 8)), Error) << "which of the two is it?";
}

}  // namespace
}  // namespace kiln::timing::cubin_test
