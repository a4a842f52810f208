// Bundle: compiled variants of an application's requests in one file, used without NVRTC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/execution/compile.h"

namespace kiln::execution {

/// Entry of a bundle's index for one compiled variant.
struct BundledVariant {
  std::string request;    ///< Its key; empty for an open kernel.
  std::string arch;       ///< device::real_arch() that the kernels run on: "sm_90a". They run on no other.
  bool emulated = false;  ///< Holds PTX, for the emulated device; else a cubin, for a real one.
  std::string algorithm, config;
  double seconds = 0;  ///< Time for which it was chosen.
  std::string device;  ///< DeviceId line of the device that it was timed on; empty if it is an estimate.
  int sms = 0;         ///< Multiprocessors of that device.
  int64_t workspace_bytes = 0;
  bool deterministic = true;
  std::string program;  ///< Program::digest() of what was compiled.
  /// code_digest() of each of its sources; empty in bundles that were made before there were open kernels.
  std::vector<std::string> sources{};
  std::string open_line{};  ///< The request with open extents that an open kernel was made for; else empty.
};

/// Identifies the code of a source, whatever it is loaded with.
std::string code_digest(const Source& source);

/// A variant to be written.
struct BundleEntry {
  BundledVariant variant;
  CompiledProgram compiled;
};

/// An opened bundle. Immutable and thread-safe; the file stays open and is read where a kernel is asked for.
///
/// A bundle is code, like a library: its checksums find damage, not intent. Whatever its bytes are, opening and loading
/// either give what was written or throw; kernels from somebody you do not trust can still do on the device whatever
/// kernels can do.
class Bundle {
 public:
  /// Reads the index. Throws Error(io_error) if the file cannot be read; Error(parse_error) with what is wrong if it is
  /// no bundle, of a newer format, cut off, or its index does not match its checksum or makes no sense.
  static std::shared_ptr<const Bundle> open(const std::string& path);
  ~Bundle();
  Bundle(const Bundle&) = delete;
  Bundle& operator=(const Bundle&) = delete;

  const std::string& path() const { return path_; }
  const std::string& kiln_version() const { return kiln_version_; }    ///< Version that wrote it.
  const std::string& nvrtc_version() const { return nvrtc_version_; }  ///< Version that compiled it.
  uint64_t file_bytes() const { return file_bytes_; }

  /// In the order written.
  const std::vector<BundledVariant>& variants() const { return variants_; }
  /// The program of variants()[i], without the sources' text. Throws Error(parse_error) if it is damaged or not what
  /// the index says, Error(io_error) if it cannot be read.
  CompiledProgram load(size_t i) const;

 private:
  struct Place {
    uint64_t offset = 0, bytes = 0;
  };

  Bundle(std::string path, int file);
  void read_index();
  std::string read(uint64_t offset, uint64_t bytes) const;
  [[noreturn]] void refuse(const std::string& what) const;

  std::string path_;
  int file_;
  uint64_t file_bytes_ = 0;
  std::string kiln_version_, nvrtc_version_;
  std::vector<BundledVariant> variants_;
  std::vector<Place> places_;  // parallel to variants_
};

/// Writes a bundle, as OutputFile does. Each program keeps only the image that its devices load: the cubin or the PTX,
/// not the sources. Equal programs are written once. Throws Error(io_error).
void write_bundle(const std::string& path, const std::vector<BundleEntry>& entries, std::string_view kiln_version,
                  std::string_view nvrtc_version);

}  // namespace kiln::execution
