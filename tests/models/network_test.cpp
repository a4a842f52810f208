// Small networks as PyTorch exports them, with random weights, against ONNX Runtime's results: tests/models/networks,
// which export.py makes.
#include <gtest/gtest.h>

#include "kernel_folder.h"
#include "kiln/context.h"
#include "kiln/model.h"
#include "kiln/models/host_run.h"
#include "node_tests.h"

namespace kiln::test::network_test {
namespace {

class Networks : public testing::TestWithParam<const char*> {
 protected:
  /// The error of the model's result, over its largest element, with floating-point numbers stored as `dtype`.
  static double error_in(DType dtype, ModelLayout layout = ModelLayout::automatic) {
    ContextOptions options;
    options.cache = "off";
    options.kernel_store = testing_support::kernel_folder();
    options.announce = [](std::string_view) {};
    Context context(options);
    const NodeTest network{GetParam(), std::filesystem::path(KILN_NETWORKS) / GetParam(), ""};
    Model model(context, network.folder / "model.onnx", {.dtype = dtype, .layout = layout});
    const DataSet data = data_sets_of(network).at(0);
    const std::vector<models::HostArray> inputs{read_tensor(data.inputs.at(0)).value()};
    return largest_error(models::run_on_host(context, model, inputs).at(0), read_tensor(data.outputs.at(0)).value());
  }
};

TEST_P(Networks, GiveWhatOnnxRuntimeGives) {
  EXPECT_LE(error_in(DType::f32), 1e-5);
}

TEST_P(Networks, GiveTheSameInEitherLayout) {
  EXPECT_LE(error_in(DType::f32, ModelLayout::channels_first), 1e-5);
  EXPECT_LE(error_in(DType::f32, ModelLayout::channels_last), 1e-5);
}

// Each tensor is rounded to 11 bits on its way.
TEST_P(Networks, GiveNearlyThatInF16) {
  EXPECT_LE(error_in(DType::f16), 1e-2);
}

INSTANTIATE_TEST_SUITE_P(Exported, Networks,
                         testing::Values("vit", "yolo_distances", "super_resolution", "vae_decoder"),
                         [](const auto& network) { return network.param; });

}  // namespace
}  // namespace kiln::test::network_test
