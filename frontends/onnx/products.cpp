#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>

#include "kiln/generator/operations/gemm.h"
#include "onnx/attributes.h"
#include "onnx/readers.h"

namespace kiln::onnx_frontend {
namespace {

TensorSpec transposed(TensorSpec matrix) {
  std::swap(matrix.extents[0], matrix.extents[1]);
  std::swap(matrix.strides[0], matrix.strides[1]);
  matrix.canonicalise();
  return matrix;
}

/// An input of a Gemm node, which are matrices.
TensorSpec matrix_of(const Source& source, int input, const char* transposition) {
  const Extents extents = source.extents(input);
  if (extents.size() != 2) {
    fail(source, fmt::format("input {} is {}, expected a matrix", input, fmt::join(extents, "x")));
  }
  const bool is_transposed = Attributes(source.node).integer(transposition, 0) != 0;
  return is_transposed ? transposed(source.operand(input)) : source.operand(input);
}

/// The stage that adds the third input of a Gemm, or why there is none. Constants are scaled, and single ones repeated,
/// before they are passed, as those that a convolution folds.
struct Addition {
  std::vector<EpilogueStage> epilogue;
  std::string refusal;
};

Addition addition_of(const Source& source, int64_t m, int64_t n) {
  const double beta = Attributes(source.node).real("beta").value_or(1);
  if (!source.has_input(2) || beta == 0) return {};
  const bool is_constant = source.graph.is_constant(source.node.input(2));
  if (beta != 1 && !is_constant) return {{}, "it scales a third input that is no constant"};
  Extents c = source.extents(2);
  if (c.size() < 2) c.insert(c.begin(), 2 - c.size(), 1);
  if (c.size() > 2 || (c[0] != m && c[0] != 1) || (c[1] != n && c[1] != 1)) {
    fail(source, fmt::format("the third input is {}, which does not repeat to {}x{}", fmt::join(c, "x"), m, n));
  }
  if (c[0] == 1 && (c[1] == n || is_constant)) return {{EpilogueStage::bias}, {}};
  if (c == Extents{m, n}) return {{EpilogueStage::add}, {}};
  return {{}, "its third input is neither a row nor as large as its result"};
}

/// What a MatMul gives: batch dimensions that repeat as NumPy's do, then rows and columns of the inputs that have them.
Extents product_extents(const Source& source, const TensorSpec& a, const TensorSpec& b, bool has_rows,
                        bool has_columns) {
  Extents extents = a.extents;
  for (size_t d = 0; d + 2 < extents.size(); ++d) {
    if (a.extents[d] != b.extents[d] && a.extents[d] != 1 && b.extents[d] != 1) {
      fail(source, fmt::format("the inputs are {} and {}, whose batch dimensions neither agree nor repeat",
                               fmt::join(a.extents, "x"), fmt::join(b.extents, "x")));
    }
    if (extents[d] == 1) extents[d] = b.extents[d];
  }
  extents.back() = b.extents.back();
  (void)count_elements(extents);
  if (!has_columns) extents.pop_back();
  if (!has_rows) extents.erase(extents.end() - (has_columns ? 2 : 1));
  return extents;
}

/// The same memory as one matrix, where dimension by dimension it is.
TensorSpec as_rows(const TensorSpec& spec) {
  const int64_t rows = count_elements(std::span(spec.extents).first(spec.extents.size() - 1));
  return TensorSpec::packed(spec.dtype, {rows, spec.extents.back()}, dimension_letters(2));
}

bool is_in_logical_order(const TensorSpec& spec) {
  return spec.is_packed(dimension_letters(spec.rank()));
}

}  // namespace

Layer read_gemm(const Source& source) {
  require_inputs(source, 2, 3);
  const Attributes attributes(source.node);
  Gemm gemm;
  gemm.a = matrix_of(source, 0, "transA");
  gemm.b = matrix_of(source, 1, "transB");
  if (source.options.dynamic_batch && attributes.integer("transA", 0) != 0) {
    return refused("its rows are not the batch, which is dynamic");
  }
  Addition addition = addition_of(source, gemm.a.extents[0], gemm.b.extents[1]);
  if (!addition.refusal.empty()) return refused(std::move(addition.refusal));
  gemm.c = source.spec({gemm.a.extents[0], gemm.b.extents[1]});
  gemm.epilogue = std::move(addition.epilogue);
  gemm.blend.alpha = attributes.real("alpha").value_or(1) == 1 ? Scale::one : Scale::any;
  gemm.dynamic_batch = source.options.dynamic_batch;
  return asked(gemm.request());
}

Layer read_matmul(const Source& source) {
  require_inputs(source, 2, 2);
  const Extents x = source.extents(0), w = source.extents(1);
  if (x.empty() || w.empty()) fail(source, "an input has no dimensions");
  if (source.options.dynamic_batch && (x.size() != 2 || w.size() > 2)) {
    return refused("of products of matrices with batch dimensions none can be dynamic");
  }
  const size_t rank = std::max({size_t{2}, x.size(), w.size()});
  const Extents column{1}, missing_rows{static_cast<int64_t>(rank) - 2},
      missing_columns{static_cast<int64_t>(rank) - 1};
  Gemm gemm;
  gemm.a = with_rank(source.operand(0), rank);
  gemm.b = with_rank(w.size() == 1 ? with_ones(source.operand(1), column) : source.operand(1), rank);
  gemm.c = source.spec(product_extents(source, gemm.a, gemm.b, x.size() > 1, w.size() > 1));
  if (x.size() == 1 && w.size() > 1) gemm.c = with_ones(gemm.c, missing_rows);
  if (w.size() == 1) gemm.c = x.size() == 1 ? with_rank(gemm.c, rank) : with_ones(gemm.c, missing_columns);
  if (w.size() == 2 && rank > 2 && is_in_logical_order(gemm.a) && is_in_logical_order(gemm.c)) {
    gemm.a = as_rows(gemm.a);  // one product of all rows
    gemm.b = source.operand(1);
    gemm.c = as_rows(gemm.c);
  }
  gemm.dynamic_batch = source.options.dynamic_batch;
  return asked(gemm.request());
}

}  // namespace kiln::onnx_frontend
