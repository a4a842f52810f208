// kiln bug: all that a report about one layer needs, in one file.
#include <fmt/format.h>
#include <sys/utsname.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "command_line.h"
#include "commands.h"
#include "database.h"
#include "device_choice.h"
#include "input.h"
#include "json.h"
#include "kiln/base/environment.h"
#include "kiln/base/error.h"
#include "kiln/base/output_file.h"
#include "kiln/base/printable.h"
#include "kiln/base/variables.h"
#include "kiln/cache/database.h"
#include "kiln/context.h"
#include "kiln/device/context.h"
#include "kiln/device/device.h"
#include "kiln/generator/expression.h"
#include "kiln/generator/operation.h"
#include "kiln/runtime/settings.h"
#include "kiln/version.h"
#include "layer_run.h"

namespace kiln::cli {
namespace {

struct BugOptions {
  std::string request;
  std::vector<std::string> expressions;
  DeviceChoice device;
  std::string database;
  std::vector<std::string> packs;
  std::string output = "kiln-bug.md";
  bool no_source = false;
};

// A part of the file. The fence is longer than any run of its marks in the text, which is of users and compilers.
std::string section(std::string_view heading, std::string_view language, std::string_view text) {
  std::string fence = "```";
  while (text.find(fence) != std::string_view::npos) fence += '`';
  const std::string_view end = text.ends_with('\n') ? "" : "\n";
  return fmt::format("\n## {}\n\n{}{}\n{}{}{}\n", heading, fence, language, printable(text), end, fence);
}

// Folders of the user are nobody else's business.
std::string without_home(std::string text) {
  const char* const home = variable("HOME");
  if (home == nullptr || std::string_view(home).size() < 2) return text;
  const std::string_view folder = home;
  for (size_t at = text.find(folder); at != std::string::npos; at = text.find(folder, at + 1)) {
    text.replace(at, folder.size(), "~");
  }
  return text;
}

std::string versions_text(const Context& context, const device::DeviceInfo& device) {
  utsname system{};
  const bool is_known = ::uname(&system) == 0;
  std::string text = fmt::format("kiln {}\n{}\n{}\n", version(), context.device_description(), device.id());
  if (is_known) text += fmt::format("{} {} {}\n", system.sysname, system.release, system.machine);
  std::vector<std::string> names = variables_that_begin_with("KILN_");
  for (const std::string& name : names) {
    const char* const value = variable(name.c_str());
    text += fmt::format("{}={}\n", name, value == nullptr ? "" : value);
  }
  return without_home(text);
}

Json json_of(const cache::Record& record) {
  return {{"algorithm", record.algorithm},
          {"algorithm_digest", record.algorithm_digest},
          {"config", record.config},
          {"outcome", record.outcome},
          {"kind", std::string(cache::to_string(record.kind))},
          {"seconds", record.seconds},
          {"samples", record.samples},
          {"check", record.check},
          {"error", record.error},
          {"workspace_bytes", record.workspace_bytes},
          {"kiln_version", record.kiln_version},
          {"driver_version", record.driver_version},
          {"nvrtc_version", record.nvrtc_version},
          {"created_ms", record.created_ms}};
}

std::string records_text(const BugOptions& options, const Environment& environment, const Context& context,
                         const std::string& request) {
  const auto path = cache_path(options.database.empty() ? std::nullopt : std::optional(options.database), environment);
  if (!path) return "no database is used";
  const cache::Database database = cache::Database::open(*path, {.mode = cache::OpenMode::read_only});
  Json records = Json::array();
  for (const cache::Record& record : database.records(request, context.device_id())) records.push_back(json_of(record));
  return records.text(1);
}

// Sources of the variant that the layer gets; the reason where there are none.
std::string source_text(const Context& context, const Request& request, const Environment& environment,
                        const device::DeviceInfo& device) {
  try {
    const std::optional<ExplainedCandidate> chosen = context.explain(request).chosen;
    if (!chosen) return "nothing serves this request";
    const Target target{Arch::of(device.cc_major, device.cc_minor), 13, 0};
    const Program program =
        catalogue_of(environment).program(request, target, {chosen->algorithm, Config::parse(chosen->config)});
    std::string text;
    for (const kiln::Source& source : program.sources) text += source.code;
    return text;
  } catch (const Error& error) {
    return error.what();
  }
}

/// `shows_failure`: not where a compiler's message may quote what is left out.
std::string result_text(const LayerResult& result, bool shows_failure) {
  if (!result.failure.empty() && !shows_failure) return "failed; the message is left out, it may quote user code";
  if (!result.failure.empty()) return fmt::format("failed: {}", result.failure);
  std::string text = fmt::format("variant {} ({})\n", result.variant, result.choice);
  if (result.seconds)
    text += fmt::format("time {:.9g} s, roofline {:.9g} s\n", *result.seconds, result.roofline_seconds);
  if (result.check) text += fmt::format("check: {}\n", result.check->text);
  if (result.launches.size() > 0) text += result.launches.text(1);
  return text;
}

void publish(const std::string& path, const std::string& text) {
  OutputFile file("the report", path);
  file.write(text);
  file.publish();
}

int bug(const BugOptions& options) {
  const Request request = Request::parse(options.request, read_expressions(options.expressions));
  require_packs(options.packs);
  require_database(options.database, {request.key()});
  require_replaceable("the report", options.output);
  ContextOptions settings = options.device.context_options();
  if (!options.database.empty()) settings.cache = options.database;
  settings.packs = options.packs;
  const auto device = device::ContextHandle::acquire(
      device::Device(device::Driver::open({settings.environment->driver}), settings.device));
  const device::DeviceInfo& info = device->device().info();
  Context context(settings);

  std::string text = "# Kiln: report about a layer\n\nWrite here what you saw, and what you expected.\n";
  const Expression* const code = request.user_code.expression();
  const bool shows_code = code != nullptr && !options.no_source;
  text += section("Request", "", (shows_code ? print_definition(code->digest(), *code) + "\n" : "") + request.key());
  text += section("Versions and settings", "", versions_text(context, info));
  text += section("Choice", "json", to_json(context.explain(request)));
  text +=
      section("Records on this device", "json", records_text(options, *settings.environment, context, request.key()));
  if (!options.no_source) {
    text += section("Source", "cuda", source_text(context, request, *settings.environment, info));
  }
  // A run may end this process.
  publish(options.output, text + section("Run", "", "it did not come to an end"));
  CheckTools tools(*settings.environment, device);
  const LayerResult result = run_layer(context, device, request, {.check = true}, tools);
  publish(options.output,
          text + section("Run", "", without_home(result_text(result, !options.no_source || code == nullptr))));
  fmt::print("{}: the request, versions, settings, records{} and a checked run; read it before you send it\n",
             options.output, options.no_source ? "" : ", source");
  return result.right() ? success : failed_check;
}

}  // namespace

void add_bug(Command app, int& exit_code) {
  auto options = std::make_shared<BugOptions>();
  const Command command = app.add_command("bug", "write all that a report about one layer needs into one file");
  command.add_option("request", options->request, "one request in quotes").required();
  add_expressions_to(command, options->expressions);
  options->device.add_to(command);
  add_database_option(command, options->database);
  command.add_option("--pack", options->packs, "packs to use beside the database");
  command.add_option("-o,--output", options->output, "the file (default: kiln-bug.md)").type_name("FILE");
  command.add_flag("--no-source", options->no_source, "leave out user code, and the source of the kernels");
  command.footer("Example: kiln bug 'softmax_forward x=f32:64x1000' -o softmax.md");
  command.on_chosen([options, &exit_code] { exit_code = bug(*options); });
}

}  // namespace kiln::cli
