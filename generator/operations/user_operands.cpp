#include "operations/user_operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "kiln/base/error.h"
#include "kiln/generator/operation.h"
#include "operations/spatial.h"

namespace kiln {
namespace {

// The extents of y, each of which may be 1 instead: the tensor repeats there.
bool fits_result(const TensorSpec& spec, const std::vector<int64_t>& y) {
  return std::equal(spec.extents.begin(), spec.extents.end(), y.begin(), y.end(),
                    [](int64_t extent, int64_t whole) { return extent == whole || extent == 1; });
}

void check_epilogue_operand(const Request& request, const Operand& operand) {
  const auto& [name, spec] = result_of(request);
  const bool has_channels = !kiln::operation(request.operation).channel_name().empty();
  const int64_t channels = has_channels ? spec.extents[channel_dimension_of(request)] : 0;
  if (is_per_channel(request, operand.spec) ? operand.spec.extents[0] == channels
                                            : fits_result(operand.spec, spec.extents)) {
    return;
  }
  refuse(request, fmt::format("operand {} has other extents than {}", operand.name, name),
         fmt::format("give it the extents of {}, or 1 where it repeats{}", name,
                     has_channels ? fmt::format("; or one dimension: the {} channels", channels) : ""));
}

[[noreturn]] void refuse_prologue(const Request& request) {
  refuse(request, "it has no prologue", "it reads no input that one could apply to: leave it out");
}

void check_prologue_operand(const Request& request, const Operand& operand) {
  const std::string_view input = kiln::operation(request.operation).prologue_operand();
  if (input.empty()) refuse_prologue(request);
  const std::optional<size_t> channel = prologue_channel_dimension_of(request);
  if (!channel) {
    refuse(request, fmt::format("the prologue reads {}, but there are no channels", operand.name),
           "give it scalars, or read the tensor in the epilogue");
  }
  const int64_t channels = request.at(input).extents[*channel];
  const std::vector<int64_t>& extents = operand.spec.extents;
  if (extents == std::vector{channels}) return;
  const bool knows_images = kiln::operation(request.operation).prologue_knows_images();
  const int64_t images = request.batch();
  const bool of_images = extents.size() == 2 && (extents[0] == images || extents[0] == 1) && extents[1] == channels;
  if (knows_images && of_images) return;
  refuse(request, fmt::format("operand {} has other extents than the channels of {}", operand.name, input),
         fmt::format("give it one: the {} channels{}", channels,
                     knows_images ? fmt::format("; or {}x{}, for each image and channel", images, channels) : ""));
}

TensorSpec as_packed_f32(const TensorSpec& spec) {
  TensorSpec packed{DType::f32, spec.extents, spec.extents};
  int64_t stride = 1;
  for (size_t i = packed.extents.size(); i-- > 0;) {
    packed.strides[i] = stride;
    stride *= std::max<int64_t>(packed.extents[i], 1);
  }
  return packed;
}

}  // namespace

bool has_prologue(const Request& request) {
  const Expression* expression = request.user_code.expression();
  return expression != nullptr && !expression->prologue().empty();
}

bool has_prologue_of_images(const Request& request) {
  return std::any_of(request.operands.begin(), request.operands.end(), [](const Operand& operand) {
    return is_prologue_operand(operand.name) && operand.spec.rank() == 2 && operand.spec.extents[0] > 1;
  });
}

bool has_rounded_prologue(const Request& request) {
  return has_prologue(request) && request.user_code.expression()->rounds_prologue();
}

void check_user_names(const Request& request) {
  const Expression* expression = request.user_code.expression();
  if (has_prologue(request) && kiln::operation(request.operation).prologue_operand().empty()) refuse_prologue(request);
  if (request.user_code && request.dynamic_batch && !is_batched(request, result_of(request).name)) {
    refuse(request, "its result is a sum over the batch: with user code it cannot be checked for any batch",
           "give the batch instead of n=?");
  }
  std::vector<std::string> read;  // as operands
  for (size_t i = 0; expression != nullptr && i < expression->tensors().size(); ++i) {
    const std::string& operand = read.emplace_back(user_operand_name(*expression, i));
    if (request.find(operand) == nullptr) {
      refuse(request,
             fmt::format("the user code reads {}, but there is no operand {}", expression->tensors()[i], operand),
             fmt::format("add {}=dtype:extents:layout", operand));
    }
  }
  for (const Operand& operand : request.operands) {
    if (!is_user_operand(operand.name)) continue;
    if (!request.user_code) {
      refuse(request, fmt::format("there is an operand {}, but no user code", operand.name), "add epilogue=user:NAME");
    }
    if (expression != nullptr && std::find(read.begin(), read.end(), operand.name) == read.end()) {
      refuse(request, fmt::format("the user code does not read {}", operand.name),
             "leave it out, or add it to its tensors");
    }
  }
}

void check_user_operand(const Request& request, const Operand& operand) {
  return is_prologue_operand(operand.name) ? check_prologue_operand(request, operand)
                                           : check_epilogue_operand(request, operand);
}

bool has_images(const Request& request, const Operand& operand) {
  if (is_prologue_operand(operand.name)) return operand.spec.rank() == 2 && operand.spec.extents.front() != 1;
  return is_epilogue_operand(operand.name) && !operand.spec.extents.empty() && !is_per_channel(request, operand.spec) &&
         operand.spec.extents.front() != 1;
}

Request stripped_of_user_code(Request request) {
  request.user_code = {};
  std::erase_if(request.operands, [](const Operand& operand) { return is_user_operand(operand.name); });
  return request;
}

Request without_user_code(const Request& request) {
  Request plain = stripped_of_user_code(request.dynamic_batch ? request.with_batch(request.batch()) : request);
  const std::string result = result_of(plain).name;
  const std::string_view input = operation(plain.operation).prologue_operand();
  for (Operand& operand : plain.operands) {
    if (operand.name == input || operand.name == result) operand.spec = as_packed_f32(operand.spec);
  }
  return finished(std::move(plain));
}

Request with_user_code(Request request, const Expression& code, const std::vector<TensorSpec>& tensors) {
  request.user_code = UserCode(code);
  for (size_t i = 0; i < tensors.size(); ++i) {
    Operand& tensor = request.operands.emplace_back(Operand{user_operand_name(code, i), tensors[i]});
    // The batch of a finished request is the top of its bucket already.
    if (!request.dynamic_batch || !has_images(request, tensor)) continue;
    int64_t& batch = tensor.spec.extents.front();
    if (batch <= request.batch() && request.batch() <= batch_bucket(batch)) batch = request.batch();
  }
  return finished(std::move(request));
}

bool lacks_user_text(const Request& request) {
  return request.user_code && request.user_code.expression() == nullptr;
}

Error missing_user_text(const Request& request) {
  return {ErrorCode::invalid_argument,
          fmt::format("the text of user:{} is not known, and the cache holds no code", request.user_code.digest()),
          "define the expression in the requests file, in a file given with --expression, or for Request::parse(); "
          "KILN_RECORD writes what an application uses"};
}

}  // namespace kiln
