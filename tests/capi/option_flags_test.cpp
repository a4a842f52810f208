// Flags that change no result reach the request, each its own word: seen in what a context that is locked to nothing
// refuses, so that nothing is compiled.
#include <gtest/gtest.h>

#include "fixture.h"

namespace kiln::capi::option_flags_test {
namespace {

template <class Options>
struct Flag {
  int32_t Options::*member;
  const char* word;
};

class CApiOptionFlags : public CApi {
 protected:
  CApiOptionFlags() {
    kiln_context_options given = options();
    given.locked = 1;
    EXPECT_EQ(kiln_context_create(&given, &locked_), KILN_OK) << kiln_last_error();
  }
  ~CApiOptionFlags() override { kiln_context_destroy(locked_); }

  // Expects that `call` with no flag asks for none of the words, and with one of them for its own alone.
  template <class Options, class Call>
  static void expect_words(Options given, const std::vector<Flag<Options>>& flags, const Call& call) {
    const auto expect_word_of = [&](const Flag<Options>* set) {
      EXPECT_EQ(call(&given), KILN_UNSUPPORTED) << kiln_last_error();
      const std::string message = kiln_last_error();
      for (const Flag<Options>& flag : flags) {
        EXPECT_EQ(message.find(flag.word) != std::string::npos, &flag == set) << flag.word << ": " << message;
      }
    };
    expect_word_of(nullptr);
    for (const Flag<Options>& flag : flags) {
      given.*flag.member = 1;
      expect_word_of(&flag);
      given.*flag.member = 0;
    }
  }

  template <class Options>
  static std::vector<Flag<Options>> liberties() {
    return {{&Options::tf32, " tf32"},
            {&Options::fast, " fast"},
            {&Options::deterministic, " deterministic"},
            {&Options::dynamic_batch, " n=?"}};
  }
  template <class Options>
  static std::vector<Flag<Options>> dynamic() {
    return {{&Options::dynamic_batch, " n=?"}};
  }

  // Memory that no call gets to touch.
  kiln_tensor of(std::initializer_list<int64_t> extents) { return tensor(upload(wave(512)), extents); }

  kiln_context* locked_ = nullptr;
};

TEST_F(CApiOptionFlags, OfConvolutionsAndProducts) {
  const kiln_tensor x = of({2, 4, 6, 6}), w = of({4, 4, 3, 3}), y = of({2, 4, 4, 4}), b = of({4});
  expect_words(kiln_conv_options_default(), liberties<kiln_conv_options>(),
               [&](auto* given) { return kiln_conv_forward(locked_, &x, &w, &y, given, nullptr); });
  const auto gradients = liberties<kiln_conv_backward_options>();
  expect_words(kiln_conv_backward_options_default(), gradients,
               [&](auto* given) { return kiln_conv_backward_data(locked_, &y, &w, &x, given, nullptr); });
  expect_words(kiln_conv_backward_options_default(), gradients,
               [&](auto* given) { return kiln_conv_backward_filter(locked_, &x, &y, &w, given, nullptr); });
  expect_words(kiln_conv_backward_bias_options_default(), dynamic<kiln_conv_backward_bias_options>(),
               [&](auto* given) { return kiln_conv_backward_bias(locked_, &y, &b, given, nullptr); });
  const kiln_tensor matrix = of({6, 6}), product = of({6, 6});
  expect_words(kiln_gemm_options_default(), liberties<kiln_gemm_options>(),
               [&](auto* given) { return kiln_gemm(locked_, &matrix, &matrix, &product, given, nullptr); });
}

TEST_F(CApiOptionFlags, OfLocalConvolutions) {
  const kiln_tensor x = of({2, 2, 3, 3}), w = of({8, 2, 2, 2}), y = of({2, 2, 2, 2});
  expect_words(kiln_local_conv_options_default(), liberties<kiln_local_conv_options>(),
               [&](auto* given) { return kiln_local_conv_forward(locked_, &x, &w, &y, given, nullptr); });
  const auto gradients = liberties<kiln_local_conv_backward_options>();
  expect_words(kiln_local_conv_backward_options_default(), gradients,
               [&](auto* given) { return kiln_local_conv_backward_data(locked_, &y, &w, &x, given, nullptr); });
  expect_words(kiln_local_conv_backward_options_default(), gradients,
               [&](auto* given) { return kiln_local_conv_backward_filter(locked_, &x, &y, &w, given, nullptr); });
}

TEST_F(CApiOptionFlags, OfRows) {
  const kiln_tensor x = of({4, 6}), y = of({4, 6}), dy = of({4, 6}), row = of({4, 1}), more = of({4, 1});
  expect_words(kiln_norm_options_default(),
               {{&kiln_norm_options::mode, " mode=rms"}, {&kiln_norm_options::dynamic_batch, " n=?"}},
               [&](auto* given) { return kiln_norm_forward(locked_, &x, &y, given, nullptr); });
  expect_words(kiln_norm_affine_options_default(),
               {{&kiln_norm_affine_options::mode, " mode=rms"}, {&kiln_norm_affine_options::dynamic_batch, " n=?"}},
               [&](auto* given) { return kiln_norm_affine(locked_, &x, &row, &more, given, nullptr); });
  kiln_norm_options inference = kiln_norm_options_default();
  inference.axes[0] = 0;  // statistics without a batch
  const kiln_tensor mean = of({1, 6}), variance = of({1, 6});
  expect_words(inference, dynamic<kiln_norm_options>(),
               [&](auto* given) { return kiln_norm_inference(locked_, &x, &mean, &variance, &y, given, nullptr); });
  expect_words(kiln_norm_gradient_options_default(), dynamic<kiln_norm_gradient_options>(),
               [&](auto* given) { return kiln_norm_backward(locked_, &dy, &x, &row, &more, &y, given, nullptr); });
  expect_words(kiln_reduce_options_default(), dynamic<kiln_reduce_options>(),
               [&](auto* given) { return kiln_reduce(locked_, KILN_REDUCE_ADD, &x, &row, nullptr, given, nullptr); });
  expect_words(kiln_local_norm_options_default(), dynamic<kiln_local_norm_options>(),
               [&](auto* given) { return kiln_lrn_forward(locked_, &x, &y, given, nullptr); });
  kiln_tensor targets = of({4});
  targets.dtype = KILN_I32;
  kiln_cross_entropy_options loss = kiln_cross_entropy_options_default();
  loss.reduction = KILN_LOSS_SUM;
  expect_words(loss, dynamic<kiln_cross_entropy_options>(), [&](auto* given) {
    return kiln_cross_entropy_backward(locked_, &x, &targets, nullptr, &y, given, nullptr);
  });
  expect_words(kiln_softmax_options_default(), dynamic<kiln_softmax_options>(),
               [&](auto* given) { return kiln_softmax_forward(locked_, &x, &y, given, nullptr); });
}

TEST_F(CApiOptionFlags, OfElementsAndWindows) {
  const kiln_tensor x = of({4, 2, 3, 3}), y = of({4, 2, 3, 3}), pooled = of({4, 2, 1, 1});
  expect_words(kiln_dropout_options_default(), dynamic<kiln_dropout_options>(),
               [&](auto* given) { return kiln_dropout_forward(locked_, &x, &y, given, nullptr); });
  expect_words(kiln_activation_options_default(KILN_ACTIVATION_TANH), dynamic<kiln_activation_options>(),
               [&](auto* given) { return kiln_activation_forward(locked_, &x, &y, given, nullptr); });
  expect_words(kiln_transform_options_default(), dynamic<kiln_transform_options>(),
               [&](auto* given) { return kiln_tensor_transform(locked_, &x, &y, given, nullptr); });
  expect_words(kiln_tensor_op_options_default(), dynamic<kiln_tensor_op_options>(), [&](auto* given) {
    return kiln_tensor_op(locked_, KILN_TENSOR_ABS, &x, nullptr, nullptr, &y, given, nullptr);
  });
  kiln_pool_options pool = kiln_pool_options_default();
  pool.window[0] = pool.window[1] = 3;
  expect_words(pool, dynamic<kiln_pool_options>(),
               [&](auto* given) { return kiln_pool_forward(locked_, &x, &pooled, given, nullptr); });
}

}  // namespace
}  // namespace kiln::capi::option_flags_test
