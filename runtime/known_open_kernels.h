// KnownOpenKernels: the open kernels that are at hand in this process, by the class of layers that they serve.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "kiln/execution/compile.h"
#include "kiln/generator/catalogue.h"

namespace kiln {

/// An open kernel with its images: what a size needs that it serves, without a search through all variants and without
/// a file.
struct OpenKernel {
  OpenKernel(Choice choice_, execution::CompiledProgram compiled);

  /// `program` with the images, if its sources are those that the images were made of.
  std::optional<execution::CompiledProgram> compiled(const Program& program) const;

  Choice choice;
  std::vector<std::string> sources;  ///< Source::code of each
  std::vector<std::string> codes;    ///< code_of() each, for Program::digest_with()
  std::vector<execution::KernelImage> images;
};

/// Thread-safe. A class of layers is what requests have in common that differ in the extents and strides of their
/// operands. It only says where to look: whether a kernel serves a request is decided by its choice and its sources.
class KnownOpenKernels {
 public:
  using Kernels = std::vector<std::shared_ptr<const OpenKernel>>;

  /// Kernels of all classes that were added, at most; of more, the first ones are forgotten.
  static constexpr size_t most = 256;

  /// The kernels of the request's class.
  Kernels of(const Request& request) const;
  void add(const Request& request, std::shared_ptr<const OpenKernel> kernel);
  /// Likewise, of all classes of `requests`, and never forgotten.
  void keep(const std::vector<Request>& requests, const std::shared_ptr<const OpenKernel>& kernel);

 private:
  struct Forgettable {
    std::string of;  // its class
    std::shared_ptr<const OpenKernel> kernel;
  };

  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, Kernels, std::less<>> classes_;
  std::deque<Forgettable> order_;  // the first ones go first
};

}  // namespace kiln
