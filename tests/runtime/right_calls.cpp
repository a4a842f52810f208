#include "right_calls.h"

#include "kiln/activation.h"
#include "kiln/affine_grid.h"
#include "kiln/attention.h"
#include "kiln/call.h"
#include "kiln/conv.h"
#include "kiln/ctc_loss.h"
#include "kiln/dropout.h"
#include "kiln/gather.h"
#include "kiln/gemm.h"
#include "kiln/grid_sample.h"
#include "kiln/im2col.h"
#include "kiln/local_conv.h"
#include "kiln/local_norm.h"
#include "kiln/loss.h"
#include "kiln/norm.h"
#include "kiln/pool.h"
#include "kiln/recurrent.h"
#include "kiln/reduce.h"
#include "kiln/resize.h"
#include "kiln/scatter.h"
#include "kiln/softmax.h"
#include "kiln/tensor_ops.h"

namespace kiln {

RightCalls::Calls RightCalls::calls() const {
  Calls calls;
  add_convolution(calls);
  add_pooling(calls);
  add_rows(calls);
  add_elements(calls);
  add_recurrent_layers(calls);
  add_attention(calls);
  add_products(calls);
  add_losses(calls);
  add_ctc_losses(calls);
  add_grid_samples(calls);
  add_normalisations(calls);
  add_affine_normalisations(calls);
  add_local_normalisations(calls);
  return calls;
}

void RightCalls::add_convolution(Calls& calls) const {
  const Tensor image = slot(0, {1, 4, 8, 8});
  calls["conv_forward"] = {
      "", {{"x", image}, {"w", slot(1, {4, 4, 3, 3})}, {"y", slot(3, {1, 4, 6, 6})}}, [](Context& k, const Tensors& t) {
        conv_forward(k, t[0].tensor, t[1].tensor, t[2].tensor);
      }};
  const Tensor gradient = slot(2, {1, 4, 6, 6});
  calls["conv_backward_data"] = {
      "",
      {{"dy", gradient}, {"w", slot(1, {4, 4, 3, 3})}, {"dx", slot(3, {1, 4, 8, 8})}},
      [](Context& k, const Tensors& t) { conv_backward_data(k, t[0].tensor, t[1].tensor, t[2].tensor); }};
  calls["conv_backward_filter"] = {
      "", {{"x", image}, {"dy", gradient}, {"dw", slot(3, {4, 4, 3, 3})}}, [](Context& k, const Tensors& t) {
        conv_backward_filter(k, t[0].tensor, t[1].tensor, t[2].tensor);
      }};
  calls["conv_backward_bias"] = {"",
                                 {{"dy", gradient}, {"db", slot(3, {4})}},
                                 [](Context& k, const Tensors& t) { conv_backward_bias(k, t[0].tensor, t[1].tensor); },
                                 1,
                                 true};
  // Filters for each of 2 x 2 regions.
  const LocalConvOptions quarters{.grid = {2, 2}};
  const LocalConvBackwardOptions backward{.grid = {2, 2}};
  calls["local_conv_forward"] = {
      "",
      {{"x", image}, {"w", slot(1, {16, 4, 3, 3})}, {"y", slot(3, {1, 4, 6, 6})}},
      [=](Context& k, const Tensors& t) { local_conv_forward(k, t[0].tensor, t[1].tensor, t[2].tensor, quarters); }};
  calls["local_conv_backward_data"] = {"",
                                       {{"dy", gradient}, {"w", slot(1, {16, 4, 3, 3})}, {"dx", slot(3, {1, 4, 8, 8})}},
                                       [=](Context& k, const Tensors& t) {
                                         local_conv_backward_data(k, t[0].tensor, t[1].tensor, t[2].tensor, backward);
                                       }};
  calls["local_conv_backward_filter"] = {
      "", {{"x", image}, {"dy", gradient}, {"dw", slot(3, {4, 4, 4, 3, 3})}}, [=](Context& k, const Tensors& t) {
        local_conv_backward_filter(k, t[0].tensor, t[1].tensor, t[2].tensor, backward);
      }};
}

void RightCalls::add_pooling(Calls& calls) const {
  const Tensor image = slot(0, {1, 4, 8, 8}), quarter = slot(1, {1, 4, 4, 4});
  // Windows of stride 1: one more row of x is one more of y.
  const PoolOptions maxima = {.window = {5, 5}}, averages = {.mode = PoolMode::avg, .window = {5, 5}};
  calls["pool_forward"] = {"", {{"x", image}, {"y", slot(3, {1, 4, 4, 4})}}, [=](Context& k, const Tensors& t) {
                             pool_forward(k, t[0].tensor, t[1].tensor, averages);
                           }};
  calls["pool_backward"] = {
      "", {{"dy", quarter}, {"x", image}, {"dx", slot(3, {1, 4, 8, 8})}}, [=](Context& k, const Tensors& t) {
        pool_backward(k, t[0].tensor, t[1].tensor, t[2].tensor, maxima);
      }};
  const Tensor indices = at(32768, {1, 4, 4, 4}, i32);
  calls["pool_forward, indices too"] = {
      "pool_forward",
      {{"x", image}, {"y", slot(3, {1, 4, 4, 4})}, {"indices", indices}},
      [=](Context& k, const Tensors& t) { pool_forward(k, t[0].tensor, t[1].tensor, t[2].tensor, maxima); },
      2,
      false,
      true};  // maxima are of any dtype
  const std::vector<Named> from_indices = {{"dy", quarter}, {"indices", indices}, {"dx", slot(3, {1, 4, 8, 8})}};
  calls["pool_backward_from_indices"] = {"pool_backward", from_indices, [=](Context& k, const Tensors& t) {
                                           pool_backward_from_indices(k, t[0].tensor, t[1].tensor, t[2].tensor, maxima);
                                         }};
  calls["unpool_forward"] = {"pool_backward", from_indices, [=](Context& k, const Tensors& t) {
                               unpool_forward(k, t[0].tensor, t[1].tensor, t[2].tensor, maxima);
                             }};
  calls["resize"] = {
      "", {{"x", slot(0, {1, 4, 8, 8})}, {"y", slot(3, {1, 4, 16, 16})}}, [](Context& k, const Tensors& t) {
        resize(k, t[0].tensor, t[1].tensor, {.scale = {2, 2}});
      }};
  calls["resize"].any_dtype = true;
  calls["resize_backward"] = {
      "", {{"dy", slot(0, {1, 4, 16, 16})}, {"dx", slot(3, {1, 4, 8, 8})}}, [](Context& k, const Tensors& t) {
        resize_backward(k, t[0].tensor, t[1].tensor, {.scale = {2, 2}});
      }};
  calls["im2col"] = {
      "", {{"x", slot(0, {1, 4, 8, 8})}, {"y", slot(3, {1, 16, 7, 7})}}, [](Context& k, const Tensors& t) {
        im2col(k, t[0].tensor, t[1].tensor, {.window = {2, 2}});
      }};
  calls["im2col"].any_dtype = true;
  calls["col2im"] = {
      "", {{"x", slot(0, {1, 16, 7, 7})}, {"y", slot(3, {1, 4, 8, 8})}}, [](Context& k, const Tensors& t) {
        col2im(k, t[0].tensor, t[1].tensor, {.window = {2, 2}});
      }};
  calls["unpool_backward"] = {
      "", {{"dy", image}, {"indices", indices}, {"dx", slot(3, {1, 4, 4, 4})}}, [=](Context& k, const Tensors& t) {
        unpool_backward(k, t[0].tensor, t[1].tensor, t[2].tensor, maxima);
      }};
}

void RightCalls::add_rows(Calls& calls) const {
  const Tensor a = slot(0, {3, 5}), b = slot(1, {3, 5}), y = slot(3, {3, 5});
  calls["softmax_forward"] = {
      "", {{"x", a}, {"y", y}}, [](Context& k, const Tensors& t) { softmax_forward(k, t[0].tensor, t[1].tensor); }};
  calls["softmax_backward"] = {"", {{"y", a}, {"dy", b}, {"dx", y}}, [](Context& k, const Tensors& t) {
                                 softmax_backward(k, t[0].tensor, t[1].tensor, t[2].tensor);
                               }};
  calls["activation_forward"] = {
      "", {{"x", a}, {"y", y}}, [](Context& k, const Tensors& t) { activation_forward(k, t[0].tensor, t[1].tensor); }};
  calls["activation_backward"] = {"", {{"x", a}, {"dy", b}, {"dx", y}}, [](Context& k, const Tensors& t) {
                                    activation_backward(k, t[0].tensor, t[1].tensor, t[2].tensor);
                                  }};
  calls["activation_backward_from_y"] = {
      "activation_backward", {{"y", a}, {"dy", b}, {"dx", y}}, [](Context& k, const Tensors& t) {
        activation_backward_from_y(k, t[0].tensor, t[1].tensor, t[2].tensor);
      }};
  const Tensor sum = slot(2, {1, 5}), where(slot(3, {1, 5}).data(), i32, {1, 5}, contiguous);
  calls["reduce"] = {"",
                     {{"x", a}, {"y", sum}},
                     [](Context& k, const Tensors& t) { reduce(k, ReduceMode::add, t[0].tensor, t[1].tensor); },
                     1,
                     true,
                     true};
  calls["reduce, with indices"] = {
      "reduce",
      {{"x", a}, {"y", sum}, {"indices", where}},
      [](Context& k, const Tensors& t) { reduce(k, ReduceMode::max, t[0].tensor, t[1].tensor, t[2].tensor); },
      2,
      true,
      true};
  const Tensor positions(at(8192, {1, 5}).data(), i32, {1, 5}, contiguous);
  calls["reduce_backward"] = {
      "", {{"dy", sum}, {"x", a}, {"y", at(8192, {1, 5})}, {"dx", y}}, [](Context& k, const Tensors& t) {
        reduce_backward(k, ReduceMode::norm2, t[0].tensor, t[3].tensor, {.x = t[1].tensor, .y = t[2].tensor});
      }};
  calls["reduce_backward, with indices"] = {
      "reduce_backward", {{"dy", sum}, {"x", a}, {"indices", positions}, {"dx", y}}, [](Context& k, const Tensors& t) {
        reduce_backward(k, ReduceMode::amax, t[0].tensor, t[3].tensor, {.x = t[1].tensor, .indices = t[2].tensor});
      }};
}

void RightCalls::add_elements(Calls& calls) const {
  const Tensor a = slot(0, {3, 5}), b = slot(1, {3, 5}), c = slot(2, {3, 5}), y = slot(3, {3, 5});
  calls["dropout_forward"] = {"dropout", {{"x", a}, {"y", y}}, [](Context& k, const Tensors& t) {
                                dropout_forward(k, t[0].tensor, t[1].tensor);
                              }};
  calls["dropout_backward"] = {"dropout", {{"x", a}, {"y", y}}, [](Context& k, const Tensors& t) {
                                 dropout_backward(k, t[0].tensor, t[1].tensor);
                               }};
  calls["tensor_transform"] = {
      "", {{"x", a}, {"y", y}}, [](Context& k, const Tensors& t) { tensor_transform(k, t[0].tensor, t[1].tensor); }};
  calls["tensor_add"] = {"tensor_transform", {{"x", a}, {"y", y}}, [](Context& k, const Tensors& t) {
                           tensor_add(k, t[0].tensor, t[1].tensor);
                         }};
  calls["tensor_scale"] = {
      "tensor_transform", {{"x", y}}, [](Context& k, const Tensors& t) { tensor_scale(k, t[0].tensor, 2); }};
  calls["tensor_set"] = {"", {{"y", y}}, [](Context& k, const Tensors& t) { tensor_set(k, t[0].tensor, 2); }};
  calls["tensor_op"] = {"", {{"a", a}, {"b", b}, {"c", c}, {"y", y}}, [](Context& k, const Tensors& t) {
                          tensor_op(k, TensorOpMode::select, t[0].tensor, t[1].tensor, t[2].tensor, t[3].tensor);
                        }};
  calls["tensor_op_backward"] = {"", {{"dy", b}, {"a", a}, {"dx", y}}, [](Context& k, const Tensors& t) {
                                   tensor_op_backward(k, TensorOpMode::exp, TensorOpInput::a, t[0].tensor, t[2].tensor,
                                                      {.a = t[1].tensor});
                                 }};
  const Tensor named(slot(1, {3, 5}).data(), i32, {3, 5}, contiguous);
  calls["gather"] = {"", {{"x", a}, {"indices", named}, {"y", y}}, [](Context& k, const Tensors& t) {
                       gather(k, t[0].tensor, t[1].tensor, t[2].tensor, {.axis = 1});
                     }};
  calls["scatter"] = {"", {{"updates", a}, {"indices", named}, {"y", y}}, [](Context& k, const Tensors& t) {
                        scatter(k, t[0].tensor, t[1].tensor, t[2].tensor, {.axis = 1});
                      }};
  calls["gather"].any_dtype = true;
  calls["gather"].free_dimensions = {{"x", {1}}};
  calls["scatter"].free_dimensions = {{"y", {1}}};
  calls["scatter"].none_is_free = true;
}

void RightCalls::add_recurrent_layers(Calls& calls) const {
  const Tensor gates = slot(0, {3, 4, 1, 20}), r = slot(1, {1, 20, 5}), y = slot(3, {3, 4, 1, 5});
  const Tensor r_bias = at(16384 + 4096, {1, 20}), peepholes = at(16384 + 8192, {1, 15});
  const Tensor h0 = slot(2, {3, 1, 5}), c0 = at(32768 + 4096, {3, 1, 5});
  const Tensor lengths(at(32768 + 8192, {3}).data(), i32, {3}, contiguous);
  const Tensor hn = at(49152 + 4096, {3, 1, 5}), cn = at(49152 + 8192, {3, 1, 5}),
               saved = at(49152 + 12288, {3, 4, 1, 25});
  calls["recurrent_forward"] = {"",
                                {{"gates", gates},
                                 {"r", r},
                                 {"r_bias", r_bias},
                                 {"peepholes", peepholes},
                                 {"h0", h0},
                                 {"c0", c0},
                                 {"lengths", lengths},
                                 {"y", y},
                                 {"hn", hn},
                                 {"cn", cn},
                                 {"saved", saved}},
                                [](Context& k, const Tensors& t) {
                                  recurrent_forward(k, t[0].tensor, t[1].tensor, t[7].tensor,
                                                    {.r_bias = t[2].tensor,
                                                     .peepholes = t[3].tensor,
                                                     .h0 = t[4].tensor,
                                                     .c0 = t[5].tensor,
                                                     .lengths = t[6].tensor,
                                                     .hn = t[8].tensor,
                                                     .cn = t[9].tensor,
                                                     .saved = t[10].tensor});
                                },
                                4};
  const Tensor dy = slot(0, {3, 4, 1, 5}), dgates = slot(3, {3, 4, 1, 20});
  const Tensor past = at(4096, {3, 4, 1, 25}), dhn = at(32768 + 12288, {3, 1, 5});
  calls["recurrent_backward"] = {"",
                                 {{"dy", dy},
                                  {"r", r},
                                  {"saved", past},
                                  {"peepholes", peepholes},
                                  {"c0", c0},
                                  {"lengths", lengths},
                                  {"dhn", dhn},
                                  {"dcn", h0},
                                  {"dgates", dgates},
                                  {"dh0", hn},
                                  {"dc0", cn}},
                                 [](Context& k, const Tensors& t) {
                                   recurrent_backward(k, t[0].tensor, t[1].tensor, t[2].tensor, t[8].tensor,
                                                      {.peepholes = t[3].tensor,
                                                       .c0 = t[4].tensor,
                                                       .lengths = t[5].tensor,
                                                       .dhn = t[6].tensor,
                                                       .dcn = t[7].tensor,
                                                       .dh0 = t[9].tensor,
                                                       .dc0 = t[10].tensor});
                                 },
                                 3};
}

void RightCalls::add_ctc_losses(Calls& calls) const {
  const Tensor x = at(0, {2, 5, 4}), targets = at(4096, {2, 3}, i32), prefixes = at(16384, {2, 5, 7});
  const Tensor input_lengths = at(8192, {2}, i32), target_lengths = at(12288, {2}, i32);
  calls["ctc_loss_forward"] = {
      "",
      {{"x", x},
       {"targets", targets},
       {"input_lengths", input_lengths},
       {"target_lengths", target_lengths},
       {"loss", at(20480, {2})},
       {"prefixes", prefixes}},
      [](Context& k, const Tensors& t) {
        ctc_loss_forward(k, t[0].tensor, t[1].tensor, t[4].tensor,
                         {.input_lengths = t[2].tensor, .target_lengths = t[3].tensor, .prefixes = t[5].tensor});
      },
      2};
  calls["ctc_loss_forward"].free_dimensions = {{"x", {2}}};
  calls["ctc_loss_backward"] = {
      "",
      {{"x", x},
       {"targets", targets},
       {"input_lengths", input_lengths},
       {"target_lengths", target_lengths},
       {"dloss", at(20480, {2})},
       {"prefixes", prefixes},
       {"dx", at(24576, {2, 5, 4})}},
      [](Context& k, const Tensors& t) {
        ctc_loss_backward(k, t[0].tensor, t[1].tensor, t[5].tensor, t[6].tensor,
                          {.input_lengths = t[2].tensor, .target_lengths = t[3].tensor, .dloss = t[4].tensor});
      }};
}

void RightCalls::add_grid_samples(Calls& calls) const {
  const Tensor x = at(0, {2, 3, 5, 6}), grid = at(4096, {2, 4, 3, 2}), dy = at(8192, {2, 3, 4, 3});
  calls["grid_sample"] = {"",
                          {{"x", x}, {"grid", grid}, {"y", at(12288, {2, 3, 4, 3})}},
                          [](Context& k, const Tensors& t) { grid_sample(k, t[0].tensor, t[1].tensor, t[2].tensor); }};
  calls["grid_sample_backward_data"] = {
      "", {{"dy", dy}, {"grid", grid}, {"dx", at(12288, {2, 3, 5, 6})}}, [](Context& k, const Tensors& t) {
        grid_sample_backward_data(k, t[0].tensor, t[1].tensor, t[2].tensor);
      }};
  calls["grid_sample_backward_grid"] = {
      "", {{"dy", dy}, {"x", x}, {"grid", grid}, {"dgrid", at(12288, {2, 4, 3, 2})}}, [](Context& k, const Tensors& t) {
        grid_sample_backward_grid(k, t[0].tensor, t[1].tensor, t[2].tensor, t[3].tensor);
      }};
  calls["grid_sample"].free_dimensions = calls["grid_sample_backward_grid"].free_dimensions = {{"x", {2, 3}}};
  calls["grid_sample_backward_data"].free_dimensions = {{"dx", {2, 3}}};
  calls["affine_grid"] = {"", {{"theta", at(0, {2, 2, 3})}, {"grid", grid}}, [](Context& k, const Tensors& t) {
                            affine_grid(k, t[0].tensor, t[1].tensor);
                          }};
  calls["affine_grid_backward"] = {
      "", {{"dgrid", grid}, {"dtheta", at(0, {2, 2, 3})}}, [](Context& k, const Tensors& t) {
        affine_grid_backward(k, t[0].tensor, t[1].tensor);
      }};
  calls["affine_grid"].free_dimensions = {{"grid", {1, 2}}};
  calls["affine_grid_backward"].free_dimensions = {{"dgrid", {1, 2}}};
  calls["affine_grid"].none_is_free = calls["affine_grid_backward"].none_is_free = true;
}

void RightCalls::add_attention(Calls& calls) const {
  const Tensor q = at(0, {2, 4, 3, 5}), k = at(4096, {2, 2, 7, 5}), v = at(8192, {2, 2, 7, 6});
  // Along dimensions that repeat 2 and 3 are wrong, too.
  const Tensor bias = at(12288, {2, 1, 3, 7}), mask = at(16384, {2, 4, 3, 1}, u8), lengths = at(20480, {2}, i32);
  const Tensor y = at(24576, {2, 4, 3, 6}), lse = at(28672, {2, 4, 3});
  calls["attention_forward"] = {
      "",
      {{"q", q}, {"k", k}, {"v", v}, {"bias", bias}, {"mask", mask}, {"lengths", lengths}, {"y", y}, {"lse", lse}},
      [](Context& c, const Tensors& t) {
        attention_forward(c, t[0].tensor, t[1].tensor, t[2].tensor, t[6].tensor,
                          {.bias = t[3].tensor, .mask = t[4].tensor, .lengths = t[5].tensor, .lse = t[7].tensor});
      },
      2};
  calls["attention_backward"] = {"",
                                 {{"dy", at(32768, {2, 4, 3, 6})},
                                  {"q", q},
                                  {"k", k},
                                  {"v", v},
                                  {"y", y},
                                  {"lse", lse},
                                  {"bias", bias},
                                  {"mask", mask},
                                  {"lengths", lengths},
                                  {"dq", at(36864, {2, 4, 3, 5})},
                                  {"dk", at(40960, {2, 2, 7, 5})},
                                  {"dv", at(45056, {2, 2, 7, 6})},
                                  {"dbias", at(49152, {2, 4, 3, 7})}},
                                 [](Context& c, const Tensors& t) {
                                   attention_backward(c, t[0].tensor, t[1].tensor, t[2].tensor, t[3].tensor,
                                                      t[4].tensor, t[5].tensor, t[9].tensor,
                                                      {.bias = t[6].tensor,
                                                       .mask = t[7].tensor,
                                                       .lengths = t[8].tensor,
                                                       .dk = t[10].tensor,
                                                       .dv = t[11].tensor,
                                                       .dbias = t[12].tensor});
                                 },
                                 4};
}

void RightCalls::add_products(Calls& calls) const {
  const Tensor x = slot(0, {3, 5}), dy = slot(2, {3, 4}), y = slot(3, {3, 4});
  calls["call"] = {"gemm", {{"a", x}, {"b", slot(1, {5, 4})}, {"c", y}}, [](Context& k, const Tensors& t) {
                     kiln::call(k, "gemm", {{"a", t[0].tensor}, {"b", t[1].tensor}, {"c", t[2].tensor}});
                   }};
  calls["gemm"] = {"", {{"a", x}, {"b", slot(1, {5, 4})}, {"c", y}}, [](Context& k, const Tensors& t) {
                     gemm(k, t[0].tensor, t[1].tensor, t[2].tensor);
                   }};
  // Messages speak of the product that a layer is.
  calls["fully_connected_forward"] = {
      "gemm", {{"a", x}, {"b", slot(1, {4, 5})}, {"c", y}}, [](Context& k, const Tensors& t) {
        fully_connected_forward(k, t[0].tensor, t[1].tensor, t[2].tensor);
      }};
  calls["fully_connected_backward_data"] = {
      "gemm", {{"a", dy}, {"b", slot(1, {4, 5})}, {"c", slot(3, {3, 5})}}, [](Context& k, const Tensors& t) {
        fully_connected_backward_data(k, t[0].tensor, t[1].tensor, t[2].tensor);
      }};
  calls["fully_connected_backward_weights"] = {
      "gemm", {{"b", x}, {"a", dy}, {"c", slot(3, {4, 5})}}, [](Context& k, const Tensors& t) {
        fully_connected_backward_weights(k, t[0].tensor, t[1].tensor, t[2].tensor);
      }};
  calls["fully_connected_backward_bias"] = {
      "conv_backward_bias",
      {{"dy", dy}, {"db", slot(3, {4})}},
      [](Context& k, const Tensors& t) { fully_connected_backward_bias(k, t[0].tensor, t[1].tensor); },
      1,
      true};
}

void RightCalls::add_losses(Calls& calls) const {
  const Tensor x = slot(0, {3, 5}), targets = at(16384, {3}, i32), weights = at(16384 + 8192, {5});
  calls["cross_entropy_forward"] = {
      "", {{"x", x}, {"targets", targets}, {"losses", slot(3, {3})}}, [](Context& k, const Tensors& t) {
        cross_entropy_forward(k, t[0].tensor, t[1].tensor, t[2].tensor, {.reduction = LossReduction::none});
      }};
  calls["cross_entropy_forward"].free_dimensions = {{"x", {1}}};
  calls["cross_entropy_forward, weighted"] = {
      "cross_entropy_forward",
      {{"x", x}, {"targets", targets}, {"weights", weights}, {"losses", slot(3, {3})}},
      [](Context& k, const Tensors& t) {
        cross_entropy_forward(k, t[0].tensor, t[1].tensor, t[3].tensor,
                              {.reduction = LossReduction::none, .weights = t[2].tensor, .smoothing = 0.25f});
      }};
  calls["cross_entropy_backward"] = {
      "",
      {{"x", x}, {"targets", targets}, {"weights", weights}, {"dlosses", slot(2, {3})}, {"dx", slot(3, {3, 5})}},
      [](Context& k, const Tensors& t) {
        const CrossEntropyOptions each = {.reduction = LossReduction::none, .weights = t[2].tensor};
        cross_entropy_backward(k, t[0].tensor, t[1].tensor, t[3].tensor, t[4].tensor, each);
      }};
}

void RightCalls::add_normalisations(Calls& calls) const {
  const Tensor x = slot(0, {3, 4, 5}), y = slot(3, {3, 4, 5}), dy = slot(2, {3, 4, 5});
  const Tensor row = slot(1, {3, 1, 1}), channel = slot(1, {3, 4, 1}), group = slot(1, {3, 2, 1, 1}),
               batch = slot(1, {1, 4, 1}), more = at(16384 + 8192, {1, 4, 1});
  calls["norm_forward"] = {"",
                           {{"x", x}, {"y", y}, {"mean", row}},
                           [](Context& k, const Tensors& t) {
                             norm_forward(k, {1, 2}, t[0].tensor, t[1].tensor, {.mean = t[2].tensor});
                           },
                           2};
  calls["norm_inference"] = {
      "", {{"x", x}, {"running_mean", batch}, {"running_variance", more}, {"y", y}}, [](Context& k, const Tensors& t) {
        norm_inference(k, {0, 2}, t[0].tensor, t[1].tensor, t[2].tensor, t[3].tensor);
      }};
  const Tensor saved = at(16384 + 8192, {3, 1, 1});
  calls["norm_backward"] = {
      "",
      {{"dy", dy}, {"x", x}, {"inv_deviation", row}, {"residual", at(16384 + 12288, {3, 4, 5})}, {"dx", y}},
      [saved](Context& k, const Tensors& t) {
        norm_backward(k, {1, 2}, t[0].tensor, t[1].tensor, t[2].tensor, t[4].tensor,
                      {.mean = saved, .activation = {ActivationMode::swish}, .residual = t[3].tensor});
      }};
  // The usual ones: what is shorter than x fits in several ways, so only what has x's extents stands here.
  const auto add_forward = [&](const std::string& name, const auto& function) {
    calls[name] = {"norm_forward", {{"x", x}, {"y", y}}, [function](Context& k, const Tensors& t) {
                     function(k, t[0].tensor, t[1].tensor);
                   }};
  };
  using T = const Tensor&;
  add_forward("layer_norm_forward", [](Context& k, T a, T b) { layer_norm_forward(k, 1, a, b); });
  add_forward("rms_norm_forward", [](Context& k, T a, T b) { rms_norm_forward(k, 1, a, b); });
  add_forward("instance_norm_forward", [](Context& k, T a, T b) { instance_norm_forward(k, a, b); });
  add_forward("group_norm_forward", [](Context& k, T a, T b) { group_norm_forward(k, 2, a, b); });
  add_forward("batch_norm_forward", [](Context& k, T a, T b) { batch_norm_forward(k, a, b); });
  add_forward("batch_norm_inference",
              [batch, more](Context& k, T a, T b) { batch_norm_inference(k, a, batch, more, b); });
  calls["batch_norm_inference"].operation = "norm_inference";
  const auto add_backward = [&](const std::string& name, const auto& function) {
    calls[name] = {"norm_backward", {{"dy", dy}, {"x", x}, {"dx", y}}, [function](Context& k, const Tensors& t) {
                     function(k, t[0].tensor, t[1].tensor, t[2].tensor);
                   }};
  };
  add_backward("layer_norm_backward",
               [row](Context& k, T a, T b, T c) { layer_norm_backward(k, 1, a, b, row, c, {.mean = row}); });
  add_backward("rms_norm_backward", [row](Context& k, T a, T b, T c) { rms_norm_backward(k, 1, a, b, row, c); });
  add_backward("instance_norm_backward", [channel](Context& k, T a, T b, T c) {
    instance_norm_backward(k, a, b, channel, c, {.mean = channel});
  });
  add_backward("group_norm_backward",
               [group](Context& k, T a, T b, T c) { group_norm_backward(k, 2, a, b, group, c, {.mean = group}); });
  add_backward("batch_norm_backward",
               [batch](Context& k, T a, T b, T c) { batch_norm_backward(k, a, b, batch, c, {.mean = batch}); });
}

void RightCalls::add_affine_normalisations(Calls& calls) const {
  const Tensor x = slot(0, {3, 4, 5}), shift = slot(3, {3, 4, 5});
  // Parameters of every element: w fits one x alone.
  const Tensor scale = at(16384 + 8192, {3, 4, 5});
  calls["norm_affine"] = {"",
                          {{"x", x}, {"w", slot(1, {3, 4, 5})}, {"scale", scale}, {"shift", shift}},
                          [](Context& k, const Tensors& t) {
                            norm_affine(k, {1, 2}, t[0].tensor, t[2].tensor, t[3].tensor, {.w = t[1].tensor});
                          },
                          2};
  calls["group_norm_affine"] = {"norm_affine",
                                {{"x", x},
                                 {"w", slot(1, {3, 2, 2, 5})},
                                 {"scale", at(16384 + 8192, {3, 2, 2, 5})},
                                 {"shift", slot(3, {3, 2, 2, 5})}},
                                [](Context& k, const Tensors& t) {
                                  group_norm_affine(k, 2, t[0].tensor, t[2].tensor, t[3].tensor, {.w = t[1].tensor});
                                },
                                2};
}

void RightCalls::add_local_normalisations(Calls& calls) const {
  const std::vector<Named> forward = {{"x", slot(0, {3, 4, 5})}, {"y", slot(3, {3, 4, 5})}};
  const std::vector<Named> backward = {
      {"x", slot(0, {3, 4, 5})}, {"dy", slot(2, {3, 4, 5})}, {"dx", slot(3, {3, 4, 5})}};
  const auto add_forward = [&](const std::string& name, const auto& function) {
    calls[name] = {"local_norm_forward", forward, [&function](Context& k, const Tensors& t) {
                     function(k, t[0].tensor, t[1].tensor, LocalNormOptions{}, nullptr);
                   }};
  };
  const auto add_backward = [&](const std::string& name, const auto& function) {
    calls[name] = {"local_norm_backward", backward, [&function](Context& k, const Tensors& t) {
                     function(k, t[0].tensor, t[1].tensor, t[2].tensor, LocalNormOptions{}, std::nullopt, nullptr);
                   }};
  };
  add_forward("lrn_forward", lrn_forward);
  add_forward("lcn_forward", lcn_forward);
  add_backward("lrn_backward", lrn_backward);
  add_backward("lcn_backward", lcn_backward);
}

// Message about a tensor like `good` that begins room_ bytes before the end of the memory.

}  // namespace kiln
