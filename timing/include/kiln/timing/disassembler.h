// nvdisasm: machine code as text, kept by digest.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kiln/store/file_store.h"

namespace kiln::timing {

struct DisassemblerOptions {
  /// The program. Unset: `nvdisasm` on PATH, then in bin of CUDA_HOME, then of /usr/local/cuda, then that of the wheel
  /// nvidia-cuda-nvdisasm in VIRTUAL_ENV. Relative places are passed over, and variables of a privileged process
  /// (kiln/base/variables.h).
  std::optional<std::string> program;
  /// Folder that keeps what was printed. Empty: none.
  std::string store_folder;
};

/// A found nvdisasm. Thread-safe.
class Disassembler {
 public:
  /// Throws Error(missing_library) with the places that were tried and what to install; also if what is found there is
  /// no nvdisasm, by what its --version prints.
  explicit Disassembler(const DisassemblerOptions& options);

  const std::string& program() const { return program_; }

  /// Output of `nvdisasm -c -hex` for a cubin: for parse_sass(). Throws Error(compile_failed) with nvdisasm's message,
  /// or if it takes longer than a minute.
  std::string text_of(std::string_view cubin);

 private:
  std::string program_;
  std::string version_;
  std::optional<store::FileStore> store_;
};

}  // namespace kiln::timing
