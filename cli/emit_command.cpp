// kiln emit: the CUDA source of a variant, self-contained.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "all_sizes.h"
#include "arch_choice.h"
#include "checks.h"
#include "command_line.h"
#include "commands.h"
#include "database.h"
#include "device_choice.h"
#include "input.h"
#include "json.h"
#include "kiln/base/environment.h"
#include "kiln/base/error.h"
#include "kiln/context.h"
#include "kiln/device/device.h"
#include "kiln/device/nvrtc.h"
#include "kiln/runtime/settings.h"
#include "output.h"
#include "short_forms.h"

namespace kiln::cli {
namespace {

struct EmitOptions {
  std::string request, algorithm, config, arch = "sm_90", database;
  DeviceChoice device;
  size_t source = 0;
  std::vector<std::string> expressions;
  Output output;
};

// Only to say which architectures there are: a source is made without one.
std::shared_ptr<const device::Nvrtc> nvrtc_at_hand(const Environment& environment) {
  try {
    return device::Nvrtc::open({environment.nvrtc});
  } catch (const Error&) {
    return nullptr;
  }
}

// Where no algorithm is named, the one that would be chosen on an H200: a source needs no device, a ranking does.
constexpr DeviceFigures h200{132, 1.98e9, 4.8e12, int64_t{50} << 20};

Choice choose(const Catalogue& catalogue, const Request& request, const Target& target, const EmitOptions& options) {
  if (options.algorithm.empty()) {
    if (!options.config.empty()) {
      throw Error(ErrorCode::invalid_argument, "--config needs --algorithm", "`kiln explain` lists the candidates");
    }
    return catalogue.heuristic(request, target, h200);
  }
  if (!options.config.empty()) return {options.algorithm, Config::parse(options.config)};
  const Algorithm* algorithm = catalogue.find(options.algorithm);
  // One that is unknown or does not apply is refused where it is used, with the reason.
  if (algorithm == nullptr) return {options.algorithm, Config()};
  const BoundAlgorithm bound = algorithm->on(request, target);
  const std::optional<Config> first = bound.first_legal();
  if (!first && !bound.refusal()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("refused: {}: {}", options.algorithm, no_legal_point),
                "`kiln explain` lists the candidates of a request");
  }
  return {options.algorithm, first.value_or(Config())};
}

// A variant, and what it is made for.
struct Emitted {
  Request request;
  Target target;
  Choice choice;
};

// Emits the choice that `kiln explain` names with the database; says it on standard error.
Emitted chosen_with_database(const Request& request, const EmitOptions& options) {
  require_database(options.database, {request.key()});
  ContextOptions settings = options.device.context_options();
  settings.cache = options.database;
  const Context context(settings);
  const std::optional<ExplainedCandidate> chosen = context.explain(request).chosen;
  if (!chosen) {
    throw Error(ErrorCode::unsupported, fmt::format("nothing serves {}", request.key()), "`kiln explain` says why");
  }
  const auto driver = device::Driver::open({settings.environment->driver});
  const device::DeviceInfo device = device::Device(driver, settings.device).info();
  fmt::print(stderr, "{}chosen: {} {} ({})\n", options.device.heading(device, context.device_description()),
             chosen->algorithm, chosen->config, chosen->source);
  return {
      request, {Arch::of(device.cc_major, device.cc_minor), 13, 0}, {chosen->algorithm, Config::parse(chosen->config)}};
}

Target target_of(const EmitOptions& options, const Environment& environment) {
  return {parse_arch(options.arch, nvrtc_at_hand(environment).get()), 13, 0};
}

Emitted chosen_without_device(const Catalogue& catalogue, const Request& request, const EmitOptions& options,
                              const Environment& environment) {
  const Target target = target_of(options, environment);
  return {request, target, choose(catalogue, request, target, options)};
}

// Emits the open kernel that most sizes of a line with open extents take, for one of them; says it on standard error.
Emitted chosen_for_all_sizes(const Catalogue& catalogue, const std::string& line, const EmitOptions& options,
                             const Environment& environment) {
  if (!options.database.empty()) {
    throw Error(ErrorCode::invalid_argument, "--db names the choice of a size, and the request leaves extents open",
                "leave out --db, or give the extents as numbers");
  }
  const Target target = target_of(options, environment);
  const OpenLineKernels all = std::move(all_sizes_of({line}, catalogue, target, h200).front());
  const auto is_wanted = [&](const OpenLineKernel& kernel) {
    const bool of_name = options.algorithm.empty() || kernel.choice.algorithm == options.algorithm;
    return of_name && (options.config.empty() || kernel.choice.config == Config::parse(options.config));
  };
  const auto found = std::ranges::find_if(all.kernels, is_wanted);
  if (found == all.kernels.end()) {
    std::vector<std::string> known;
    for (const OpenLineKernel& one : all.kernels)
      known.push_back(one.choice.algorithm + " " + one.choice.config.print());
    throw Error(ErrorCode::invalid_argument, "no open kernel of the line is of that --algorithm and --config",
                fmt::format("there are {}", fmt::join(known, "; ")));
  }
  fmt::print(stderr, "{} {} for {}: 1 of {} open kernels that sizes of the line take\n", found->choice.algorithm,
             found->choice.config.print(), found->request.key(), all.kernels.size());
  return {found->request, target, found->choice};
}

Emitted chosen(const Catalogue& catalogue, const EmitOptions& options, const Environment& environment) {
  if (is_open_line(options.request)) return chosen_for_all_sizes(catalogue, options.request, options, environment);
  const Request request = Request::parse(options.request, read_expressions(options.expressions));
  return options.database.empty() ? chosen_without_device(catalogue, request, options, environment)
                                  : chosen_with_database(request, options);
}

// How a host starts the kernels, apart from their arguments.
Json program_launches(const Request& request, const Program& program) {
  const int64_t n = request.operands.front().spec.extents[0];  // matters for a dynamic batch only
  Json launches = Json::array();
  for_each_launch(program.steps, [&](const Launch& launch) {
    const auto& [x, y, z] = launch.grid;
    launches.push_back({{"source", uint64_t{launch.source}},
                        {"kernel", launch.entry},
                        {"grid", std::vector<int64_t>{x.at(n), y.at(n), z.at(n)}},
                        {"block", std::vector<unsigned>(launch.block.begin(), launch.block.end())},
                        {"dynamic_shared_bytes", launch.dynamic_shared_bytes}});
  });
  return launches;
}

std::vector<std::string> codes_of(const Program& program) {
  std::vector<std::string> codes;
  for (const kiln::Source& source : program.sources) codes.push_back(source.code);
  return codes;
}

int emit(const EmitOptions& options) {
  const Environment environment = read_environment();
  const Catalogue catalogue = catalogue_of(environment);
  const auto [request, target, choice] = chosen(catalogue, options, environment);
  const Program program = catalogue.program(request, target, choice);
  if (options.source >= program.sources.size()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("--source {}: the variant has {} sources, counted from 0",
                                                         options.source, program.sources.size()));
  }
  if (options.output.json) {
    print_json({{"request", request.key()},
                {"algorithm", choice.algorithm},
                {"config", choice.config.print()},
                {"arch", target.arch.name()},
                {"sources", codes_of(program)},
                {"launches", program_launches(request, program)}});
  } else {
    fmt::print("{}", program.sources[options.source].code);
  }
  return success;
}

}  // namespace

void add_emit(Command app, int& exit_code) {
  auto options = std::make_shared<EmitOptions>();
  const Command command = app.add_command("emit", "print the CUDA source of a variant; nvcc compiles it as it is");
  command.add_option("request", options->request, "one request in quotes").required();
  command.add_option("--algorithm", options->algorithm, "algorithm (default: the choice for an untuned H200)");
  command.add_option("--config", options->config,
                     "configuration NAME=value,... (default: the algorithm's first legal one)");
  command.add_option("--arch", options->arch,
                     "the architecture that the source is for, as 90 or sm_90 (default sm_90)");
  const Option database =
      command
          .add_option("--db", options->database,
                      "tuning database: print the variant that `kiln explain` shows as chosen on the device")
          .type_name("FILE");
  for (const char* name : {"--algorithm", "--config", "--arch"}) database.excludes(command.option(name));
  options->device.add_to(command);
  for (const char* name : {"--device", "--verbose"}) command.option(name).needs(database);
  add_expressions_to(command, options->expressions);
  command.add_option("--source", options->source, "number of the source, if the variant has several (default 0)")
      .check(whole_number(0, 1000));
  options->output.add_json_to(command);
  command.footer(
      "Examples: kiln emit 'softmax_forward x=f32:64x1000' > softmax.cu && nvcc -arch=sm_90 -cubin softmax.cu\n"
      "          kiln emit 'softmax_forward x=f32:64x1000' --db tuning.db > softmax.cu");
  command.on_chosen([options, &exit_code] { exit_code = emit(*options); });
}

}  // namespace kiln::cli
