// Made by scripts/c-api from capi/operations/ctc_loss.txt and the definitions of the operations.
#include "kiln/ctc_loss.h"

#include "boundary.h"
#include "fields.h"
#include "generated/options.h"
#include "handles.h"
#include "tensor.h"

namespace kiln::capi {

static_assert(KILN_CTC_LOG_PROBABILITIES == static_cast<int>(CtcInput::log_probabilities),
              "the words stand in one order");
static_assert(KILN_CTC_INFINITE_ZERO == static_cast<int>(CtcInfinite::zero), "the words stand in one order");

CtcLossOptions options_of(const kiln_ctc_loss_options& given, const char* function) {
  CtcLossOptions options;
  options.input = word_of<kiln::CtcInput>(given.input, KILN_CTC_LOG_PROBABILITIES, function, "the input",
                                          "use KILN_CTC_SCORES or KILN_CTC_LOG_PROBABILITIES");
  options.infinite = word_of<kiln::CtcInfinite>(given.infinite, KILN_CTC_INFINITE_ZERO, function, "the infinite",
                                                "use KILN_CTC_INFINITE_KEEP or KILN_CTC_INFINITE_ZERO");
  options.alpha = given.alpha;
  options.beta = given.beta;
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
  options.blank = given.blank;
  options.input_lengths = optional_of(given.input_lengths, function, "input_lengths");
  options.target_lengths = optional_of(given.target_lengths, function, "target_lengths");
  options.prefixes = optional_of(given.prefixes, function, "prefixes");
  options.epilogue = epilogue_of(given.epilogue);
  return options;
}

CtcLossBackwardOptions options_of(const kiln_ctc_loss_backward_options& given, const char* function) {
  CtcLossBackwardOptions options;
  options.input = word_of<kiln::CtcInput>(given.input, KILN_CTC_LOG_PROBABILITIES, function, "the input",
                                          "use KILN_CTC_SCORES or KILN_CTC_LOG_PROBABILITIES");
  options.infinite = word_of<kiln::CtcInfinite>(given.infinite, KILN_CTC_INFINITE_ZERO, function, "the infinite",
                                                "use KILN_CTC_INFINITE_KEEP or KILN_CTC_INFINITE_ZERO");
  options.alpha = given.alpha;
  options.beta = given.beta;
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
  options.blank = given.blank;
  options.input_lengths = optional_of(given.input_lengths, function, "input_lengths");
  options.target_lengths = optional_of(given.target_lengths, function, "target_lengths");
  options.dloss = optional_of(given.dloss, function, "dloss");
  options.epilogue = epilogue_of(given.epilogue);
  return options;
}

}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_ctc_loss_forward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* targets,
                                  const kiln_tensor* loss, const kiln_ctc_loss_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_ctc_loss_forward";
    require(context, function, "context");
    const kiln_ctc_loss_options given = read(options, kiln_ctc_loss_options_default(), function);
    kiln::ctc_loss_forward(*context->context, tensor_of(x, function, "x"), tensor_of(targets, function, "targets"),
                           tensor_of(loss, function, "loss"), options_of(given, function), stream);
  });
}

kiln_status kiln_ctc_loss_backward(kiln_context* context, const kiln_tensor* x, const kiln_tensor* targets,
                                   const kiln_tensor* prefixes, const kiln_tensor* dx,
                                   const kiln_ctc_loss_backward_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_ctc_loss_backward";
    require(context, function, "context");
    const kiln_ctc_loss_backward_options given = read(options, kiln_ctc_loss_backward_options_default(), function);
    kiln::ctc_loss_backward(*context->context, tensor_of(x, function, "x"), tensor_of(targets, function, "targets"),
                            tensor_of(prefixes, function, "prefixes"), tensor_of(dx, function, "dx"),
                            options_of(given, function), stream);
  });
}
