#include "kiln/generator/operations/gemm.h"

#include <fmt/format.h>

#include <algorithm>

#include "kiln/generator/batch_invariance.h"
#include "operations/operations.h"
#include "operations/pointwise.h"
#include "operations/short_form.h"
#include "operations/spatial.h"
#include "operations/stages.h"

namespace kiln {
namespace {

using Ints = std::vector<int64_t>;

class GemmOperation final : public Operation {
 public:
  std::string_view name() const override { return "gemm"; }
  std::string_view summary() const override { return "matrix products, one or a batch of them"; }
  std::string short_form(const Request& request) const override {
    return fmt::format("gemm {} by {}{}{}", extents_words(request.at("a")), extents_words(request.at("b")),
                       operand_words(request, "a"), stages_words(request));
  }
  std::string_view channel_name() const override { return "n"; }
  size_t channel_dimension(int rank) const override { return static_cast<size_t>(rank) - 1; }
  std::string_view prologue_operand() const override { return "a"; }
  bool has_arithmetic() const override { return true; }
  bool has_order_of_sums() const override { return true; }
  /// All but the last dimension of c, as far as they lie outside of the others in memory, and of b none of its rows.
  size_t batch_dimensions(const Request& request, std::string_view operand) const override {
    const size_t rank = request.at("c").extents.size();
    const auto of = [&](std::string_view name, size_t images) {
      if (request.at(name).extents.size() != rank) return size_t{0};
      return name == "b" ? std::min(images, rank - 2) : images;
    };
    const auto are_outer = [&](size_t images) {
      return std::all_of(request.operands.begin(), request.operands.end(),
                         [&](const Operand& one) { return images_follow_each_other(one.spec, of(one.name, images)); });
    };
    size_t images = rank - 1;
    while (images > 1 && !are_outer(images)) --images;
    return of(operand, images);
  }
  std::vector<EpilogueStage> stages() const override { return {all_stages.begin(), all_stages.end()}; }

  const std::vector<OperandDefinition>& operands() const override {
    static const std::vector<OperandDefinition> definitions = {
        {.name = "a",
         .role = Role::input,
         .extents = "... M K",
         .summary = "2 to 5 dimensions: up to three batch dimensions in front of the matrix",
         .dtypes = DTypes::factors},
        {.name = "b",
         .role = Role::input,
         .batched = false,
         .extents = "... K N",
         .summary = "as many dimensions as a; each batch dimension equals that of a, or is 1 in one of the two, whose "
                    "matrix is then used again",
         .dtypes = DTypes::factors},
        in_place({.name = "c",
                  .role = Role::output,
                  .extents = "... M N",
                  .left_out = "dtype of a, logical order; integers: dtype of b, or i32",
                  .dtypes = DTypes::any},
                 {"residual"}),
        bias_operand("N", "c", DTypes::any),
        residual_operand("c", DTypes::any),
    };
    return definitions;
  }

  const std::vector<AttributeDefinition>& attributes() const override {
    static const std::vector<AttributeDefinition> none;
    return none;
  }

  void complete_attributes(Request&) const override {}

  std::optional<TensorSpec> implied_operand(const Request& request, std::string_view operand) const override {
    if (operand != "c") return implied_stage_operand(request, operand);
    if (request.find("a") == nullptr || request.find("b") == nullptr) return std::nullopt;
    check_factors(request);
    const Ints extents = product_extents(request);
    return TensorSpec::packed(type_of_product(request.at("a"), request.at("b")), extents,
                              dimension_letters(static_cast<int>(extents.size())));
  }

  void validate(const Request& request) const override {
    check_factors(request);
    require_extents(request, "c", request.at("c"), product_extents(request), "from a and b");
    check_stage_operands(request);
    if (request.dynamic_batch && request.at("c").rank() != 2) {
      refuse(request, "the batch can only be dynamic where there are no batch dimensions: it is M", "fix the batch");
    }
  }

  Work work(const Request& request) const override {
    Work work = pointwise_work(request, 2.0 * static_cast<double>(request.at("a").extents.back()));
    work.factors = common_type(request.at("a"), request.at("b"));
    return work;
  }

 private:
  // Checks a and b: as many dimensions, batch dimensions that fit, one K.
  static void check_factors(const Request& request) {
    const TensorSpec &a = request.at("a"), &b = request.at("b");
    if (a.rank() < 2 || a.rank() != b.rank()) {
      refuse(request, fmt::format("a has {} and b {} dimensions", a.rank(), b.rank()),
             "a is M,K and b is K,N, with equally many batch dimensions in front, at most 3");
    }
    const size_t rank = a.extents.size();
    for (size_t i = 0; i + 2 < rank; ++i) {
      if (a.extents[i] == b.extents[i] || a.extents[i] == 1 || b.extents[i] == 1) continue;
      refuse(request, fmt::format("batch dimension {} of a is {}, that of b {}", i, a.extents[i], b.extents[i]),
             "they must be equal, or one of them 1");
    }
    if (a.extents[rank - 1] != b.extents[rank - 2]) {
      refuse(request,
             fmt::format("a has rows of {} elements, b columns of {}", a.extents[rank - 1], b.extents[rank - 2]),
             "a is M,K and b is K,N; a transposed matrix is given by its strides");
    }
  }

  static Ints product_extents(const Request& request) {
    Ints extents = request.at("a").extents;
    const Ints& b = request.at("b").extents;
    for (size_t i = 0; i + 2 < extents.size(); ++i) extents[i] = extents[i] == 1 ? b[i] : extents[i];
    extents.back() = b.back();
    return extents;
  }
};

}  // namespace

const Operation& gemm_operation() {
  static const GemmOperation definition;
  return definition;
}

Gemm Gemm::of(const Request& request) {
  Gemm view;
  view.a = request.at("a");
  view.b = request.at("b");
  view.c = request.at("c");
  view.bias = optional_operand(request, "bias");
  view.residual = optional_operand(request, "residual");
  view.arithmetic = request.arithmetic;
  view.blend = request.blend;
  view.epilogue = request.epilogue;
  view.dynamic_batch = request.dynamic_batch;
  return view;
}

Request Gemm::request() const {
  Request request;
  request.operation = "gemm";
  request.operands = {{"a", a}, {"b", b}};
  if (!c.extents.empty()) request.operands.push_back({"c", c});
  if (bias) request.operands.push_back({"bias", *bias});
  if (residual) request.operands.push_back({"residual", *residual});
  request.arithmetic = arithmetic;
  request.blend = blend;
  request.epilogue = epilogue;
  request.dynamic_batch = dynamic_batch;
  return finished(std::move(request));
}

int64_t Gemm::products() const {
  int64_t count = 1;
  for (size_t i = 0; i + 2 < c.extents.size(); ++i) count *= c.extents[i];
  return count;
}

}  // namespace kiln
