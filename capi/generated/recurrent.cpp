// Made by scripts/c-api from capi/operations/recurrent.txt and the definitions of the operations.
#include "kiln/recurrent.h"

#include "boundary.h"
#include "fields.h"
#include "generated/options.h"
#include "handles.h"
#include "tensor.h"

namespace kiln::capi {

static_assert(KILN_RECURRENT_RELU == static_cast<int>(RecurrentCell::relu), "the words stand in one order");
static_assert(KILN_RECURRENT_BOTH == static_cast<int>(RecurrentDirection::both), "the words stand in one order");
static_assert(KILN_RESET_BEFORE == static_cast<int>(RecurrentReset::before), "the words stand in one order");
static_assert(KILN_GATES_IOFC == static_cast<int>(RecurrentOrder::iofc), "the words stand in one order");

RecurrentOptions options_of(const kiln_recurrent_options& given, const char* function) {
  RecurrentOptions options;
  options.cell = word_of<kiln::RecurrentCell>(given.cell, KILN_RECURRENT_RELU, function, "the cell",
                                              "use KILN_RECURRENT_LSTM or another of these");
  options.direction =
      word_of<kiln::RecurrentDirection>(given.direction, KILN_RECURRENT_BOTH, function, "the direction",
                                        "use KILN_RECURRENT_FORWARD, KILN_RECURRENT_REVERSE or KILN_RECURRENT_BOTH");
  options.reset = word_of<kiln::RecurrentReset>(given.reset, KILN_RESET_BEFORE, function, "the reset",
                                                "use KILN_RESET_AFTER or KILN_RESET_BEFORE");
  options.order = word_of<kiln::RecurrentOrder>(given.order, KILN_GATES_IOFC, function, "the order",
                                                "use KILN_GATES_IFCO or KILN_GATES_IOFC");
  options.alpha = given.alpha;
  options.beta = given.beta;
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
  options.r_bias = optional_of(given.r_bias, function, "r_bias");
  options.peepholes = optional_of(given.peepholes, function, "peepholes");
  options.h0 = optional_of(given.h0, function, "h0");
  options.c0 = optional_of(given.c0, function, "c0");
  options.lengths = optional_of(given.lengths, function, "lengths");
  options.hn = optional_of(given.hn, function, "hn");
  options.cn = optional_of(given.cn, function, "cn");
  options.saved = optional_of(given.saved, function, "saved");
  options.epilogue = epilogue_of(given.epilogue);
  return options;
}

RecurrentBackwardOptions options_of(const kiln_recurrent_backward_options& given, const char* function) {
  RecurrentBackwardOptions options;
  options.cell = word_of<kiln::RecurrentCell>(given.cell, KILN_RECURRENT_RELU, function, "the cell",
                                              "use KILN_RECURRENT_LSTM or another of these");
  options.direction =
      word_of<kiln::RecurrentDirection>(given.direction, KILN_RECURRENT_BOTH, function, "the direction",
                                        "use KILN_RECURRENT_FORWARD, KILN_RECURRENT_REVERSE or KILN_RECURRENT_BOTH");
  options.reset = word_of<kiln::RecurrentReset>(given.reset, KILN_RESET_BEFORE, function, "the reset",
                                                "use KILN_RESET_AFTER or KILN_RESET_BEFORE");
  options.order = word_of<kiln::RecurrentOrder>(given.order, KILN_GATES_IOFC, function, "the order",
                                                "use KILN_GATES_IFCO or KILN_GATES_IOFC");
  options.alpha = given.alpha;
  options.beta = given.beta;
  options.dynamic_batch = flag(given.dynamic_batch, function, "dynamic_batch");
  options.y = optional_of(given.y, function, "y");
  options.peepholes = optional_of(given.peepholes, function, "peepholes");
  options.h0 = optional_of(given.h0, function, "h0");
  options.c0 = optional_of(given.c0, function, "c0");
  options.lengths = optional_of(given.lengths, function, "lengths");
  options.dhn = optional_of(given.dhn, function, "dhn");
  options.dcn = optional_of(given.dcn, function, "dcn");
  options.dproducts = optional_of(given.dproducts, function, "dproducts");
  options.dh0 = optional_of(given.dh0, function, "dh0");
  options.dc0 = optional_of(given.dc0, function, "dc0");
  options.epilogue = epilogue_of(given.epilogue);
  return options;
}

}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_recurrent_forward(kiln_context* context, const kiln_tensor* gates, const kiln_tensor* r,
                                   const kiln_tensor* y, const kiln_recurrent_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_recurrent_forward";
    require(context, function, "context");
    const kiln_recurrent_options given = read(options, kiln_recurrent_options_default(), function);
    kiln::recurrent_forward(*context->context, tensor_of(gates, function, "gates"), tensor_of(r, function, "r"),
                            tensor_of(y, function, "y"), options_of(given, function), stream);
  });
}

kiln_status kiln_recurrent_backward(kiln_context* context, const kiln_tensor* dy, const kiln_tensor* r,
                                    const kiln_tensor* saved, const kiln_tensor* dgates,
                                    const kiln_recurrent_backward_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_recurrent_backward";
    require(context, function, "context");
    const kiln_recurrent_backward_options given = read(options, kiln_recurrent_backward_options_default(), function);
    kiln::recurrent_backward(*context->context, tensor_of(dy, function, "dy"), tensor_of(r, function, "r"),
                             tensor_of(saved, function, "saved"), tensor_of(dgates, function, "dgates"),
                             options_of(given, function), stream);
  });
}
