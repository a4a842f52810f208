// The byte form of a CompiledProgram: a version line, CBOR, a digest of both.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "kiln/base/digest.h"
#include "kiln/base/error.h"
#include "kiln/execution/compile.h"

namespace kiln::execution {
namespace {

using nlohmann::json;

constexpr std::string_view magic = "kiln-compiled 1\n";
constexpr size_t digest_length = 32;

json binary(const std::string& bytes) {
  return json::binary({bytes.begin(), bytes.end()});
}

std::string text_of(const json& value) {
  const json::binary_t& bytes = value.get_binary();
  return {bytes.begin(), bytes.end()};
}

json to_json(const Count& count) {
  return {count.fixed, count.per_n, count.divisor};
}

Count count_from(const json& value) {
  return {value.at(0).get<int64_t>(), value.at(1).get<int64_t>(), value.at(2).get<int64_t>()};
}

struct ArgumentToJson {
  json operator()(const OperandArgument& argument) const { return {{"operand", argument.name}}; }
  json operator()(const WorkspaceArgument& argument) const { return {{"workspace", argument.offset}}; }
  json operator()(Scalar scalar) const { return {{"scalar", static_cast<int>(scalar)}}; }
};

Argument argument_from(const json& value) {
  if (value.contains("operand")) return OperandArgument{value.at("operand").get<std::string>()};
  if (value.contains("workspace")) return WorkspaceArgument{value.at("workspace").get<int64_t>()};
  return static_cast<Scalar>(value.at("scalar").get<int>());
}

struct StepToJson {
  json operator()(const Launch& launch) const {
    json grid = json::array(), arguments = json::array();
    for (const Count& count : launch.grid) grid.push_back(to_json(count));
    for (const Argument& argument : launch.arguments) arguments.push_back(std::visit(ArgumentToJson{}, argument));
    return {{"source", launch.source}, {"entry", launch.entry},  {"grid", grid},
            {"block", launch.block},   {"arguments", arguments}, {"dynamic_shared", launch.dynamic_shared_bytes}};
  }
  json operator()(const ClearWorkspace& clear) const { return {{"clear", clear.offset}, {"bytes", clear.bytes}}; }
};

Step step_from(const json& value) {
  if (value.contains("clear")) {
    return ClearWorkspace{value.at("clear").get<int64_t>(), value.at("bytes").get<int64_t>()};
  }
  Launch launch;
  launch.source = value.at("source").get<size_t>();
  launch.entry = value.at("entry").get<std::string>();
  for (size_t i = 0; i < 3; ++i) launch.grid[i] = count_from(value.at("grid").at(i));
  launch.block = value.at("block").get<std::array<unsigned, 3>>();
  launch.dynamic_shared_bytes = value.at("dynamic_shared").get<unsigned>();
  for (const json& argument : value.at("arguments")) launch.arguments.push_back(argument_from(argument));
  return launch;
}

json to_json(const device::KernelResources& kernel) {
  return {kernel.name,  kernel.arch,          kernel.registers, kernel.spill_stores, kernel.spill_loads,
          kernel.stack, kernel.static_shared, kernel.constant,  kernel.barriers};
}

device::KernelResources resources_from(const json& value) {
  return {value.at(0), value.at(1), value.at(2), value.at(3), value.at(4),
          value.at(5), value.at(6), value.at(7), value.at(8)};
}

json to_json(const CompiledProgram& compiled) {
  json sources = json::array(), steps = json::array(), images = json::array();
  for (const std::string& source : compiled.program.sources) sources.push_back(binary(source));
  for (const Step& step : compiled.program.steps) steps.push_back(std::visit(StepToJson{}, step));
  for (const KernelImage& image : compiled.images) {
    json resources = json::array();
    for (const device::KernelResources& kernel : image.resources) resources.push_back(to_json(kernel));
    images.push_back({{"ptx", binary(image.ptx)}, {"cubin", binary(image.cubin)}, {"resources", resources}});
  }
  return {{"sources", sources},
          {"steps", steps},
          {"workspace", compiled.program.workspace_bytes},
          {"deterministic", compiled.program.deterministic},
          {"images", images},
          {"log", binary(compiled.log)},
          {"seconds", compiled.seconds}};
}

CompiledProgram from_json(const json& value) {
  CompiledProgram compiled;
  for (const json& source : value.at("sources")) compiled.program.sources.push_back(text_of(source));
  for (const json& step : value.at("steps")) compiled.program.steps.push_back(step_from(step));
  compiled.program.workspace_bytes = value.at("workspace").get<int64_t>();
  compiled.program.deterministic = value.at("deterministic").get<bool>();
  for (const json& image : value.at("images")) {
    KernelImage& added = compiled.images.emplace_back();
    added.ptx = text_of(image.at("ptx"));
    added.cubin = text_of(image.at("cubin"));
    for (const json& kernel : image.at("resources")) added.resources.push_back(resources_from(kernel));
  }
  compiled.log = text_of(value.at("log"));
  compiled.seconds = value.at("seconds").get<double>();
  return compiled;
}

[[noreturn]] void refuse(std::string_view what) {
  throw Error(ErrorCode::parse_error, fmt::format("not a compiled program: {}", what), "compile it again");
}

}  // namespace

std::string serialise(const CompiledProgram& compiled) {
  std::string bytes(magic);
  json::to_cbor(to_json(compiled), nlohmann::detail::output_adapter<char>(bytes));
  return bytes + digest_of(bytes);
}

CompiledProgram deserialise(std::string_view bytes) {
  if (!bytes.starts_with(magic)) refuse("it does not start with the version line");
  if (bytes.size() < magic.size() + digest_length) refuse("it is cut off");
  const std::string_view body = bytes.substr(0, bytes.size() - digest_length);
  if (digest_of(body) != bytes.substr(body.size())) refuse("its checksum does not match");
  try {
    return from_json(json::from_cbor(body.substr(magic.size())));
  } catch (const json::exception& error) {
    refuse(error.what());
  }
}

}  // namespace kiln::execution
