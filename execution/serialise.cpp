// The byte form of a CompiledProgram: a version line, the length of a JSON text, the text, the long texts and images
// that it gives the lengths of, and a digest of all that.
//
// JSON text, not a binary form of it: its parser does not recurse, so no input can exhaust the stack.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "argument_json.h"
#include "json_fields.h"
#include "kiln/base/digest.h"
#include "kiln/base/error.h"
#include "kiln/execution/compile.h"
#include "validate.h"

namespace kiln::execution {
namespace {

using nlohmann::json;

constexpr std::string_view magic = "kiln-compiled 6\n";
// Arguments in the workspace had no bytes in 3; launches had neither attributes nor tensor maps in 4; sources had no
// extents in 5.
constexpr std::array<std::string_view, 3> older_magics = {"kiln-compiled 3\n", "kiln-compiled 4\n",
                                                          "kiln-compiled 5\n"};
static_assert(magic.size() == older_magics[0].size() && magic.size() == older_magics[1].size());
constexpr size_t digest_length = 32;
constexpr size_t length_digits = 16;  // hexadecimal

[[noreturn]] void refuse(std::string_view what) {
  throw Error(ErrorCode::parse_error, fmt::format("not a compiled program: {}", what), "compile it again");
}

// ---- writing ----

struct StepToJson {
  json operator()(const Launch& launch) const {
    json grid = json::array(), arguments = json::array();
    for (const Count& count : launch.grid) grid.push_back(to_json(count));
    for (const Argument& argument : launch.arguments) arguments.push_back(to_json(argument));
    return {{"source", launch.source},
            {"entry", launch.entry},
            {"grid", grid},
            {"persistent", launch.persistent},
            {"block", launch.block},
            {"dynamic_shared", launch.dynamic_shared_bytes},
            {"cluster", launch.attributes.cluster},
            {"cooperative", launch.attributes.cooperative},
            {"programmatic", launch.attributes.programmatic},
            {"arguments", arguments}};
  }
  json operator()(const ClearWorkspace& clear) const { return {{"clear", clear.offset}, {"bytes", clear.bytes}}; }
};

json to_json(const device::KernelResources& kernel) {
  return {kernel.name,  kernel.arch,          kernel.registers, kernel.spill_stores, kernel.spill_loads,
          kernel.stack, kernel.static_shared, kernel.constant,  kernel.barriers};
}

json to_json(const std::vector<Extent>& extents) {
  json all = json::array();
  for (const Extent& extent : extents) {
    all.push_back({{"name", extent.name}, {"values", extent.values}, {"bytes", extent.bytes}});
  }
  return all;
}

// The fields of `compiled`; long texts go to the end of `blobs`, and only their lengths stand in the fields.
json to_json(const CompiledProgram& compiled, std::string& blobs) {
  const auto blob = [&blobs](const std::string& bytes) {
    blobs += bytes;
    return bytes.size();
  };
  json sources = json::array(), extents = json::array(), steps = json::array(), images = json::array();
  for (const Source& source : compiled.program.sources) {
    sources.push_back(blob(source.code));
    extents.push_back(to_json(source.extents));
  }
  for (const Step& step : compiled.program.steps) steps.push_back(std::visit(StepToJson{}, step));
  for (const KernelImage& image : compiled.images) {
    json resources = json::array();
    for (const device::KernelResources& kernel : image.resources) resources.push_back(to_json(kernel));
    const size_t ptx = blob(image.ptx), cubin = blob(image.cubin);
    images.push_back({{"ptx", ptx}, {"cubin", cubin}, {"resources", resources}});
  }
  return {{"sources", sources},
          {"extents", extents},
          {"steps", steps},
          {"workspace", compiled.program.workspace_bytes},
          {"preparation", {compiled.program.preparation.steps, compiled.program.preparation.bytes}},
          {"deterministic", compiled.program.deterministic},
          {"images", images},
          {"log", blob(compiled.log)},
          {"seconds", compiled.seconds}};
}

// ---- reading ----

// Hands out the texts behind the fields, in their order.
class Blobs {
 public:
  explicit Blobs(std::string_view bytes) : rest_(bytes) {}

  std::string next(const json& length) {
    const auto bytes = integer<size_t>(length);
    if (bytes > rest_.size()) refuse("a text is longer than what is there");
    std::string text(rest_.substr(0, bytes));
    rest_.remove_prefix(bytes);
    return text;
  }
  void require_end() const {
    if (!rest_.empty()) refuse("more follows than it says");
  }

 private:
  std::string_view rest_;
};

Step step_from(const json& value, int64_t workspace_bytes) {
  if (value.contains("clear")) {
    return ClearWorkspace{integer<int64_t>(value.at("clear")), integer<int64_t>(value.at("bytes"))};
  }
  Launch launch;
  launch.source = integer<size_t>(value.at("source"));
  launch.entry = value.at("entry").get<std::string>();
  for (size_t i = 0; i < 3; ++i) {
    launch.grid[i] = count_from_json(value.at("grid").at(i));
    launch.block[i] = integer<unsigned>(value.at("block").at(i));
  }
  launch.dynamic_shared_bytes = integer<unsigned>(value.at("dynamic_shared"));
  if (value.contains("persistent")) {  // from format 5 on
    launch.persistent = value.at("persistent").get<bool>();
    for (size_t i = 0; i < 3; ++i) launch.attributes.cluster[i] = integer<unsigned>(value.at("cluster").at(i));
    launch.attributes.cooperative = value.at("cooperative").get<bool>();
    launch.attributes.programmatic = value.at("programmatic").get<bool>();
  }
  for (const json& argument : value.at("arguments")) {
    launch.arguments.push_back(argument_from_json(argument, workspace_bytes));
  }
  return launch;
}

device::KernelResources resources_from(const json& value) {
  device::KernelResources resources;
  resources.name = value.at(0).get<std::string>();
  resources.arch = value.at(1).get<std::string>();
  int* const numbers[] = {&resources.registers,     &resources.spill_stores, &resources.spill_loads, &resources.stack,
                          &resources.static_shared, &resources.constant,     &resources.barriers};
  for (size_t i = 0; i < std::size(numbers); ++i) *numbers[i] = integer<int>(value.at(i + 2));
  return resources;
}

std::vector<Extent> extents_from(const json& value) {
  std::vector<Extent> extents;
  for (const json& given : value) {
    Extent& extent = extents.emplace_back();
    given.at("name").get_to(extent.name);
    extent.bytes = integer<int>(given.at("bytes"));
    for (const json& number : given.at("values")) extent.values.push_back(integer<int64_t>(number));
  }
  return extents;
}

CompiledProgram from_json(const json& value, Blobs blobs) {
  CompiledProgram compiled;
  for (const json& source : value.at("sources")) compiled.program.sources.emplace_back(blobs.next(source));
  if (value.contains("extents")) {  // from format 6 on
    for (size_t i = 0; i < compiled.program.sources.size(); ++i)
      compiled.program.sources[i].extents = extents_from(value.at("extents").at(i));
  }
  const auto workspace_bytes = compiled.program.workspace_bytes = integer<int64_t>(value.at("workspace"));
  for (const json& step : value.at("steps")) compiled.program.steps.push_back(step_from(step, workspace_bytes));
  if (value.contains("preparation")) {
    compiled.program.preparation = {integer<size_t>(value.at("preparation").at(0)),
                                    integer<int64_t>(value.at("preparation").at(1))};
  }
  compiled.program.deterministic = value.at("deterministic").get<bool>();
  for (const json& image : value.at("images")) {
    KernelImage& added = compiled.images.emplace_back();
    added.ptx = blobs.next(image.at("ptx"));
    added.cubin = blobs.next(image.at("cubin"));
    for (const json& kernel : image.at("resources")) added.resources.push_back(resources_from(kernel));
  }
  compiled.log = blobs.next(value.at("log"));
  compiled.seconds = value.at("seconds").get<double>();
  blobs.require_end();
  return compiled;
}

}  // namespace

std::string serialise(const CompiledProgram& compiled) {
  std::string blobs;
  const std::string fields = to_json(compiled, blobs).dump();
  std::string bytes = fmt::format("{}{:0{}x}{}", magic, fields.size(), length_digits, fields);
  bytes += blobs;
  return bytes + digest_of(bytes);
}

CompiledProgram deserialise(std::string_view bytes) {
  if (!bytes.starts_with(magic) && std::none_of(older_magics.begin(), older_magics.end(),
                                                [&](std::string_view older) { return bytes.starts_with(older); })) {
    refuse("it does not start with the version line");
  }
  if (bytes.size() < magic.size() + length_digits + digest_length) refuse("it is cut off");
  const std::string_view body = bytes.substr(0, bytes.size() - digest_length);
  if (digest_of(body) != bytes.substr(body.size())) refuse("its checksum does not match");
  const std::string length(body.substr(magic.size(), length_digits));
  const std::string_view rest = body.substr(magic.size() + length_digits);
  size_t fields = 0;
  const auto [end, error] = std::from_chars(length.data(), length.data() + length.size(), fields, 16);
  if (error != std::errc() || end != length.data() + length.size() || fields > rest.size())
    refuse("its length is wrong");
  try {
    CompiledProgram compiled = from_json(json::parse(rest.substr(0, fields)), Blobs(rest.substr(fields)));
    if (const std::string fault = fault_of(compiled); !fault.empty()) refuse(fault);
    return compiled;
  } catch (const json::exception& failure) {
    refuse(failure.what());
  }
}

}  // namespace kiln::execution
