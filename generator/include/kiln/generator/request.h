// Request: what a layer asks for, as a value. Its canonical line is the key of everything Kiln stores.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kiln/generator/expression.h"
#include "kiln/generator/tensor_spec.h"

namespace kiln {

class Operation;

struct Operand {
  std::string name;
  TensorSpec spec;
  bool operator==(const Operand&) const = default;
};

/// The most numbers that an operation takes at a call besides alpha and beta; see Operation::scalars().
inline constexpr size_t max_operation_scalars = 8;

/// The most integers of 64 bits that an operation takes at a call; see Operation::integers().
inline constexpr size_t max_operation_integers = 2;

/// Integers (`pad=1,1,1,1`) or one word (`mode=max`).
using AttributeValue = std::variant<std::vector<int64_t>, std::string>;

struct Attribute {
  std::string name;
  AttributeValue value;
  bool operator==(const Attribute&) const = default;
};

/// Which arithmetic a request permits. Sums are in f32 (`acc=f32`); these are the liberties beyond that.
struct Arithmetic {
  bool tf32 = false;  ///< f32 products may be rounded to tf32.
  bool fast = false;  ///< Products, and sums of 32, in the storage type; those of f32 by Winograd's transforms.
  bool deterministic = false;  ///< Equal inputs must give bitwise equal outputs on one device.
  bool operator==(const Arithmetic&) const = default;
};

/// A scale's class is part of the key, its value is an argument of the call.
enum class Scale {
  zero,
  one,
  any,
};

inline constexpr std::array all_scales{Scale::zero, Scale::one, Scale::any};

/// As in requests: `0`, `1`, `any`; "?" for a value that is no class.
std::string_view to_string(Scale scale);
/// The class of that name, if it is one.
std::optional<Scale> scale_called(std::string_view name);

/// y = epilogue(alpha * operation(x) + beta * y). With beta of class zero, y is never read.
struct Blend {
  Scale alpha = Scale::one;
  Scale beta = Scale::zero;
  bool operator==(const Blend&) const = default;
};

/// One stage of an epilogue. Stages apply in the order written: `epilogue=bias+add+relu`.
enum class EpilogueStage {
  bias,  ///< v + bias[k]; operand `bias`: K elements.
  add,   ///< v + residual at the same position; operand `residual`: the extents of y.
  relu,  ///< max(v, 0); NaN stays NaN.
  clip,  ///< min(max(v, lo), hi) with lo and hi given at the call; NaN stays NaN.
};

/// Every one, in the order above.
inline constexpr std::array all_stages{EpilogueStage::bias, EpilogueStage::add, EpilogueStage::relu,
                                       EpilogueStage::clip};
static_assert(all_stages.size() == static_cast<size_t>(EpilogueStage::clip) + 1);

std::string_view to_string(EpilogueStage stage);

/// One layer request.
///
/// Two requests with equal key() are the same request: everything a kernel may be specialised for is in it, and
/// everything else (pointers, alpha, beta, clip bounds, the batch of a dynamic request) is a call argument.
///
/// A request made by parse() or by an operation's builder is complete (every attribute present), canonical and valid.
struct Request {
  std::string operation;
  std::vector<Operand> operands;      ///< In the operation's order; those of the epilogue, then of user code, last.
  std::vector<Attribute> attributes;  ///< In the operation's order; all of them.
  Arithmetic arithmetic;
  Blend blend;
  std::vector<EpilogueStage> epilogue;
  /// User code in place of the stages: `epilogue=user:<digest>`. Its tensors are operands called `epilogue.<name>`, of
  /// the extents of y or 1 where they repeat, or of one dimension: an element a channel; those of a prologue
  /// `prologue.<name>`, an element a channel of the input.
  UserCode user_code;

  /// `n=?`: the batch is a call argument, at most that of the operands here: the top of its bucket, a power of two or
  /// what strides leave room for. One compiled kernel serves every batch of the bucket, and 0.
  bool dynamic_batch = false;

  /// `constant_weights`: the weights stay the same over many calls, whose plan prepares them once
  /// (Plan::prepare_weights). Times are those of the calls after that.
  bool constant_weights = false;

  /// `batch_invariant`: the result of an image, or of a row, has the same bits in every batch, whichever variants serve
  /// (kiln/generator/batch_invariance.h).
  bool batch_invariant = false;

  /// Parses a request line and completes it: an inferable output, `pad=1,1` for both sides, unit strides and the like
  /// may be left out. Throws Error(parse_error) with the column for malformed text, Error(invalid_argument) for a
  /// request that makes no sense. `expressions` gives texts to the user code in it, by name or by digest.
  static Request parse(std::string_view line, const Expressions& expressions = {});

  /// Parses the text of a call by name, for finished() to complete with the operands and numbers of the call:
  /// `conv_forward pad=1,1 epilogue=bias`. Throws Error(parse_error) as parse() does, and Error(invalid_argument) for
  /// parts that a call gives by name and not in its text: operands, the classes of alpha and beta, user code.
  static Request parse_call(std::string_view text);

  /// The canonical line.
  std::string key() const;

  /// The operand of that name, or null.
  const TensorSpec* find(std::string_view operand) const;
  /// The operand of that name; throws Error(internal) if there is none.
  const TensorSpec& at(std::string_view operand) const;
  /// The integers of an attribute; throws Error(internal) if there is none.
  const std::vector<int64_t>& ints(std::string_view attribute) const;
  /// The word of an attribute; throws Error(internal) if there is none.
  const std::string& word(std::string_view attribute) const;
  bool has(EpilogueStage stage) const;

  /// The request with its batch fixed to `n`. Throws Error(invalid_argument) unless dynamic and 0 <= n <= the bucket's
  /// top.
  Request with_batch(int64_t n) const;
  /// The batch of the operands (the bucket's top if dynamic). Throws Error(invalid_argument) for an operation that
  /// there is not, and where no operand says it.
  int64_t batch() const;

  bool operator==(const Request&) const = default;
};

/// A request that changes no more, with its key, which is printed once. Cheap to copy; thread-safe.
class KeyedRequest {
 public:
  KeyedRequest(Request request);  // implicit: whoever takes one takes a Request

  const std::string& key() const { return data_->key; }
  const Request& operator*() const { return data_->request; }
  const Request* operator->() const { return &data_->request; }
  operator const Request&() const { return data_->request; }

 private:
  struct Data {
    Request request;
    std::string key;
  };
  std::shared_ptr<const Data> data_;
};

/// The first word of a request, which names its operation; empty if there is none.
std::string_view operation_named_in(std::string_view line);

/// The bucket that serves batch `n`: the least power of two that is at least n, and 1 for 0. Throws
/// Error(invalid_argument) unless 0 <= n <= 2^62.
int64_t batch_bucket(int64_t n);

/// One line of a requests file.
struct RequestLine {
  Request request;
  int64_t count = 1;  ///< How often the layer occurs in its model (` *3`); not part of the key.
};

/// The line without an optional last ` *3`. Throws Error(parse_error) where that is no count.
std::string_view without_count(std::string_view line);

/// Prefixes of the names of a user's tensors in a request: tensors that the epilogue reads, and tensors of the
/// prologue.
inline constexpr std::string_view user_epilogue_prefix = "epilogue.", user_prologue_prefix = "prologue.";

/// Whether `operand` is a tensor of a user's epilogue.
bool is_epilogue_operand(std::string_view operand);
/// Whether `operand` is a tensor of a user's prologue: an element for each channel of the prologue's operand.
bool is_prologue_operand(std::string_view operand);
/// Whether `operand` is a tensor of user code, of an epilogue or a prologue.
bool is_user_operand(std::string_view operand);
/// Name of `code`'s tensor number `i` in requests. Throws Error(invalid_argument) if it reads no such tensor.
std::string user_operand_name(const Expression& code, size_t i);
/// Whether the user's tensor `spec` has one element a channel of `request`'s output; if not it has y's dimensions.
bool is_per_channel(const Request& request, const TensorSpec& spec);

/// Parses the text of a requests file: one request a line, `#` comments, blank lines, an optional last ` *3`, and
/// definitions of the expressions that later lines name (print_definition()). Throws Error(parse_error) naming the line
/// and column. `expressions`: those known before; definitions are added to it.
std::vector<RequestLine> parse_requests(std::string_view text, Expressions& expressions);
std::vector<RequestLine> parse_requests(std::string_view text);

}  // namespace kiln
