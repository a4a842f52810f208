#include "kiln/generator/algorithm.h"

#include <fmt/format.h>

#include "kiln/base/digest.h"
#include "kiln/base/error.h"

namespace kiln {

std::optional<std::string> Algorithm::refusal(const Request& request, const Target& target) const {
  if (request.operation != operation()) return fmt::format("serves {}, not {}", operation(), request.operation);
  return definition_->refusal(request, target);
}

Program Algorithm::program(const SourceLibrary& library, const Request& request, const Target& target,
                           const Config& config) const {
  std::optional<std::string> reason = refusal(request, target);
  if (!reason) reason = space().refusal(config, request, target);
  if (reason) {
    throw Error(ErrorCode::invalid_argument, fmt::format("refused: {} {}: {}", name(), config.print(), *reason),
                "`kiln explain` lists the candidates of a request");
  }
  return definition_->program(library, request, target, config);
}

Estimate Algorithm::estimate(const Request& request, const Target& target, const DeviceFigures& device,
                             const Config& config) const {
  return definition_->estimate(request, target, device, config);
}

std::string Algorithm::digest(const SourceLibrary& library) const {
  Digest digest;
  digest.add(name());
  for (const std::string& file : closure(library, template_path())) digest.add(file).add(library.text(file));
  const std::string descriptor = template_path().substr(0, template_path().rfind('.')) + ".cpp";
  return digest.add(descriptor).add(library.text(descriptor)).hex();
}

}  // namespace kiln
