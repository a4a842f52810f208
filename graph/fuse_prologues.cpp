// fuse_prologues(): a call and the element-wise calls before it as one, by user code.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "affine.h"
#include "channel_norm.h"
#include "code_writer.h"
#include "effort.h"
#include "element_code.h"
#include "kiln/generator/operation.h"
#include "kiln/graph/optimise.h"
#include "kiln/graph/strides.h"
#include "rewrite.h"

namespace kiln::graph {
namespace {

/// Whether a convolution's filters have one position, or pooling's windows whole channels: they meet an element once.
bool has_one_position(const Graph& graph, const Call& call) {
  const Operand* w = find(call.inputs, "w");
  const Extents& window = graph.value(w == nullptr ? call.outputs.front().value : w->value).extents;
  return std::all_of(window.begin() + 2, window.end(), [](int64_t extent) { return extent == 1; });
}

/// Whether the call loads each element of its input about once: others would compute the prologue again each time. A
/// convolution of 16-bit elements has kernels that apply a rounded prologue to what windows share
/// (docs/kernels.md#overlapping-windows), and estimates that count how often others do.
bool loads_once(const Graph& graph, const Call& call) {
  const std::string& name = call.request.operation;
  if (name == "gemm" || name == "reduce") return true;
  if (name != "conv_forward" && name != "pool_forward") return false;
  const Operand* w = find(call.inputs, "w");
  return (w != nullptr && size_of(graph.value(w->value).dtype) == 2) || has_one_position(graph, call);
}

/// Nodes before a host that become its prologue, from the host backwards.
class Chain {
 public:
  Chain(Graph& graph, Edges& edges, const Cost& cost, Effort& effort, size_t host)
      : graph_(graph), edges_(edges), cost_(cost), effort_(effort), host_(host) {}

  bool fuse() {
    const Call* host = std::get_if<Call>(&graph_.nodes()[host_]);
    if (host == nullptr || host->outputs.size() != 1 || has_prologue_already(*host) || !loads_once(graph_, *host)) {
      return false;
    }
    const Operation& definition = operation(host->request.operation);
    input_name_ = definition.prologue_operand();
    input_ = find(host->inputs, input_name_)->value;
    extents_ = graph_.value(input_).extents;
    channel_ = definition.prologue_channel_dimension(static_cast<int>(extents_.size()));
    knows_images_ = definition.prologue_knows_images();
    // Other operands are read without the prologue: x of a product by itself stays.
    const auto reads = std::count_if(host->inputs.begin(), host->inputs.end(),
                                     [&](const Operand& operand) { return operand.value == input_; });
    if (reads != 1 || edges_.is_fixed(input_)) return false;
    open_ = {input_};
    while (grow()) {
    }
    return !best_.empty() && may_scale() && apply(*host);
  }

  /// Index of the first node of the host that took others in: it or a view that it reads.
  size_t first() const { return first_; }

 private:
  static bool has_prologue_already(const Call& host) {
    const Expression* code = host.request.user_code.expression();
    return code != nullptr && !code->prologue().empty();
  }

  /// Takes in one call that makes an open value; false if there is none.
  bool grow() {
    for (auto value = open_.rbegin(); value != open_.rend(); ++value) {
      const auto index = edges_.producer(*value);
      if (!index || members_.size() == most_calls || !is_inside(*value)) continue;
      if (take_norm(*value)) return true;
      const auto inputs = full_inputs(std::get_if<Call>(&graph_.nodes()[*index]));
      if (!inputs) continue;
      members_.insert(*index);
      open_.erase(ValueId{*value});
      open_.insert(inputs->begin(), inputs->end());
      if (open_.size() == 1) {
        best_ = members_;
        source_ = *open_.begin();
      }
      return true;
    }
    return false;
  }

  /// Takes in the normalisation over channels that makes an open value, the only one: it reads all of what it
  /// normalises, so the chain ends there.
  bool take_norm(ValueId value) {
    if (open_.size() != 1 || !knows_images_) return false;
    norm_ = channel_norm_at(graph_, edges_, value);
    if (!norm_) return false;
    members_.insert(norm_->call);
    if (norm_->view) members_.insert(*norm_->view);
    source_ = norm_->source;
    open_.clear();
    best_ = members_;
    return true;
  }

  /// Whether only the chain and its host read `value`, which need not be stored.
  bool is_inside(ValueId value) const {
    const auto& users = edges_.users(value);
    return !edges_.is_output(value) && may_stay_unstored(graph_.value(value).dtype) &&
           std::all_of(users.begin(), users.end(),
                       [&](size_t user) { return user == host_ || members_.contains(user); });
  }

  /// Inputs of an element-wise call that have as many elements as the host; nothing if it is none, or reads what a
  /// prologue cannot.
  std::optional<std::set<ValueId>> full_inputs(const Call* call) const {
    if (call == nullptr || graph_.value(call->outputs.front().value).extents != extents_) return std::nullopt;
    if (is_scaling(*call)) return std::set{find(call->inputs, "x")->value};
    const auto code = code_of(*call);
    if (!code) return std::nullopt;
    std::set<ValueId> full;
    for (const ValueId id : code->inputs) {
      if (number_of(graph_, edges_, id) || is_of_channels(id)) continue;
      if (graph_.value(id).extents != extents_) return std::nullopt;
      full.insert(id);
    }
    return full.empty() ? std::nullopt : std::optional(full);
  }

  /// A normalisation by constants, with nothing behind it but a relu.
  bool is_scaling(const Call& call) const {
    const std::vector<EpilogueStage>& stages = call.request.epilogue;
    const bool only_relu = stages.empty() || stages == std::vector{EpilogueStage::relu};
    return only_relu && !call.request.user_code && channel_ == size_t{1} && !has_fused_activation(call) &&
           is_affine(graph_, edges_, call);
  }

  /// Whether the graph may get the constants of all normalisations that the host takes in.
  bool may_scale() const {
    const std::vector<const Call*> all = calls();
    return std::all_of(all.begin(), all.end(),
                       [&](const Call* call) { return !is_scaling(*call) || effort_.take_elements(2 * extents_[1]); });
  }

  /// The calls that the host takes in.
  std::vector<const Call*> calls() const {
    std::vector<const Call*> all;
    for (const size_t index : best_) {
      if (const Call* call = std::get_if<Call>(&graph_.nodes()[index])) all.push_back(call);
    }
    return all;
  }

  /// Whether `id` has an element for each channel of the host's input, or for each of its images and channels, and
  /// repeats along all else.
  bool is_of_channels(ValueId id) const {
    if (!channel_) return false;
    for (size_t d = 0; d < extents_.size(); ++d) {
      const int64_t extent = extent_of(id, d);
      const bool of_image = d == 0 && knows_images_ && extent == extents_[0];
      if (!of_image && extent != (d == *channel_ ? extents_[d] : 1)) return false;
    }
    return true;
  }

  /// Extent of `id` along a dimension of the host's input.
  int64_t extent_of(ValueId id, size_t dimension) const {
    const Extents& extents = graph_.value(id).extents;
    const size_t missing = extents_.size() - extents.size();
    return dimension < missing ? 1 : extents[dimension - missing];
  }

  /// `name` = `value`, behind the relu that the call's epilogue may be.
  void write_with_relu(const Call& call, const std::string& name, const std::string& value) {
    writer_.line(name, call.request.epilogue.empty() ? value : fmt::format("relu({})", value));
  }

  /// The line of a normalisation over channels, and what its epilogue does.
  void write_norm(const Call& call, const std::string& name) {
    const ScaleAndShift made = scale_and_shift(graph_, *norm_);
    before_ = made.nodes;
    const std::string scale = writer_.tensor(made.scale), shift = writer_.tensor(made.shift);
    const std::string scaled = fmt::format("{} * {} + {}", names_.at(source_), scale, shift);
    const Expression* code = call.request.user_code.expression();
    if (code == nullptr) return write_with_relu(call, name, scaled);
    Numbers numbers;
    std::vector<std::string> arguments{scaled};
    for (const std::string& scalar : code->scalars()) {
      const auto own = std::find_if(call.numbers.begin(), call.numbers.end(),
                                    [&](const auto& number) { return number.first == scalar; });
      numbers.push_back(*own);
      arguments.push_back(writer_.number(own->second));
    }
    // The host's own code may have functions of the same names.
    writer_.define(renamed_functions(code->functions().text));
    const std::string text = renamed_functions(code->epilogue().text);
    const std::string body =
        "const float acc = a;\n  " + (code->epilogue().one_expression ? fmt::format("return {};", text) : text);
    const std::string function = writer_.function(body, 1, numbers);
    writer_.line(name, fmt::format("{}({})", function, fmt::join(arguments, ", ")));
  }

  /// The text of an epilogue that a prologue takes over: its functions, step0 and so on, are norm_step0.
  static std::string renamed_functions(std::string text) {
    const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
    const std::string_view name = epilogue_names.function;
    for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += name.size()) {
      if (at > 0 && is_letter(text[at - 1])) continue;
      text.insert(at, "norm_");
      at += 5;
    }
    return text;
  }

  /// The line of one call.
  void write(const Call& call, const std::string& name) {
    if (norm_ && call.request.operation == "norm_forward") return write_norm(call, name);
    if (is_scaling(call)) {
      const Affine affine = *affine_of(graph_, edges_, call);
      const Extents channels = {extents_[1]};
      const std::string scale = writer_.tensor(constant_of(graph_, DType::f32, channels, affine.scale)),
                        shift = writer_.tensor(constant_of(graph_, DType::f32, channels, affine.shift));
      const std::string scaled = fmt::format("{} * {} + {}", names_.at(find(call.inputs, "x")->value), scale, shift);
      return write_with_relu(call, name, scaled);
    }
    const ElementCode code = *code_of(call);
    std::vector<std::string> arguments;
    for (const ValueId id : code.inputs) {
      const auto known = names_.find(id);
      const auto number = known == names_.end() ? number_of(graph_, edges_, id) : std::nullopt;
      arguments.push_back(known != names_.end() ? known->second
                          : number              ? writer_.number(*number)
                                                : writer_.tensor(id));
    }
    for (const auto& [own, number] : code.numbers) arguments.push_back(writer_.number(number));
    const std::string function = writer_.function(code.body, code.inputs.size(), code.numbers);
    writer_.line(name, fmt::format("{}({})", function, fmt::join(arguments, ", ")));
  }

  /// The host's own code, or its stages as code.
  struct Epilogue {
    std::string functions, text;
    std::vector<std::string> tensors, scalars;
  };

  static Epilogue take_epilogue(Call& host) {
    Epilogue epilogue;
    if (const Expression* code = host.request.user_code.expression()) {
      return {code->functions().text, code->epilogue().text, code->tensors(), code->scalars()};
    }
    if (host.request.epilogue.empty()) return epilogue;
    CodeWriter writer(epilogue_names);
    write_stages(host, writer);
    drop_stages(host);
    epilogue.text = writer.statements("v");
    epilogue.tensors = writer.tensor_names();
    for (size_t i = 0; i < writer.tensors().size(); ++i) {
      host.inputs.push_back({std::string(user_epilogue_prefix) + epilogue.tensors[i], writer.tensors()[i]});
    }
    for (const auto& [name, number] : writer.numbers()) {
      epilogue.scalars.push_back(name);
      host.numbers.emplace_back(name, number);
    }
    return epilogue;
  }

  bool apply(const Call& host) {
    names_[source_] = "x";
    for (const size_t index : best_) {
      if (const View* view = std::get_if<View>(&graph_.nodes()[index])) {
        names_[view->result] = names_.at(view->source);
        continue;
      }
      const Call& call = std::get<Call>(graph_.nodes()[index]);
      const std::string name = fmt::format("x{}", ++lines_);
      write(call, name);
      names_[call.outputs.front().value] = name;
    }
    Call fused = host;
    Epilogue epilogue = take_epilogue(fused);
    for (const std::string& name : writer_.tensor_names()) epilogue.tensors.push_back(name);
    for (const auto& [name, number] : writer_.numbers()) epilogue.scalars.push_back(name);
    if (epilogue.tensors.size() > Expression::max_tensors || epilogue.scalars.size() > Expression::max_scalars) {
      return false;
    }
    const std::string text =
        fmt::format("{}{}--- {}prologue\n{}\n{}{}", epilogue.functions, writer_.functions(), rounds() ? "rounded " : "",
                    writer_.statements(names_.at(input_)), epilogue.text.empty() ? "" : "---\n", epilogue.text);
    fused.request.user_code = UserCode(Expression(text, epilogue.tensors, epilogue.scalars));
    find(fused.inputs, input_name_)->value = source_;
    std::vector<Node> nodes = before_;
    for (Node& view : add_tensors(fused)) nodes.push_back(std::move(view));
    const Numbers numbers = writer_.numbers();
    fused.numbers.insert(fused.numbers.end(), numbers.begin(), numbers.end());
    for (const Call* call : calls()) append_origins(fused.origins, call->origins);
    if (!may_repeat(host) || !is_cheaper(host, fused)) return false;
    nodes.emplace_back(std::move(fused));
    std::set<size_t> indices = best_;
    indices.insert(host_);
    first_ = edges_.replace(indices, std::move(nodes));
    return true;
  }

  /// Whether the host reads a type of 16 bits or less, which the chain begins with too: its result is still rounded to
  /// it, so that tensor cores may take it.
  bool rounds() const {
    const DType dtype = graph_.value(input_).dtype;
    return dtype != DType::f32 && graph_.value(source_).dtype == dtype;
  }

  /// Gives the call the tensors that its prologue reads, C or N x C; returns the views that make them so.
  std::vector<Node> add_tensors(Call& fused) {
    std::vector<Node> views;
    const auto names = writer_.tensor_names();
    for (size_t i = 0; i < names.size(); ++i) {
      ValueId tensor = writer_.tensors()[i];
      Extents extents = {extents_[channel_.value()]};
      // Several are what one is in other batches: kernels that can read them have the order of sums.
      const bool of_images = extent_of(tensor, 0) > 1 || (extents_[0] == 1 && !graph_.is_constant(tensor));
      if (channel_ != size_t{0} && knows_images_ && of_images) extents.insert(extents.begin(), extents_[0]);
      if (graph_.value(tensor).extents != extents) {
        const ValueId shaped = graph_.add_value({{}, graph_.value(tensor).dtype, extents});
        views.emplace_back(View{Reshape{}, tensor, shaped});
        tensor = shaped;
      }
      fused.inputs.push_back({std::string(user_prologue_prefix) + names[i], tensor});
    }
    return views;
  }

  /// Whether the host's windows may meet an element several times: kernels apply a rounded prologue once.
  bool may_repeat(const Call& host) const {
    return host.request.operation != "conv_forward" || rounds() || has_one_position(graph_, host);
  }

  bool is_cheaper(const Call& host, const Call& fused) const {
    if (!is_legal(graph_, fused)) return false;
    std::vector<const Call*> apart = calls(), together{&fused};
    apart.push_back(&host);
    if (!before_.empty()) together.push_back(&std::get<Call>(before_.front()));
    return least_cost(together) < least_cost(apart);
  }

  /// Seconds of the calls, all with their channels last, or all in logical order: layouts are chosen later.
  double least_cost(const std::vector<const Call*>& calls) const {
    const bool is_spatial = std::get<Call>(graph_.nodes()[host_]).request.operation == "conv_forward";
    double logical = 0, channels_last = 0;
    for (const Call* call : calls) {
      const Request request = request_of(graph_, *call).value();
      logical += cost_(request);
      if (is_spatial) channels_last += cost_(with_channels_last(request));
    }
    return is_spatial ? std::min(logical, channels_last) : logical;
  }

  Request with_channels_last(Request request) const {
    const size_t rank = extents_.size();
    if (rank < 3) return request;
    const Region host = packed(extents_, channels_last_order(rank));
    const bool is_norm = request.operation.starts_with("norm_") && norm_.has_value();
    for (kiln::Operand& operand : request.operands) {
      TensorSpec& spec = operand.spec;
      if (is_norm && (operand.name == "x" || operand.name == "y")) {
        const std::optional<Region> seen = seen_through(Reshape{}, host, spec.extents);
        if (seen) spec.strides = seen->strides;
      } else if (!is_norm && spec.extents.size() == rank) {
        spec.strides = packed(spec.extents, channels_last_order(rank)).strides;
      }
      spec.canonicalise();
    }
    return request;
  }

  Graph& graph_;
  Edges& edges_;
  const Cost& cost_;
  Effort& effort_;
  size_t host_;
  std::string_view input_name_;
  ValueId input_ = 0;              // of the host, as it is
  Extents extents_;                // of that
  std::optional<size_t> channel_;  // the dimension along which the prologue's tensors have elements
  bool knows_images_ = false;      // whether they may have some for each image, too
  std::set<ValueId> open_;         // values of those extents that the chain reads
  std::set<size_t> members_;       // indices of its calls
  size_t first_ = 0;
  std::set<size_t> best_;            // the most of them that read one such value
  ValueId source_ = 0;               // which the host is going to read
  std::optional<ChannelNorm> norm_;  // the last that the chain takes in
  std::vector<Node> before_;         // what makes its scale and shift
  size_t lines_ = 0;
  std::map<ValueId, std::string> names_;
  CodeWriter writer_{prologue_names};
};

}  // namespace

void fuse_prologues(Graph& graph, const Cost& cost) {
  Effort effort;
  Edges edges(graph);
  for (size_t index = graph.nodes().size(); index-- > 0;) {
    if (edges.is_free(index)) continue;
    Chain chain(graph, edges, cost, effort, index);
    if (!chain.fuse()) continue;
    if (!Effort::may_go_on(edges)) return;
    index = chain.first();  // those before have moved up; those behind cannot take in more than they did
  }
}

}  // namespace kiln::graph
