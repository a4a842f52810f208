#include "kiln/device/image.h"

#include <cuda_abi/fat_binary.h>

#include <charconv>
#include <string_view>

namespace kiln::device {
namespace {

using cuda_abi::FatContainerHeader;
using cuda_abi::FatImageHeader;

// The NN of PTX's ".target sm_NN".
uint32_t arch_of(std::string_view ptx) {
  constexpr std::string_view directive = ".target sm_";
  const size_t at = ptx.find(directive);
  uint32_t arch = 0;
  if (at != std::string_view::npos) {
    ptx.remove_prefix(at + directive.size());
    std::from_chars(ptx.data(), ptx.data() + ptx.size(), arch);
  }
  return arch;
}

template <class Header>
void append(std::string& bytes, const Header& header) {
  bytes.append(reinterpret_cast<const char*>(&header), sizeof header);
}

void append_image(std::string& images, uint16_t kind, uint32_t arch, const std::string& payload) {
  FatImageHeader header{};
  header.kind = kind;
  header.version = 0x101;
  header.header_bytes = sizeof header;
  header.payload_bytes = payload.size() / 8 * 8 + 8;  // at least one NUL behind text
  header.arch = arch;
  header.flags = cuda_abi::fat_flag_64_bit | cuda_abi::fat_flag_linux;
  append(images, header);
  images += payload;
  images.append(header.payload_bytes - payload.size(), '\0');
}

}  // namespace

std::string loadable_image(const Driver& driver, const std::string& ptx, const std::string& cubin) {
  if (cubin.empty()) return ptx;
  if (!driver.is_emulated()) return cubin;
  const uint32_t arch = arch_of(ptx);
  std::string images;
  append_image(images, cuda_abi::fat_kind_ptx, arch, ptx);
  append_image(images, cuda_abi::fat_kind_cubin, arch, cubin);
  std::string fat;
  append(fat, FatContainerHeader{cuda_abi::fat_container_magic, 1, sizeof(FatContainerHeader), images.size()});
  return fat + images;
}

}  // namespace kiln::device
