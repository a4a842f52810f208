#include "c_names.h"

#include <array>
#include <string_view>

namespace kiln::capi {
namespace {

struct Word {
  std::string_view cpp, c;
};

// Replaced in this order, so what another one begins with stands behind that.
constexpr std::array<Word, 25> words = {
    Word{"Context::prepare()", "kiln_context_prepare()"},
    Word{"Context::prepare_open()", "kiln_context_prepare_open()"},
    Word{"Context::plan()", "kiln_plan_create()"},
    Word{"plan_of_call()", "kiln_call_plan()"},
    Word{"Plan::run()", "kiln_plan_run()"},
    Word{"Plan::run", "kiln_plan_run()"},
    Word{"or call()", "or kiln_call()"},
    Word{"Request::parse()", "kiln_plan_create()"},
    Word{"TensorSpec::packed()", "kiln_tensor_packed()"},
    Word{"kiln::bias(values)", "kiln_epilogue_bias()"},
    Word{"kiln::add(residual)", "kiln_epilogue_add()"},
    Word{"kiln::expression()", "kiln_epilogue_expression()"},
    Word{"expression(...)", "kiln_epilogue_expression()"},
    Word{"TuningMode::never", "KILN_TUNING_NEVER"},
    Word{"one of TuningMode", "one of kiln_tuning_mode"},
    Word{"one of kiln::DType", "one of kiln_dtype"},
    Word{"one of kiln::Scale", "0, 1 or any"},
    Word{"to FirstCall::at_once", "to KILN_FIRST_CALL_AT_ONCE"},
    Word{"ContextOptions::workspace_allocator", "kiln_context_options.workspace_allocate"},
    Word{"ContextOptions::tuning", "kiln_context_options.tuning_mode"},
    Word{"ContextOptions::", "kiln_context_options."},
    Word{"ModelOptions::", "kiln_model_options."},
    Word{"Model::outputs()", "kiln_model_get_output()"},
    Word{"Model::", "kiln_model_"},
    Word{"RunValues::", "kiln_run_values."},
};

}  // namespace

std::string in_words_of_c(std::string text) {
  for (const Word& word : words) {
    for (size_t at = text.find(word.cpp); at != std::string::npos; at = text.find(word.cpp, at + word.c.size())) {
      text.replace(at, word.cpp.size(), word.c);
    }
  }
  return text;
}

}  // namespace kiln::capi
