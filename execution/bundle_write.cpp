#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "bundle_format.h"
#include "kiln/base/digest.h"
#include "kiln/base/output_file.h"
#include "kiln/execution/bundle.h"
#include "kiln/generator/code_text.h"

namespace kiln::execution {
namespace {

using nlohmann::json;

// The sources are not needed to run, and of the two images of each only one is. Parts that differ from run to run go
// too, so that equal kernels make equal bundles.
CompiledProgram stripped(CompiledProgram compiled, bool emulated) {
  for (Source& source : compiled.program.sources) source.code.clear();
  for (KernelImage& image : compiled.images) (emulated ? image.cubin : image.ptx).clear();
  compiled.log.clear();
  compiled.seconds = 0;
  return compiled;
}

json index_entry(const BundledVariant& variant, uint64_t offset, uint64_t bytes) {
  json entry{{"request", variant.request},
             {"arch", variant.arch},
             {"emulated", variant.emulated},
             {"algorithm", variant.algorithm},
             {"config", variant.config},
             {"seconds", variant.seconds},
             {"device", variant.device},
             {"sms", variant.sms},
             {"workspace", variant.workspace_bytes},
             {"deterministic", variant.deterministic},
             {"program", variant.program},
             {"sources", variant.sources},
             {"offset", offset},
             {"bytes", bytes}};
  if (!variant.open_line.empty()) entry["open_line"] = variant.open_line;
  return entry;
}

}  // namespace

std::string code_digest(const Source& source) {
  return digest_of(code_of(source.code));
}

std::string bundle_format::print_header(const Header& header) {
  std::string line = fmt::format("{}{} {:020} {:020} {}", magic, version, header.index_offset, header.index_bytes,
                                 header.index_digest);
  line.resize(header_bytes - 1, ' ');
  return line + '\n';
}

void write_bundle(const std::string& path, const std::vector<BundleEntry>& entries, std::string_view kiln_version,
                  std::string_view nvrtc_version) {
  OutputFile file("the bundle", path);
  std::string body;
  std::map<std::string, std::pair<uint64_t, uint64_t>> written;  // by content: where it stands
  json index = json::array();
  for (const BundleEntry& entry : entries) {
    const std::string bytes = serialise(stripped(entry.compiled, entry.variant.emulated));
    auto [place, is_new] = written.try_emplace(bytes);
    if (is_new) {
      const uint64_t end = bundle_format::header_bytes + body.size();
      body.append((bundle_format::alignment - end % bundle_format::alignment) % bundle_format::alignment, '\0');
      place->second = {bundle_format::header_bytes + body.size(), bytes.size()};
      body += bytes;
    }
    index.push_back(index_entry(entry.variant, place->second.first, place->second.second));
  }
  const std::string text = json{{"kiln", kiln_version}, {"nvrtc", nvrtc_version}, {"variants", index}}.dump();
  const bundle_format::Header header{bundle_format::header_bytes + body.size(), text.size(), digest_of(text)};
  file.write(bundle_format::print_header(header));
  file.write(body);
  file.write(text);
  file.publish();
}

}  // namespace kiln::execution
