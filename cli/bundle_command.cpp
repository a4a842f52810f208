// kiln bundle: compiled variants in one file, for an application that has no NVRTC.
#include <fmt/format.h>

#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "arch_choice.h"
#include "checks.h"
#include "command_line.h"
#include "commands.h"
#include "database.h"
#include "input.h"
#include "json.h"
#include "kiln/base/error.h"
#include "kiln/base/output_file.h"
#include "kiln/base/printable.h"
#include "kiln/device/nvrtc.h"
#include "kiln/execution/bundle.h"
#include "kiln/runtime/bundling.h"
#include "kiln/runtime/settings.h"
#include "kiln/version.h"
#include "output.h"
#include "short_forms.h"
#include "table.h"

namespace kiln::cli {
namespace {

struct BundleFlags {
  Input input;
  std::vector<std::string> archs;
  std::string database, output;
  std::vector<std::string> packs;
  bool open = false, emulated = false, untuned = false, unchecked = false, deterministic = false, list = false;
  int64_t workspace_limit = std::numeric_limits<int64_t>::max();
  Output output_format;
};

Json json_of(const execution::BundledVariant& variant) {
  return {{"request", variant.request},   {"open_line", variant.open_line}, {"arch", variant.arch},
          {"emulated", variant.emulated}, {"algorithm", variant.algorithm}, {"config", variant.config},
          {"seconds", variant.seconds},   {"device", variant.device}};
}

Json json_of(const std::string& path, const execution::Bundle& bundle) {
  Json variants = Json::array();
  for (const execution::BundledVariant& variant : bundle.variants()) variants.push_back(json_of(variant));
  return {{"bundle", path},
          {"bytes", bundle.file_bytes()},
          {"kiln_version", bundle.kiln_version()},
          {"nvrtc_version", bundle.nvrtc_version()},
          {"variants", variants}};
}

int list(const std::string& path, const Output& output) {
  (void)read_environment();
  require_file(path);
  const auto bundle = execution::Bundle::open(path);
  Table table({"request", "for", "variant", ">time", "timed on"});
  for (size_t i = 0; i < bundle->variants().size(); ++i) {
    (void)bundle->load(i);  // throws if it is damaged
    const execution::BundledVariant& variant = bundle->variants()[i];
    const std::string& of = variant.open_line.empty() ? variant.request : variant.open_line;
    table.add({of, variant.arch + (variant.emulated ? " emulated" : ""), variant.algorithm + " " + variant.config,
               time_text(variant.seconds), variant.device.empty() ? "(estimate)" : variant.device});
  }
  if (output.json)
    print_json(json_of(path, *bundle));
  else
    fmt::print("{}: {} bytes, by Kiln {} and NVRTC {}\n\n{}", path, bundle->file_bytes(), bundle->kiln_version(),
               bundle->nvrtc_version(), output.print(table));
  return success;
}

void require_what_to_make(const BundleFlags& options) {
  if (options.archs.empty()) {
    throw Error(ErrorCode::invalid_argument, "--arch is missing",
                options.emulated ? "the emulated device has an architecture too, by default 90: --arch 90"
                                 : "name the architectures: --arch 80,90");
  }
  if (options.output.empty()) {
    throw Error(ErrorCode::invalid_argument, "-o is missing", "name the bundle: -o app.kiln");
  }
}

BundleOptions bundle_options(const BundleFlags& options, const device::Nvrtc& nvrtc) {
  BundleOptions result;
  for (const std::string& arch : options.archs) result.archs.push_back(parse_arch(arch, &nvrtc));
  result.emulated = options.emulated;
  result.untuned = options.untuned;
  result.unchecked_templates = options.unchecked;
  result.filter = {options.workspace_limit, options.deterministic};
  return result;
}

cache::Database open_database(const BundleFlags& options, const Environment& environment) {
  const bool named = !options.database.empty() && options.database != "off";
  if (named) return open_or_fail(options.database, cache::OpenMode::read_only);
  const auto path = cache_path(options.database.empty() ? std::nullopt : std::optional(options.database), environment);
  if (!path) return cache::Database::in_memory();
  OpenedDatabase opened = open_announced(*path, cache::OpenMode::read_only);
  if (opened.trouble) fmt::print(stderr, "kiln: {}\n", opened.trouble->text());
  return std::move(opened.database);
}

size_t requests_with_gaps(const BundlePlan& plan) {
  std::set<std::string> requests;
  for (const BundleGap& gap : plan.gaps) requests.insert(gap.request);
  return requests.size();
}

void print_gaps(const BundlePlan& plan, const BundleFlags& options, size_t requests) {
  constexpr size_t most = 10;
  fmt::print(stderr, "kiln: no bundle is written: {} of {} requests have no variant for an architecture\n",
             requests_with_gaps(plan), requests);
  for (size_t i = 0; i < plan.gaps.size() && i < most; ++i) {
    const BundleGap& gap = plan.gaps[i];
    fmt::print(stderr, "      {} for {}: {}\n", gap.request, gap.arch, gap.reason);
  }
  if (plan.gaps.size() > most) fmt::print(stderr, "      and {} more\n", plan.gaps.size() - most);
  if (options.open) return;
  fmt::print(stderr, "      tune on {} of these architectures, name its database or pack, or give --untuned{}\n",
             options.emulated ? "an emulated device" : "a device",
             options.emulated ? "" : "; --emulated bundles for the emulated device");
}

int bundle(const BundleFlags& options) {
  if (options.list) return list(options.input.text, options.output_format);
  require_what_to_make(options);
  require_replaceable("the bundle", options.output);
  const Environment environment = read_environment();
  require_packs(options.packs);
  Workload workload;
  std::vector<std::string> open;
  if (options.open)
    open = read_open_lines(options.input);
  else
    workload = read_workload(options.input);
  std::vector<Request> requests;
  for (const tuner::Job& job : workload.jobs) requests.push_back(job.request);

  const Catalogue catalogue = catalogue_of(environment);
  const auto nvrtc = device::Nvrtc::open({environment.nvrtc});
  const BundleOptions what = bundle_options(options, *nvrtc);
  const BundlePlan plan =
      options.open ? plan_open_kernels(open, catalogue, *nvrtc, what)
                   : plan_bundle(requests, catalogue, *nvrtc, open_database(options, environment), options.packs, what);
  const size_t count = options.open ? open.size() : requests.size();
  for (const std::string& line : plan.remarks) fmt::print(stderr, "kiln: {}\n", printable(line));
  for (const std::string& line : plan.not_believed) fmt::print(stderr, "kiln: {}\n", printable(line));
  if (!plan.gaps.empty()) {
    print_gaps(plan, options, count);
    return failed_check;
  }
  std::optional<store::FileStore> kernels;
  if (const auto store = kernel_store(std::nullopt, environment)) kernels.emplace(*store);
  const auto entries = compile_bundle(plan, catalogue, *nvrtc, options.emulated, kernels ? &*kernels : nullptr);
  execution::write_bundle(options.output, entries, version(),
                          fmt::format("{}.{}", nvrtc->version().major, nvrtc->version().minor));

  const auto written = execution::Bundle::open(options.output);
  if (options.output_format.json) {
    Json json = json_of(options.output, *written);
    json.set("not_covered", not_covered_json(workload.not_covered));
    print_json(json);
    return success;
  }
  Table table({"layer", "for", "variant", "choice"});
  for (size_t i = 0; i < entries.size(); ++i) {
    const execution::BundledVariant& variant = entries[i].variant;
    table.add({variant.open_line.empty() ? summary(plan.choices[i].request) : variant.open_line, variant.arch,
               variant.algorithm + " " + variant.config, plan.choices[i].source});
  }
  fmt::print("{}\n{}: {} variants of {} requests, {} bytes\n{}", options.output_format.print(table), options.output,
             entries.size(), count, written->file_bytes(), not_covered_text(workload.not_covered));
  return success;
}

}  // namespace

void add_bundle(Command app, int& exit_code) {
  auto options = std::make_shared<BundleFlags>();
  const Command command = app.add_command("bundle", "compile the stored winners into one file that needs no NVRTC");
  options->input.add_to(command);
  command.add_option("--arch", options->archs, "architectures, with commas between: 80,90").one_list();
  command.add_option("-o,--output", options->output, "the bundle to write");
  const Option database = add_database_option(command, options->database);
  const Option packs = command.add_option("--pack", options->packs, "packs to use beside the database");
  command
      .add_flag("--open", options->open,
                "open kernels instead of winners: extents of the requests may be ?, ?N (up to N), ?NAME or ?(h-1)/2+1")
      .excludes(database)
      .excludes(packs);
  command.add_flag("--emulated", options->emulated,
                   "for the emulated device of each --arch, with the variants tuned on it");
  command.add_flag("--untuned", options->untuned,
                   "use the best estimate for requests without records, instead of failing");
  command.add_flag("--allow-unchecked-templates", options->unchecked,
                   "with --untuned: also user templates that no check has passed");
  command.add_flag("--deterministic", options->deterministic, "only variants whose results are reproducible");
  command.add_option("--workspace-limit", options->workspace_limit, "only variants that need at most so many bytes")
      .check(whole_number(0, std::numeric_limits<int64_t>::max()));
  options->output_format.add_to(command);
  command.add_flag("--list", options->list,
                   "list the contents of a bundle and check all of it, instead of writing one");
  command.footer(
      "Each architecture gets the winner of each of its devices that the database or a pack knows. No device is "
      "needed.\n"
      "Example: kiln bundle examples/models/resnet18.onnx --arch 80,90 --pack tuned.pack -o resnet18.kiln\n"
      "         kiln bundle --open 'softmax_forward x=f16:?x?' --arch 80,90 -o softmax.kiln\n"
      "         kiln bundle --list resnet18.kiln");
  command.on_chosen([options, &exit_code] { exit_code = bundle(*options); });
}

}  // namespace kiln::cli
