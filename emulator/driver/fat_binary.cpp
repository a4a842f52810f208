#include "fat_binary.h"

#include <cuda_abi/fat_binary.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "module.h"

namespace kiln::emulator {
namespace {

constexpr uint64_t most_image_bytes = uint64_t{1} << 30;

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

FatImage image_of(const FatImageHeader& header, std::string_view payload) {
  FatImage image;
  image.is_ptx = header.kind == fat_kind_ptx;
  image.arch = header.arch;
  if (!image.is_ptx && header.kind != fat_kind_cubin) return image;
  if ((header.flags & fat_flag_zstd) != 0) {
    image.refusal =
        "is compressed by zstd, which is not read here: build with nvcc --no-compress or --compress-mode=speed";
    return image;
  }
  if ((header.flags & fat_flag_lz4) != 0) {
    if (header.compressed_bytes > payload.size() || header.unpacked_bytes > most_image_bytes) refuse_damaged();
    payload = payload.substr(0, header.compressed_bytes);
    image.content = unpack_lz4(payload, header.unpacked_bytes);
  } else {
    image.content = payload;
  }
  if (image.is_ptx) image.content.resize(std::min(image.content.size(), image.content.find('\0')));  // padding
  return image;
}

/// The container that `image` is, or that the wrapper there points to.
std::optional<FatContainerHeader> container_header(const void*& image, size_t bytes) {
  uint32_t magic = 0;
  if (bytes < sizeof magic) return std::nullopt;
  std::memcpy(&magic, image, sizeof magic);
  if (magic == fat_wrapper_magic && bytes == SIZE_MAX) {  // a pointer in a file leads nowhere
    FatWrapper wrapper;
    std::memcpy(&wrapper, image, sizeof wrapper);
    image = wrapper.container;
    std::memcpy(&magic, image, sizeof magic);
  }
  if (magic != fat_container_magic) return std::nullopt;
  return read_at<FatContainerHeader>({static_cast<const char*>(image), std::min(bytes, sizeof(FatContainerHeader))}, 0);
}

}  // namespace

bool is_fat_binary(const void* image, size_t bytes) {
  return container_header(image, bytes).has_value();
}

std::vector<FatImage> read_fat_binary(const void* image, size_t bytes) {
  const std::optional<FatContainerHeader> header = container_header(image, bytes);
  if (!header || header->header_bytes < sizeof *header) refuse_damaged();
  if (bytes != SIZE_MAX && (header->header_bytes > bytes || header->bytes > bytes - header->header_bytes)) {
    refuse_damaged();
  }
  const std::string_view all(static_cast<const char*>(image) + header->header_bytes, header->bytes);
  std::vector<FatImage> images;
  for (size_t at = 0; at < all.size();) {
    const auto entry = read_at<FatImageHeader>(all, at);
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
