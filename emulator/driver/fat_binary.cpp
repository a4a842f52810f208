#include "driver/fat_binary.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "driver/module.h"

namespace kiln::emulator {
namespace {

constexpr uint32_t container_magic = 0xBA55ED50, wrapper_magic = 0x466243B1;

// How the file looks: little-endian, and so is every host that this runs on.
struct Wrapper {
  uint32_t magic, version;
  const void* container;
};
struct ContainerHeader {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t bytes;  // of the images behind it
};
struct ImageHeader {
  uint16_t kind, version;
  uint32_t header_bytes;
  uint64_t payload_bytes;  // with padding
  uint32_t compressed_bytes, options_offset;
  uint16_t minor, major;
  uint32_t arch;
  uint32_t name_offset, name_bytes;
  uint64_t flags, reserved;
  uint64_t text_bytes;  // of a compressed image
};
static_assert(sizeof(ContainerHeader) == 16 && sizeof(ImageHeader) == 64);

constexpr uint16_t kind_ptx = 1;
constexpr uint64_t lz4_flag = 0x2000, zstd_flag = 0x8000;
constexpr uint64_t most_text_bytes = uint64_t{1} << 30;

[[noreturn]] void refuse_damaged() {
  throw ImageRefused{CUDA_ERROR_INVALID_IMAGE, "the fat binary is damaged or cut off"};
}

template <class T>
T read_at(std::string_view bytes, size_t at) {
  T value;
  if (at > bytes.size() || bytes.size() - at < sizeof value) refuse_damaged();
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// A number of LZ4: 15 in the token's half goes on in the bytes behind it, as long as those are 255.
size_t lz4_length(std::string_view packed, size_t& at, size_t length) {
  if (length != 15) return length;
  for (uint8_t more = 255; more == 255; length += more) more = read_at<uint8_t>(packed, at++);
  return length;
}

/// A block of LZ4: literals and copies of what has come out before, in turn.
std::string unpack_lz4(std::string_view packed, size_t bytes) {
  std::string text;
  text.reserve(bytes);
  for (size_t at = 0; text.size() < bytes;) {
    const auto token = read_at<uint8_t>(packed, at++);
    const size_t literals = lz4_length(packed, at, token >> 4);
    if (literals > packed.size() - at || literals > bytes - text.size()) refuse_damaged();
    text.append(packed.substr(at, literals));
    at += literals;
    if (text.size() >= bytes) break;
    const auto distance = read_at<uint16_t>(packed, at);
    at += sizeof distance;
    const size_t copied = lz4_length(packed, at, token & 15) + 4;
    if (distance == 0 || distance > text.size() || copied > bytes - text.size()) refuse_damaged();
    for (size_t k = 0; k < copied; ++k) text.push_back(text[text.size() - distance]);
  }
  return text;
}

FatImage image_of(const ImageHeader& header, std::string_view payload) {
  FatImage image;
  image.is_ptx = header.kind == kind_ptx;
  image.arch = header.arch;
  if (!image.is_ptx) return image;
  if ((header.flags & zstd_flag) != 0) {
    image.refusal =
        "is compressed by zstd, which is not read here: build with nvcc --no-compress or --compress-mode=speed";
    return image;
  }
  if ((header.flags & lz4_flag) != 0) {
    if (header.compressed_bytes > payload.size() || header.text_bytes > most_text_bytes) refuse_damaged();
    payload = payload.substr(0, header.compressed_bytes);
    image.ptx = unpack_lz4(payload, header.text_bytes);
  } else {
    image.ptx = payload;
  }
  image.ptx.resize(std::min(image.ptx.size(), image.ptx.find('\0')));  // padding
  return image;
}

/// The container that `image` is, or that the wrapper there points to.
std::optional<ContainerHeader> container_header(const void*& image, size_t bytes) {
  uint32_t magic = 0;
  if (bytes < sizeof magic) return std::nullopt;
  std::memcpy(&magic, image, sizeof magic);
  if (magic == wrapper_magic && bytes == SIZE_MAX) {  // a pointer in a file leads nowhere
    Wrapper wrapper;
    std::memcpy(&wrapper, image, sizeof wrapper);
    image = wrapper.container;
    std::memcpy(&magic, image, sizeof magic);
  }
  if (magic != container_magic) return std::nullopt;
  return read_at<ContainerHeader>({static_cast<const char*>(image), std::min(bytes, sizeof(ContainerHeader))}, 0);
}

}  // namespace

bool is_fat_binary(const void* image, size_t bytes) {
  return container_header(image, bytes).has_value();
}

std::vector<FatImage> read_fat_binary(const void* image, size_t bytes) {
  const std::optional<ContainerHeader> header = container_header(image, bytes);
  if (!header || header->header_bytes < sizeof *header) refuse_damaged();
  if (bytes != SIZE_MAX && (header->header_bytes > bytes || header->bytes > bytes - header->header_bytes)) {
    refuse_damaged();
  }
  const std::string_view all(static_cast<const char*>(image) + header->header_bytes, header->bytes);
  std::vector<FatImage> images;
  for (size_t at = 0; at < all.size();) {
    const auto entry = read_at<ImageHeader>(all, at);
    const size_t rest = all.size() - at;
    if (entry.header_bytes < sizeof entry || entry.header_bytes > rest ||
        entry.payload_bytes > rest - entry.header_bytes) {
      refuse_damaged();
    }
    images.push_back(image_of(entry, all.substr(at + entry.header_bytes, entry.payload_bytes)));
    at += entry.header_bytes + entry.payload_bytes;
  }
  return images;
}

}  // namespace kiln::emulator
