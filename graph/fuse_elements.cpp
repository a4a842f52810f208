// fuse_elements(): a call and the element-wise calls behind it as one, by user code.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "code_writer.h"
#include "effort.h"
#include "element_code.h"
#include "kiln/graph/optimise.h"
#include "rewrite.h"

namespace kiln::graph {
namespace {

/// A host, and the nodes behind it that become its code.
class ElementRegion {
 public:
  ElementRegion(Graph& graph, Edges& edges, size_t host) : graph_(graph), edges_(edges), host_(host) {}

  /// `has_code`: whether the host is to be one that has code already.
  bool fuse(bool has_code) {
    const Call* host = std::get_if<Call>(&graph_.nodes()[host_]);
    if (host == nullptr || host->outputs.size() != 1 || static_cast<bool>(host->request.user_code) != has_code) {
      return false;
    }
    result_ = host->outputs.front().value;
    extents_ = graph_.value(result_).extents;
    names_[result_] = "v";
    if (has_code && !write_code(*host)) return false;
    if (!has_code) write_stages(*host, writer_);
    if (has_fused_activation(*host) || !writer_.fits()) return false;
    grow();
    return best_ > 0 && apply();
  }

 private:
  /// Writes the host's own code, if it is an element-wise call by code, as a line `v`.
  bool write_code(const Call& host) {
    const auto code = host.request.operation == "activation_forward" ? code_of(host) : std::nullopt;
    if (!code) return false;
    std::vector<std::string> arguments = {"acc"};
    for (size_t i = 1; i < code->inputs.size(); ++i) {
      const ValueId id = code->inputs[i];
      const auto number = number_of(graph_, edges_, id);
      arguments.push_back(number ? writer_.number(*number) : writer_.tensor(id));
      if (!number) wholes_.emplace(id, extents_);
    }
    for (const auto& [own, number] : code->numbers) arguments.push_back(writer_.number(number));
    const std::string function = writer_.function(code->body, code->inputs.size(), code->numbers);
    writer_.line("v", fmt::format("{}({})", function, fmt::join(arguments, ", ")));
    return true;
  }

  /// Takes in nodes in their order, as long as they are of the kind, and remembers the last point at which one value
  /// alone is read by others.
  void grow() {
    readers_.insert(edges_.users(result_).begin(), edges_.users(result_).end());
    while (!readers_.empty() && calls_ < most_calls) {
      const size_t i = readers_.extract(readers_.begin()).value();
      if (const View* view = std::get_if<View>(&graph_.nodes()[i])) {
        if (std::holds_alternative<Reshape>(view->kind)) take(i, view->result, names_[view->source]);
        continue;
      }
      const Call* call = std::get_if<Call>(&graph_.nodes()[i]);
      if (call == nullptr || !joins(*call)) continue;
      Draft draft{writer_, calls_, {}, {}};
      if (!write(i, draft)) continue;
      accept(std::move(draft));
      if (const auto last = escaping()) {
        best_ = members_.size();
        last_ = *last;
        written_ = writer_;
      }
    }
  }

  /// The code with a further call in it, and what goes into the region with that.
  struct Draft {
    CodeWriter writer;
    size_t calls;
    std::vector<std::pair<size_t, std::string>> taken;  ///< Indices of calls, and the names of their results.
    std::vector<std::pair<ValueId, Extents>> wholes;
  };

  void accept(Draft&& draft) {
    writer_ = std::move(draft.writer);
    calls_ = draft.calls;
    wholes_.insert(draft.wholes.begin(), draft.wholes.end());
    for (const auto& [index, name] : draft.taken) {
      take(index, std::get<Call>(graph_.nodes()[index]).outputs.front().value, name);
    }
  }

  void take(size_t index, ValueId value, const std::string& name) {
    members_.push_back(index);
    names_[value] = name;
    readers_.insert(edges_.users(value).begin(), edges_.users(value).end());
  }

  bool joins(const Call& call) const {
    const auto code = code_of(call);
    if (!code) return false;
    const bool reads =
        std::any_of(code->inputs.begin(), code->inputs.end(), [&](ValueId id) { return names_.contains(id); });
    const Value& result = graph_.value(call.outputs.front().value);
    return reads && edges_.is_fixed(call.outputs.front().value) == edges_.is_fixed(result_) &&
           count_elements(result.extents) == count_elements(extents_);
  }

  /// Adds an element-wise call to the draft, and those that it alone reads and that are better computed where they are
  /// read. The draft is of no use where they do not fit.
  bool write(size_t index, Draft& draft) const {
    const Call& call = std::get<Call>(graph_.nodes()[index]);
    const ElementCode code = *code_of(call);
    const Extents& whole = graph_.value(call.outputs.front().value).extents;
    std::vector<std::string> arguments;
    for (const ValueId id : code.inputs) {
      const auto argument = argument_of(id, whole, index, draft);
      if (!argument) return false;
      arguments.push_back(*argument);
    }
    for (const auto& [own, number] : code.numbers) arguments.push_back(draft.writer.number(number));
    if (!draft.writer.fits()) return false;
    const std::string function = draft.writer.function(code.body, code.inputs.size(), code.numbers);
    // Names are counted, so that equal chains are equal code wherever they stand.
    const std::string name = fmt::format("v{}", ++draft.calls);
    draft.writer.line(name, fmt::format("{}({})", function, fmt::join(arguments, ", ")));
    draft.taken.emplace_back(index, name);
    return true;
  }

  /// An input of the call at `reader`, whose result has the extents `whole`, as its code calls it.
  std::optional<std::string> argument_of(ValueId id, const Extents& whole, size_t reader, Draft& draft) const {
    if (const auto known = names_.find(id); known != names_.end()) return as_stored(id, known->second, draft);
    if (const auto number = number_of(graph_, edges_, id)) return draft.writer.number(*number);
    if (edges_.sole_user(id) == reader && is_better_unstored(id) && draft.calls < most_calls) {
      Draft tried = draft;
      if (write(*edges_.producer(id), tried)) {
        draft = std::move(tried);
        return as_stored(id, draft.taken.back().second, draft);
      }
    }
    if (!repeated_in(padded(graph_.value(id).extents, whole.size()), whole, extents_)) return std::nullopt;
    draft.wholes.emplace_back(id, whole);
    return draft.writer.tensor(id);
  }

  /// Whether an element-wise call makes the value of all elements from fewer bytes than it has, or of one element.
  bool is_better_unstored(ValueId id) const {
    const auto producer = edges_.producer(id);
    const Call* call = producer ? std::get_if<Call>(&graph_.nodes()[*producer]) : nullptr;
    const auto code = call != nullptr ? code_of(*call) : std::nullopt;
    if (!code || edges_.is_fixed(id) != edges_.is_fixed(result_)) return false;
    const Value& result = graph_.value(id);
    const auto bytes = [&](ValueId value) {
      return count_elements(graph_.value(value).extents) * size_of(graph_.value(value).dtype);
    };
    if (count_elements(result.extents) == 1) return true;
    int64_t read = 0;
    for (const ValueId input : code->inputs) read += bytes(input);
    return count_elements(result.extents) == count_elements(extents_) && read < bytes(id);
  }

  /// A value of the code as others would read it from memory: integers are rounded and saturated, floating-point
  /// numbers may be more exact, and the flags of comparisons are 0 and 1 already. Nothing for numbers of 8 bits, whose
  /// rounding shows.
  std::optional<std::string> as_stored(ValueId id, const std::string& name, Draft& draft) const {
    const DType dtype = graph_.value(id).dtype;
    if (may_stay_unstored(dtype) || is_flag(id)) return name;
    if (is_floating(dtype)) return std::nullopt;
    const auto [least, most] = ends_of(dtype);
    const std::string body = fmt::format("return a == a ? clamp(rintf(a), {:.1f}f, {:.1f}f) : 0.0f;", least, most);
    return fmt::format("{}({})", draft.writer.function(body, 1, {}), name);
  }

  /// The ends of a type of integers as f32 has them.
  static std::pair<float, float> ends_of(DType dtype) {
    if (dtype == DType::u8) return {0, 255};
    if (dtype == DType::i8) return {-128, 127};
    return {-2147483648.0f, 2147483648.0f};
  }

  bool is_flag(ValueId id) const {
    const auto producer = edges_.producer(id);
    const Call* call = producer ? std::get_if<Call>(&graph_.nodes()[*producer]) : nullptr;
    if (call == nullptr || call->request.operation != "tensor_op") return false;
    static const std::set<std::string> flags = {"eq", "ne", "lt", "le", "gt", "ge", "not"};
    const std::string* mode = word_of(*call, "mode");
    return mode != nullptr && flags.contains(*mode);
  }

  static Extents padded(Extents extents, size_t rank) {
    if (extents.size() < rank) extents.insert(extents.begin(), rank - extents.size(), 1);
    return extents;
  }

  /// The one value of the region that others read; nothing if there are more, or none.
  std::optional<ValueId> escaping() const {
    const std::set<size_t> inside(members_.begin(), members_.end());
    std::optional<ValueId> found;
    for (const auto& [id, name] : names_) {
      const auto& users = edges_.users(id);
      const bool leaves = edges_.is_output(id) ||
                          std::any_of(users.begin(), users.end(), [&](size_t user) { return !inside.contains(user); });
      if (!leaves) continue;
      if (found) return std::nullopt;
      found = id;
    }
    return found;
  }

  /// The host, with the code in place of its stages, where the last of the region's nodes was.
  bool apply() {
    members_.resize(best_);
    Call fused = std::get<Call>(graph_.nodes()[host_]);
    drop_stages(fused);
    if (fused.request.user_code) drop_code(fused);
    const Expression code = expression();
    fused.request.user_code = UserCode(code);
    std::vector<Node> before, behind;
    const auto& tensors = written_.tensors();
    for (size_t i = 0; i < tensors.size(); ++i) {
      const Value& value = graph_.value(tensors[i]);
      const auto whole = wholes_.find(tensors[i]);
      Extents extents = value.extents;
      if (whole != wholes_.end()) {
        extents = *repeated_in(padded(extents, whole->second.size()), whole->second, extents_);
      }
      ValueId operand = tensors[i];
      if (extents != value.extents) {
        operand = graph_.add_value({{}, value.dtype, extents});
        before.emplace_back(View{Reshape{}, tensors[i], operand});
      }
      fused.inputs.push_back({std::string(user_epilogue_prefix) + fmt::format("t{}", i), operand});
    }
    const Numbers numbers = written_.numbers();
    fused.numbers.insert(fused.numbers.end(), numbers.begin(), numbers.end());
    for (const size_t member : members_) {
      const Call* call = std::get_if<Call>(&graph_.nodes()[member]);
      if (call != nullptr) append_origins(fused.origins, call->origins);
    }
    const Value last = graph_.value(last_);
    if (last.extents == extents_) {
      fused.outputs.front().value = last_;
    } else {
      fused.outputs.front().value = graph_.add_value({{}, last.dtype, extents_});
      behind.emplace_back(View{Reshape{}, fused.outputs.front().value, last_});
    }
    if (!is_legal(graph_, fused)) return false;
    before.emplace_back(std::move(fused));
    std::move(behind.begin(), behind.end(), std::back_inserter(before));
    std::set<size_t> indices(members_.begin(), members_.end());
    indices.insert(host_);
    edges_.replace(indices, std::move(before));
    return true;
  }

  static void drop_code(Call& call) {
    std::erase_if(call.inputs, [](const Operand& operand) { return operand.name.starts_with(user_epilogue_prefix); });
    call.numbers.clear();
    call.request.user_code = {};
  }

  Expression expression() const {
    std::vector<std::string> scalars;
    for (const auto& [name, number] : written_.numbers()) scalars.push_back(name);
    const std::string functions = written_.functions().empty() ? "" : written_.functions() + "---\n";
    return Expression(functions + written_.statements(names_.at(last_)), written_.tensor_names(), scalars);
  }

  Graph& graph_;
  Edges& edges_;
  size_t host_;
  ValueId result_ = 0;
  Extents extents_;                                              // of the host's result
  std::map<ValueId, std::string> names_;                         // of the region's values in the code
  std::map<ValueId, Extents> wholes_;                            // of tensors that repeat: what they repeat to
  std::vector<size_t> members_;                                  // indices of the nodes behind the host
  std::set<size_t> readers_;                                     // indices of the region's readers still to be tried
  CodeWriter writer_{epilogue_names}, written_{epilogue_names};  // all so far, and at the best point
  size_t calls_ = 0;                                             // in the code so far
  size_t best_ = 0;                                              // members at that point; 0: there is none
  ValueId last_ = 0;
};

}  // namespace

void fuse_elements(Graph& graph) {
  Edges edges(graph);
  // Element-wise calls by code come last: what they could take may go into a convolution, too.
  for (const bool has_code : {false, true}) {
    for (size_t index = 0; index < graph.nodes().size();) {
      // A host that took something moves behind others, which are looked at in its place.
      if (edges.is_free(index) || !ElementRegion(graph, edges, index).fuse(has_code)) {
        ++index;
      } else if (!Effort::may_go_on(edges)) {
        return;
      }
    }
  }
}

}  // namespace kiln::graph
