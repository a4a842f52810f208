// Fat binaries for tests.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace kiln::emulator::testing {

/// A fat binary, put together as nvcc's are.
class FatBinary {
 public:
  /// `kind`: 1 of PTX, 2 of a cubin. `text_bytes`: of what is compressed.
  FatBinary& add(uint16_t kind, uint32_t arch, std::string payload, uint64_t flags = 0, uint64_t text_bytes = 0) {
    const auto compressed = static_cast<uint32_t>(text_bytes == 0 ? 0 : payload.size());
    payload.resize((payload.size() + 8) / 8 * 8);  // padded with at least one NUL
    put(kind), put(uint16_t{0x101}), put(uint32_t{64}), put(uint64_t{payload.size()});
    put(compressed), put(uint32_t{0}), put(uint16_t{0}), put(uint16_t{9}), put(arch);
    put(uint64_t{0}), put(flags), put(uint64_t{0}), put(text_bytes);
    images_ += payload;
    return *this;
  }
  std::string bytes() const {
    FatBinary header;
    header.put(uint32_t{0xBA55ED50}), header.put(uint16_t{1}), header.put(uint16_t{16}),
        header.put(uint64_t{images_.size()});
    return header.images_ + images_;
  }

 private:
  template <class T>
  void put(T value) {
    images_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  std::string images_;
};

}  // namespace kiln::emulator::testing
