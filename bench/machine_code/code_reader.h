// From a variant to its machine code: made by NVRTC in this process, read by nvdisasm.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernel_code.h"
#include "kiln/device/nvrtc.h"
#include "kiln/generator/catalogue.h"
#include "kiln/store/file_store.h"
#include "kiln/timing/disassembler.h"

namespace kiln::bench {

struct CodeReaderOptions {
  std::optional<std::string> nvrtc;     ///< As device::NvrtcChoice.
  std::optional<std::string> nvdisasm;  ///< As timing::DisassemblerOptions.
  std::string store_folder;             ///< Keeps what is compiled and disassembled. Empty: nothing is kept.
};

/// Thread-safe.
class CodeReader {
 public:
  /// Throws Error(missing_library) if NVRTC or nvdisasm is not found.
  CodeReader(const Catalogue& catalogue, const CodeReaderOptions& options);

  bool supports(const Arch& arch) const { return nvrtc_->supports(arch.major, arch.minor); }
  std::string description() const;  ///< The programs: "NVRTC 13.0, /usr/local/cuda/bin/nvdisasm".

  Target target(const Arch& arch) const;
  /// The first legal configuration of an algorithm. Throws Error(invalid_argument) if it does not serve the request.
  Choice default_choice(const Request& request, const Arch& arch, const std::string& algorithm) const;
  /// `count` legal configurations drawn at random, the same ones each time; all if there are fewer. Throws
  /// Error(invalid_argument) if there is none.
  std::vector<Choice> sample(const Request& request, const Arch& arch, const std::string& algorithm,
                             size_t count) const;

  /// The kernel of the variant whose main loop has the most tensor instructions, with the spills of all kernels. Throws
  /// Error(invalid_argument) if the variant cannot serve the request, Error(compile_failed).
  KernelCode code(const Request& request, const Arch& arch, const Choice& choice);

 private:
  BoundAlgorithm bound(const Request& request, const Arch& arch, const std::string& algorithm) const;

  const Catalogue& catalogue_;
  std::shared_ptr<const device::Nvrtc> nvrtc_;
  timing::Disassembler disassembler_;
  std::optional<store::FileStore> kernels_;
};

}  // namespace kiln::bench
