// Operation: the definition of what requests of one kind may say. One file per operation under operations/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/generator/request.h"

namespace kiln {

/// Use that a call makes of an operand. An operation's first output is its result: alpha, beta and the epilogue apply
/// to it.
enum class Role {
  input,
  output,   ///< Written; the result is read before where beta's class is not zero.
  updated,  ///< Read, and then written: a running mean.
};

/// How an operand or attribute is written when it has its default value.
enum class Printing {
  always,    ///< `groups=1` stands in every key.
  when_set,  ///< An attribute: left out of the key while it has its default. An operand: optional, left out with it.
  never,     ///< Sugar for parsing: shapes the completed request and is then dropped (`ceil=1`).
};

struct OperandDefinition {
  std::string name{};
  Role role = Role::input;
  bool batched = true;  ///< Dimension 0 is the batch.
  Printing printing = Printing::always;
  // Texts for `kiln describe` and docs/request-syntax.md.
  std::string extents{};             ///< "N K Q; N K P Q; N K Z P Q": in one, two and three dimensions.
  std::string left_out{};            ///< Value where it is left out, or the effect of that; empty if every request has
                                     ///< to give it.
  std::string summary{};             ///< Further remarks; may be empty.
  DTypes dtypes = DTypes::floating;  ///< Types that it may have.
  bool repeats = false;              ///< With an extent of 1 along dimension 0 it is the same for every image.
  /// The operands that an output may be, element for element: an operation in place. It shares no element with others.
  std::vector<std::string_view> may_be{};
  /// The operand in whose channels it names positions: indices of the maxima of pooling; empty for all others.
  std::string_view positions_of{};
  /// Its elements are not computed, but name elements of another operand: indices of extremes.
  bool names_elements = false;
  bool has_minus_infinity = false;  ///< -inf is a number of it as others are: the logarithm of nothing.
};

/// `output`, which may be one of those operands.
inline OperandDefinition in_place(OperandDefinition output, std::vector<std::string_view> may_be) {
  output.may_be = std::move(may_be);
  return output;
}

inline OperandDefinition naming_elements(OperandDefinition indices) {
  indices.names_elements = true;
  return indices;
}

/// `indices`, whose elements are positions in the channels of `pooled`.
inline OperandDefinition naming_positions(OperandDefinition indices, std::string_view pooled) {
  indices.positions_of = pooled;
  return naming_elements(std::move(indices));
}

/// A number that a call gives and the key does not hold, as alpha: the slope of an activation, a normalisation's
/// epsilon.
struct ScalarDefinition {
  std::string name;
  std::optional<float> fallback;  ///< The default of a call; nothing: what the activation's function usually has.
  float in_checks = 0;            ///< Value that checks and `kiln run` give.
  std::string summary;
};

/// Bounds of one of those numbers: from `least` to `most`, and not below the number `floor`. NaN is out of bounds.
struct ScalarRule {
  size_t scalar = 0;  ///< Its place in Operation::scalars().
  float least = 0, most = 0;
  std::string_view hint;  ///< Advice on the value to give instead.
  std::optional<size_t> floor = std::nullopt;
};

/// An integer of 64 bits that a call gives and the key does not hold: the seed of a random sequence.
struct IntegerDefinition {
  std::string name;
  uint64_t in_checks = 0;  ///< Value that checks and `kiln run` give. The default of a call is 0.
  std::string summary;
};

struct AttributeDefinition {
  std::string name;
  AttributeValue fallback;  ///< The default. Integers: completed to the right length by the operation.
  Printing printing = Printing::always;
  std::vector<std::string> words;  ///< The legal words, if the attribute is a word.
  std::string summary;
};

/// The least work that any algorithm must do: what a roofline is drawn from.
struct Work {
  double flops = 0;        ///< Multiplications and additions.
  double read_bytes = 0;   ///< Each input element once.
  double write_bytes = 0;  ///< Each output element once.
  /// Where the work is sums of products of two operands' elements, which tensor cores can do: the type that holds the
  /// elements of both.
  std::optional<DType> factors{};
};

/// Type of `Work::factors`: the one that holds the values of both, as tensor cores take them. Types of 8 bits are
/// alike, floating-point ones and integers; f16 holds all of them. f32 holds what f16 and bf16 are beside each other.
inline DType common_type(const TensorSpec& a, const TensorSpec& b) {
  if (a.dtype == b.dtype) return a.dtype;
  const int a_bytes = size_of(a.dtype), b_bytes = size_of(b.dtype);
  if (a_bytes != b_bytes) return a_bytes > b_bytes ? a.dtype : b.dtype;
  if (a_bytes > 1) return DType::f32;
  return is_floating(a.dtype) == is_floating(b.dtype) ? a.dtype : DType::f16;
}

/// Type of a product's result that the request does not give: that of the left factor, but no type of 8-bit integers,
/// in which most sums have no place: i32 for products of integers, else that of the other factor.
inline DType type_of_product(const TensorSpec& a, const TensorSpec& b) {
  if (is_floating(a.dtype)) return a.dtype;
  return is_floating(b.dtype) ? b.dtype : DType::i32;
}

/// alpha and beta of outputs besides the result. Their classes are attributes (`0`, `1`, `any`), their values, which
/// are read where the class is `any`, numbers of the call; both are called `<name>_alpha` and `<name>_beta`.
struct FurtherBlend {
  std::string_view name;
  std::vector<std::string_view> outputs;
};

/// A word of a request that is no operand, and that means the same in every operation.
struct CommonWord {
  std::string_view name;      ///< "tf32", "alpha"
  std::string values;         ///< "0, 1, any"; empty for a word without a value.
  std::string_view fallback;  ///< Value where it is left out.
  std::string_view summary;
};

/// Definition of one operation. Immutable; see operations().
class Operation {
 public:
  virtual ~Operation() = default;

  virtual std::string_view name() const = 0;
  virtual std::string_view summary() const = 0;
  /// A complete request in few words for people: "conv 1x64x56x56 -> 64, 3x3, pad 1, bias+relu". By default the name
  /// and the result: "dropout 2x64x56x56 f16".
  virtual std::string short_form(const Request& request) const;
  virtual const std::vector<OperandDefinition>& operands() const = 0;
  virtual const std::vector<AttributeDefinition>& attributes() const = 0;
  /// The most dimensions that one of its tensors may have, at most 6.
  virtual int most_dimensions() const { return 5; }
  /// Whether requests may permit arithmetic (`acc=f32 tf32 ...`); pooling and softmax have no such choice.
  virtual bool has_arithmetic() const { return false; }
  /// Whether an input is weights, which may stay the same over many calls (Request::constant_weights).
  virtual bool has_weights() const { return false; }
  /// Whether its results depend on the order in which a kernel adds, so that requests may demand one for all batches
  /// (Request::batch_invariant).
  virtual bool has_order_of_sums() const { return false; }
  /// Whether it adds, and its kernels promise no order for all batches.
  virtual bool adds_in_any_order() const { return false; }
  /// Why an image's results depend on the other images of a batch, in words for a user; nothing if they do not. By
  /// default they do where an output has no element for an image.
  virtual std::optional<std::string> why_images_mix(const Request& request) const;
  /// The leading dimensions of that operand that count images or rows, whose results are each other's equals: by
  /// default the first one, if it is the batch.
  virtual size_t batch_dimensions(const Request& request, std::string_view operand) const;
  /// Whether its result is scaled and added to what it held before (Request::blend).
  virtual bool has_blend() const { return true; }
  /// The stages that an epilogue may have; none if it takes none.
  virtual std::vector<EpilogueStage> stages() const { return {}; }
  /// The operand whose elements pass through the prologue of user code, which calls them x; empty if user code of this
  /// operation has no prologue.
  virtual std::string_view prologue_operand() const { return {}; }
  /// The numbers of a call besides alpha and beta, at most max_operation_scalars; their order in RunValues.
  virtual const std::vector<ScalarDefinition>& scalars() const;
  /// Operands that may be blended besides the result.
  virtual const std::vector<FurtherBlend>& further_blends() const;
  /// Rules for the scalars() of calls of `request`; a number without a rule is not read, or may be anything. Every way
  /// of running a plan checks these.
  virtual std::vector<ScalarRule> scalar_rules(const Request& request) const;
  /// The integers of a call, at most max_operation_integers; their order in RunValues.
  virtual const std::vector<IntegerDefinition>& integers() const;
  /// Name of the channel in user code; empty if the operation knows no channels.
  virtual std::string_view channel_name() const { return {}; }
  /// The dimension of its result, of `rank` dimensions, that counts channels: what a bias has an element for.
  virtual size_t channel_dimension(int /*rank*/) const { return 1; }
  /// The dimension of prologue_operand(), of `rank` dimensions, that counts what a prologue calls `c`; nothing if that
  /// knows no channels.
  virtual std::optional<size_t> prologue_channel_dimension(int rank) const {
    return channel_name().empty() ? std::nullopt : std::optional(channel_dimension(rank));
  }
  /// Whether tensors that a prologue reads may have an element for each image and channel, not for each channel alone.
  virtual bool prologue_knows_images() const { return false; }

  /// Expands short forms of attributes (`pad=1,1` to four values). All attributes and the given operands are there.
  virtual void complete_attributes(Request& request) const = 0;
  /// Tensor that stands for an operand that is left out (an output that can be inferred, the bias of an epilogue);
  /// nothing if it has to be given or has no place in this request.
  virtual std::optional<TensorSpec> implied_operand(const Request& request, std::string_view name) const = 0;
  /// Throws Error(invalid_argument) naming what was wrong, what was expected and what to do. `request` is complete.
  virtual void validate(const Request& request) const = 0;
  virtual Work work(const Request& request) const = 0;
};

/// The words that requests of `operation` may have besides its operands and attributes.
std::vector<CommonWord> common_words(const Operation& operation);

/// A value as a request has it: "1,1", "max"; "" for no numbers.
std::string attribute_text(const AttributeValue& value);

/// Every operation that exists, in the order of the documentation.
const std::vector<const Operation*>& operations();
/// The operation of that name, or null.
const Operation* find_operation(std::string_view name);
/// As find_operation(); throws Error(invalid_argument) listing the known names.
const Operation& operation(std::string_view name);

/// The operand that alpha, beta and the epilogue of a complete request apply to: its operation's first output.
const Operand& result_of(const Request& request);
/// Operation::channel_dimension() of that operand.
size_t channel_dimension_of(const Request& request);
/// Operation::prologue_channel_dimension() of the operand that prologues of a complete request apply to: there is one.
std::optional<size_t> prologue_channel_dimension_of(const Request& request);
/// Whether a call of `request` writes to `operand`: its outputs, and what it updates.
bool is_written(const Request& request, std::string_view operand);
/// OperandDefinition::names_elements.
bool names_elements(const Request& request, std::string_view operand);
/// The FurtherBlend that concerns `output`, or null.
const FurtherBlend* further_blend_of(const Request& request, std::string_view output);
/// The classes of an output's alpha and beta: those of the request for the result, a FurtherBlend's for its outputs;
/// Blend{} for any other operand, which is not blended.
Blend blend_of(const Request& request, std::string_view output);
/// Whether a call of `request` reads what `operand` holds before it: all but outputs whose beta has class zero.
bool is_read(const Request& request, std::string_view operand);

/// Whether -inf is a number of an operand as others are (OperandDefinition::has_minus_infinity).
bool has_minus_infinity(const Request& request, std::string_view operand);
/// Whether dimension 0 of `operand` is the batch.
bool is_batched(const Request& request, std::string_view operand);
/// Whether a call of `request` with an empty batch writes nothing: its result is of images, and no other output is a
/// sum over them, which is 0 then.
bool writes_nothing_without_batch(const Request& request);

/// Completes, canonicalises and validates a request made by hand; what every builder ends with.
Request finished(Request request);

/// `request` without its user code and the tensors that this reads; all else is as it was.
Request stripped_of_user_code(Request request);
/// Request between prologue and epilogue of `request`'s user code: the same request without the code, its input
/// (Operation::prologue_operand(), if there is one) and result f32 in logical order without gaps, its batch fixed (the
/// bucket's top if it was dynamic).
Request without_user_code(const Request& request);

/// `request`, a finished one, with user code and the tensors that it reads, in the order of Expression::tensors().
Request with_user_code(Request request, const Expression& code, const std::vector<TensorSpec>& tensors);

/// Whether `request` has user code whose text is known and has a prologue.
bool has_prologue(const Request& request);
/// Whether it has one that reads a tensor with elements of its own for each image.
bool has_prologue_of_images(const Request& request);
/// Whether it has one whose results are rounded to the type of the operand that it applies to.
bool has_rounded_prologue(const Request& request);

/// Whether only the digest of `request`'s user code is known: keys out of packs, databases and bundles hold no code. No
/// program can be made of such a request; a bundle may hold one.
bool lacks_user_text(const Request& request);
/// Error for a program of a request that lacks_user_text(): says which text is missing, and how to give it.
Error missing_user_text(const Request& request);

}  // namespace kiln
