// The image that the emulated device is given where a variant has PTX and a cubin.
#include "kiln/device/image.h"

#include <cuda_abi/fat_binary.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "kiln/device/driver.h"

namespace kiln::device::image_test {
namespace {

using namespace cuda_abi;  // NOLINT(google-build-using-namespace): the types of the container

template <class Header>
Header header_at(const std::string& bytes, size_t at) {
  Header header{};
  EXPECT_LE(at + sizeof header, bytes.size());
  std::memcpy(&header, bytes.data() + at, sizeof header);
  return header;
}

// Both follow their headers, padded with zeros to words of 8 bytes, and with one zero at least.
TEST(FatBinary, HoldsPtxAndCubinForTheirArchitecture) {
  const auto emulated = Driver::from_table({}, "emulated", true);
  for (size_t length = 1; length <= 17; ++length) {
    const std::string ptx = ".version 8.0\n.target sm_103a\n" + std::string(length, 'p'), cubin(length, 'c');
    const std::string bytes = loadable_image(*emulated, ptx, cubin);
    const auto container = header_at<FatContainerHeader>(bytes, 0);
    EXPECT_EQ(container.magic, fat_container_magic);
    EXPECT_EQ(container.version, 1);
    EXPECT_EQ(container.header_bytes, sizeof container);
    EXPECT_EQ(container.bytes, bytes.size() - sizeof container);
    size_t at = sizeof container;
    for (const auto& [kind, payload] : {std::pair(fat_kind_ptx, ptx), std::pair(fat_kind_cubin, cubin)}) {
      const auto image = header_at<FatImageHeader>(bytes, at);
      EXPECT_EQ(image.kind, kind);
      EXPECT_EQ(image.version, 0x101);
      EXPECT_EQ(image.header_bytes, sizeof image);
      EXPECT_EQ(image.arch, 103U);
      EXPECT_EQ(image.flags, fat_flag_64_bit | fat_flag_linux);
      EXPECT_EQ(image.payload_bytes % 8, 0U);
      EXPECT_GT(image.payload_bytes, payload.size());
      EXPECT_LE(image.payload_bytes, payload.size() + 8);
      std::string padded = payload;
      padded.resize(image.payload_bytes);
      EXPECT_EQ(bytes.substr(at + sizeof image, image.payload_bytes), padded);
      at += sizeof image + image.payload_bytes;
    }
    EXPECT_EQ(at, bytes.size());
  }
  EXPECT_EQ(header_at<FatImageHeader>(loadable_image(*emulated, "no target", "cubin"), sizeof(FatContainerHeader)).arch,
            0U);
}

}  // namespace
}  // namespace kiln::device::image_test
