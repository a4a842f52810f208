#include "kiln/generator/algorithm.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "kiln/base/digest.h"
#include "kiln/base/error.h"
#include "kiln/generator/code_text.h"
#include "kiln/generator/operation.h"
#include "text_parsing.h"
#include "user_code.h"

namespace kiln {
namespace {

std::string without_extension(const std::string& path) {
  return path.substr(0, path.rfind('.'));
}

// Files of the generator that shape the sources of every algorithm; a descriptor includes those that shape the sources
// of its operation.
constexpr const char* shaping[] = {"kiln/generator/dtype",
                                   "kiln/generator/expression",
                                   "kiln/generator/specialise",
                                   "kiln/generator/tensor_spec",
                                   "kiln/generator/window_axis",
                                   "operations/finish",
                                   "user_code"};

constexpr const char* no_order_of_sums = "no order of sums is known that all batches can keep";

// Names a file, which has a digest of its own: the folder that it lies in does not count, the place of the line does.
bool names_a_file(std::string_view line) {
  return line.starts_with("#include \"") && !line.starts_with("#include \"user/") &&
         !line.starts_with("#include \"per_class/");
}

}  // namespace

const std::string& CodeDigests::of(const std::string& path) {
  if (const auto known = known_.find(path); known != known_.end()) return known->second;
  std::string code;
  for (const std::string_view line : text::split(library_.text(path), '\n')) {
    code.append(names_a_file(line) ? "#include" : line).append(1, '\n');
  }
  return known_.emplace(path, digest_of(code_of(code))).first->second;
}

const CodeDigests::Unit& CodeDigests::unit(const std::string& stem) {
  const auto [found, is_new] = units_.try_emplace(stem);
  Unit& unit = found->second;
  if (!is_new) return unit;  // finished, or among the files that are being read, which may include each other
  for (const char* extension : {".h", ".cpp", ".json"}) {
    const std::string path = stem + extension;
    if (!library_.files().contains(path)) continue;
    unit.digests.emplace_back(of(path));
    for (const SourceLibrary::Include& include : library_.includes(path)) {
      unit.includes.push_back(&this->unit(without_extension(include.target)));
    }
  }
  return unit;
}

std::vector<std::string_view> CodeDigests::of_descriptors(const std::vector<std::string>& stems) {
  std::vector<const Unit*> open;
  for (const std::string& stem : stems) open.push_back(&unit(stem));
  std::unordered_set<const Unit*> seen;
  std::vector<std::string_view> digests;
  while (!open.empty()) {
    const Unit* const next = open.back();
    open.pop_back();
    if (!seen.insert(next).second) continue;
    digests.insert(digests.end(), next->digests.begin(), next->digests.end());
    open.insert(open.end(), next->includes.begin(), next->includes.end());
  }
  std::ranges::sort(digests);
  digests.erase(std::unique(digests.begin(), digests.end()), digests.end());
  return digests;
}

Source Emitter::source(Prelude prelude) const {
  add_user_code(prelude, request_);
  return source_of(template_path_, std::move(prelude));
}

Source Emitter::plain_source(const std::string& template_path, Prelude prelude) const {
  add_user_code(prelude, without_user_code(request_));
  return source_of(template_path, std::move(prelude));
}

Source Emitter::source_of(const std::string& template_path, Prelude prelude) const {
  prelude.widen(offsets_);
  if (open_) prelude.open();
  return {specialise(library_, template_path, prelude, title_), prelude.open_extents()};
}

Emitter DeclaredBindingBase::emitter(const SourceLibrary& library, const std::string& name,
                                     const std::string& template_path, const Config& config, Offsets offsets) const {
  const std::string of_request = open_ ? "" : request_.key() + "\n";  // sources of many sizes are equal texts
  return Emitter(library, *request_, template_path,
                 of_request + name + " " + config.print() + " " + target_.arch.name(), offsets, open_);
}

DescribeBase::DescribeBase(std::string name, std::string operation, std::string template_path) {
  definition_.name = std::move(name);
  definition_.operation = std::move(operation);
  definition_.template_path = std::move(template_path);
}

void DescribeBase::add_parameter(std::string name, std::vector<int64_t> values) {
  definition_.space.add(Parameter{std::move(name), std::move(values)});
}

void DescribeBase::add(std::string rule, bool prunes) {
  definition_.space.add(Rule{std::move(rule), prunes});
}

std::optional<Algorithm> Algorithm::opened() const {
  if (!definition_->bind_opened) return std::nullopt;
  Definition open = *definition_;
  open.name += "_open";
  open.open = true;
  open.trusted = false;
  open.bind = std::exchange(open.bind_opened, nullptr);
  open.space.add(Rule{std::string(opened_rule)});
  return Algorithm(std::move(open));
}

BoundAlgorithm Algorithm::on(const KeyedRequest& request, const Target& target) const {
  return BoundAlgorithm(*this, request, target);
}

namespace {

std::optional<std::string> prologue_refusal(const Algorithm::Definition& definition, const Request& request) {
  if (definition.prologues == Prologues::none) return "its kernels take no prologue";
  if (has_prologue_of_images(request) && !definition.prologue_of_images) {
    return "its kernels read tensors of a prologue by channels alone, not by images";
  }
  if (definition.prologues == Prologues::any || has_rounded_prologue(request)) return std::nullopt;
  const std::string_view input = operation(request.operation).prologue_operand();
  if (request.at(input).dtype == DType::f32) return std::nullopt;
  return fmt::format("its kernels keep {} in {}: they take a prologue that is rounded to it (--- rounded prologue)",
                     input, to_string(request.at(input).dtype));
}

}  // namespace

BoundAlgorithm::BoundAlgorithm(Algorithm algorithm, const KeyedRequest& request, const Target& target,
                               std::optional<SumsDemand> demand)
    : algorithm_(std::move(algorithm)), request_(request), demand_(std::move(demand)) {
  const Algorithm::Definition& definition = algorithm_.definition();
  if (request->operation != definition.operation)
    refusal_ = fmt::format("serves {}, not {}", definition.operation, request->operation);
  else if (lacks_user_text(*request))
    refusal_ = missing_user_text(*request).message();
  else if (has_prologue(*request))
    refusal_ = prologue_refusal(definition, *request);
  if (refusal_) return;
  binding_ = definition.bind(request, target);
  refusal_ = binding_->refusal();
}

std::optional<std::string> BoundAlgorithm::refusal(const Config& config, Rules rules) const {
  if (refusal_) return refusal_;
  rules = rules_of(rules);
  auto why = algorithm_.space().refusal(config, [&](Point point) { return binding_->broken_rule(point, rules); });
  return why || keeps_order(config) ? why : why_not_in_order(config);
}

bool BoundAlgorithm::keeps_order(const Config& config) const {
  return !demand_ || (demand_->order && binding_->order_of_sums(config) == demand_->order);
}

std::string BoundAlgorithm::why_not_in_order(const Config& config) const {
  if (!demand_->order) return no_order_of_sums;
  const std::string order = binding_->order_of_sums(config).value_or("one that may depend on the batch");
  return fmt::format("its order of sums is another than that of all batches: {}, not {}", order, *demand_->order);
}

std::string BoundAlgorithm::why_no_point() const {
  if (!demand_) return std::string(no_legal_point);
  if (!demand_->order) return no_order_of_sums;
  return fmt::format("no legal point of it adds in the order of all batches: {}", *demand_->order);
}

bool BoundAlgorithm::is_legal(const Config& config) const {
  if (refusal_) return false;
  const Rules rules = rules_of(Rules::all);
  const auto broken = [&](Point point) { return binding_->broken_rule(point, rules); };
  return algorithm_.space().is_legal(config, broken) && keeps_order(config);
}

void BoundAlgorithm::for_each_legal(const std::function<bool(const Config&)>& visit) const {
  if (refusal_) return;
  const Rules rules = rules_of(Rules::all);
  algorithm_.space().for_each_legal([&](Point point) { return binding_->broken_rule(point, rules); },
                                    [&](const Config& config) { return !keeps_order(config) || visit(config); });
}

std::vector<Config> BoundAlgorithm::legal() const {
  std::vector<Config> result;
  for_each_legal([&](const Config& config) {
    result.push_back(config);
    return true;
  });
  return result;
}

std::optional<Config> BoundAlgorithm::first_legal() const {
  std::optional<Config> first;
  for_each_legal([&](const Config& config) {
    first = config;
    return false;
  });
  return first;
}

Program BoundAlgorithm::program(const SourceLibrary& library, const Config& config, Rules rules,
                                Offsets offsets) const {
  if (lacks_user_text(*request_)) throw missing_user_text(*request_);
  if (const std::optional<std::string> reason = refusal(config, rules)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("refused: {}{}: {}", algorithm_.name(), config.values().empty() ? "" : " " + config.print(),
                            *reason),
                "`kiln explain` lists the candidates of a request");
  }
  Program made = binding_->program(library, config, offsets);
  made.workspace_bytes = std::max(made.workspace_bytes, workspace_end(made.steps));
  return made;
}

Estimate BoundAlgorithm::estimate(const Config& config, const DeviceFigures& device) const {
  return binding_->estimate(config, device);
}

std::vector<std::string> Algorithm::templates() const {
  std::vector<std::string> templates{template_path()};
  templates.insert(templates.end(), definition_->further_templates.begin(), definition_->further_templates.end());
  return templates;
}

std::string Algorithm::digest(CodeDigests& codes) const {
  const SourceLibrary& library = codes.library();
  const std::string stem = without_extension(template_path());
  // A template without its descriptor is a fault of the library.
  if (!library.files().contains(stem + ".json")) (void)library.text(stem + ".cpp");
  std::vector<std::string> compiled(std::begin(shaping), std::end(shaping));
  compiled.push_back(stem);

  Digest digest;
  digest.add(name());
  for (const std::string& path : templates()) {
    for (const std::string& file : closure(library, path)) digest.add(codes.of(file));
  }
  for (const std::string_view code : codes.of_descriptors(compiled)) digest.add(code);
  return digest.hex();
}

}  // namespace kiln
