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

  bool fuse() {
    const Call* host = std::get_if<Call>(&graph_.nodes()[host_]);
    if (host == nullptr || host->outputs.size() != 1 || host->request.user_code) return false;
    result_ = host->outputs.front().value;
    extents_ = graph_.value(result_).extents;
    names_[result_] = "v";
    write_stages(*host, writer_);
    if (has_fused_activation(*host) || !writer_.fits()) return false;
    grow();
    return best_ > 0 && apply();
  }

 private:
  /// Takes in nodes in their order, as long as they are of the kind, and remembers the last point at which one value
  /// alone is read by others.
  void grow() {
    size_t calls = 0;
    readers_.insert(edges_.users(result_).begin(), edges_.users(result_).end());
    while (!readers_.empty() && calls < most_calls) {
      const size_t i = readers_.extract(readers_.begin()).value();
      if (const View* view = std::get_if<View>(&graph_.nodes()[i])) {
        if (std::holds_alternative<Reshape>(view->kind)) take(i, view->result, names_[view->source]);
        continue;
      }
      const Call* call = std::get_if<Call>(&graph_.nodes()[i]);
      // Names are counted, so that equal chains are equal code wherever they stand.
      const std::string name = fmt::format("v{}", calls + 1);
      if (call == nullptr || !joins(*call) || !write(*call, name)) continue;
      take(i, call->outputs.front().value, name);
      ++calls;
      if (const auto last = escaping()) {
        best_ = members_.size();
        last_ = *last;
        written_ = writer_;
      }
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
           count_elements(result.extents) == count_elements(extents_) && passes_through(code->inputs);
  }

  /// Whether the inputs that the code computes keep their values when they are not stored: floating-point numbers and
  /// the flags of comparisons do; other integers would be rounded and saturated.
  bool passes_through(const std::vector<ValueId>& inputs) const {
    return std::all_of(inputs.begin(), inputs.end(), [&](ValueId id) {
      if (!names_.contains(id) || is_floating(graph_.value(id).dtype)) return true;
      const auto producer = edges_.producer(id);
      const Call* call = producer ? std::get_if<Call>(&graph_.nodes()[*producer]) : nullptr;
      if (call == nullptr || call->request.operation != "tensor_op") return false;
      static const std::set<std::string> flags = {"eq", "ne", "lt", "le", "gt", "ge", "not"};
      const std::string* mode = word_of(*call, "mode");
      return mode != nullptr && flags.contains(*mode);
    });
  }

  /// Adds the call's line, which stays even if it does not fit: then nothing behind it is used.
  bool write(const Call& call, const std::string& name) {
    const ElementCode code = *code_of(call);
    const Extents& whole = graph_.value(call.outputs.front().value).extents;
    std::vector<std::string> arguments;
    CodeWriter tried = writer_;
    for (const ValueId id : code.inputs) {
      if (const auto known = names_.find(id); known != names_.end()) {
        arguments.push_back(known->second);
      } else if (const auto number = number_of(graph_, edges_, id)) {
        arguments.push_back(tried.number(*number));
      } else if (repeated_in(padded(graph_.value(id).extents, whole.size()), whole, extents_)) {
        arguments.push_back(tried.tensor(id));
        wholes_[id] = whole;
      } else {
        return false;
      }
    }
    for (const auto& [own, number] : code.numbers) arguments.push_back(tried.number(number));
    if (!tried.fits()) return false;
    const std::string function = tried.function(code.body, code.inputs.size(), code.numbers);
    tried.line(name, fmt::format("{}({})", function, fmt::join(arguments, ", ")));
    writer_ = std::move(tried);
    return true;
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
  size_t best_ = 0;                                              // members at that point; 0: there is none
  ValueId last_ = 0;
};

}  // namespace

void fuse_elements(Graph& graph) {
  Edges edges(graph);
  for (size_t index = 0; index < graph.nodes().size();) {
    // A host that took something moves behind others, which are looked at in its place.
    if (edges.is_free(index) || !ElementRegion(graph, edges, index).fuse()) {
      ++index;
    } else if (!Effort::may_go_on(edges)) {
      return;
    }
  }
}

}  // namespace kiln::graph
