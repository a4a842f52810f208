#include "cudnn_offers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <limits>
#include <utility>

#include "cudnn_calls.h"
#include "kiln/generator/operation.h"
#include "kiln/generator/operations/conv_backward_data.h"
#include "kiln/generator/operations/conv_backward_filter.h"
#include "kiln/generator/operations/conv_forward.h"

namespace kiln::bench {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

using Library = std::shared_ptr<const CudnnLibrary>;
using Stages = std::vector<EpilogueStage>;

size_t index_of(const Request& request, std::string_view name) {
  const auto found =
      std::find_if(request.operands.begin(), request.operands.end(), [&](const auto& o) { return o.name == name; });
  return static_cast<size_t>(found - request.operands.begin());
}

Operations::Tensor bind(Operations& graph, const Request& request, std::string_view name) {
  return graph.operand(index_of(request, name), request.at(name));
}

// The stages on `in`; the last one writes to y's memory.
void apply(Operations& graph, const Request& request, const Stages& stages, Operations::Tensor in) {
  const TensorSpec& y = request.at("y");
  for (size_t i = 0; i < stages.size(); ++i) {
    const auto other = [&] {
      return stages[i] == EpilogueStage::bias ? graph.bias(index_of(request, "bias"), request.at("bias"), y)
                                              : bind(graph, request, "residual");
    };
    const bool adds = stages[i] == EpilogueStage::bias || stages[i] == EpilogueStage::add;
    const Operations::Tensor added = adds ? other() : in;
    const Operations::Tensor out = i + 1 == stages.size() ? bind(graph, request, "y") : graph.intermediate(y);
    if (adds) {
      graph.add(in, added, 1, out);
    } else {
      const bool clips = stages[i] == EpilogueStage::clip;
      graph.clamp(in, clips ? clip_lo : 0, clips ? clip_hi : infinity, out);
    }
    in = out;
  }
}

// The convolution to `out`, which is y's memory or a value on the way.
Operations::Tensor convolve(Operations& graph, const Request& request, bool to_memory) {
  const ConvForward conv = ConvForward::of(request);
  const Operations::Tensor x = bind(graph, request, "x"), w = bind(graph, request, "w");
  const Operations::Tensor y = to_memory ? bind(graph, request, "y") : graph.intermediate(conv.y);
  graph.convolve(Operations::Convolution::forward, conv, x, w, y);
  return y;
}

Operations fused(const Library& library, const Request& request) {
  Operations graph(library);
  const Operations::Tensor sum = convolve(graph, request, request.epilogue.empty());
  apply(graph, request, request.epilogue, sum);
  return graph;
}

Operations backward_data(const Library& library, const Request& request) {
  Operations graph(library);
  const Operations::Tensor dy = bind(graph, request, "dy"), w = bind(graph, request, "w");
  const Operations::Tensor dx = bind(graph, request, "dx");
  graph.convolve(Operations::Convolution::backward_data, ConvBackwardData::of(request), dx, w, dy);
  return graph;
}

Operations backward_filter(const Library& library, const Request& request) {
  Operations graph(library);
  const Operations::Tensor x = bind(graph, request, "x"), dy = bind(graph, request, "dy");
  const Operations::Tensor dw = bind(graph, request, "dw");
  graph.convolve(Operations::Convolution::backward_filter, ConvBackwardFilter::of(request), x, dw, dy);
  return graph;
}

// Stages behind bias and residual, if the request has the bias first: the pattern below is then another one than its
// own.
std::optional<Stages> after_bias(const Stages& stages) {
  if (stages.empty() || stages[0] != EpilogueStage::bias) return std::nullopt;
  const size_t sums = stages.size() > 1 && stages[1] == EpilogueStage::add ? 2 : 1;
  return Stages(stages.begin() + static_cast<std::ptrdiff_t>(sums), stages.end());
}

Operations residual_first(const Library& library, const Request& request, const Stages& rest) {
  Operations graph(library);
  const TensorSpec& y = request.at("y");
  const bool has_residual = request.has(EpilogueStage::add);
  const Operations::Tensor product = convolve(graph, request, false);
  const Operations::Tensor z = bind(graph, request, has_residual ? "residual" : "y");
  const Operations::Tensor sum = graph.intermediate(y);
  graph.add(product, z, has_residual ? 1 : 0, sum);
  Stages stages = {EpilogueStage::bias};
  stages.insert(stages.end(), rest.begin(), rest.end());
  apply(graph, request, stages, sum);
  return graph;
}

std::vector<Operations> separate(const Library& library, const Request& request) {
  std::vector<Operations> graphs;
  convolve(graphs.emplace_back(library), request, true);
  Operations& epilogue = graphs.emplace_back(library);
  apply(epilogue, request, request.epilogue, bind(epilogue, request, "y"));
  return graphs;
}

GraphForm form_of(std::string name, Operations graph) {
  GraphForm form{std::move(name), {}};
  form.graphs.push_back(std::move(graph));
  return form;
}

std::optional<std::string> not_comparable_pooling(const PoolForward& pool) {
  for (int i = 0; i < pool.axes(); ++i) {
    const WindowAxis axis = pool.axis(i);
    if (axis.dilation != 1) return "cuDNN's pooling knows no dilation";
    const int64_t end = axis.position(axis.outputs - 1, axis.window - 1) + 1;
    if (pool.mode == PoolMode::avg_padded && end > axis.extent + axis.pad_end) {
      return "its last window reaches beyond the padding, which cuDNN's average would count";
    }
  }
  return std::nullopt;
}

// A form with the configurations of its first graph. For a second graph cuDNN's first configuration with equal
// arithmetic is taken.
struct BuiltForm {
  std::vector<CudnnGraph> graphs;
  std::vector<EngineConfig> configs;     // of the first graph
  std::optional<EngineConfig> epilogue;  // of the second
};

// The outcome of an offer's build().
struct Ahead {
  std::vector<GraphStep> steps;
  std::exception_ptr failure;

  void make(const CudnnHandle& handle, const BuiltForm& form, size_t index) {
    try {
      steps.push_back({form.graphs[0].bound(), CudnnPlan(handle, form.configs[index])});
      if (form.epilogue) steps.push_back({form.graphs[1].bound(), CudnnPlan(handle, *form.epilogue)});
    } catch (...) {
      failure = std::current_exception();
    }
  }
};

std::shared_ptr<const BuiltForm> build(const CudnnHandle& handle, const Request& request, GraphForm form) {
  auto built = std::make_shared<BuiltForm>();
  for (Operations& operations : form.graphs) built->graphs.emplace_back(handle, std::move(operations));
  built->configs = built->graphs.front().engine_configs();
  if (built->graphs.size() > 1) {
    for (EngineConfig& config : built->graphs[1].engine_configs()) {
      if (!built->epilogue && !unequal_arithmetic(request, config)) built->epilogue = std::move(config);
    }
    if (!built->epilogue) throw Error(ErrorCode::unsupported, "cuDNN offers nothing for the epilogue alone");
  }
  return built;
}

CudnnOffer offer_of(const CudnnHandle& handle, const Request& request, const std::string& form,
                    const std::shared_ptr<const BuiltForm>& built, size_t index) {
  const EngineConfig& config = built->configs[index];
  CudnnOffer offer{
      form.empty() ? config.name : fmt::format("{}: {}", form, config.name), config.heuristic, {}, {}, {}, {}};
  if (built->epilogue) offer.name += fmt::format(", then {}", built->epilogue->name);
  if (const auto why = unequal_arithmetic(request, config)) {
    offer.outcome = "unequal arithmetic";
    offer.detail = *why;
    return offer;
  }
  const auto ahead = std::make_shared<Ahead>();
  offer.build = [built, index, ahead](const CudnnHandle& builder) { ahead->make(builder, *built, index); };
  offer.prepare = [&handle, built, index, ahead](const auto& device, int64_t workspace_limit,
                                                 const OperandSets& operands) {
    if (ahead->steps.empty() && !ahead->failure) ahead->make(handle, *built, index);
    if (ahead->failure) std::rethrow_exception(ahead->failure);
    return std::make_unique<GraphSide>(device, handle, built, std::move(ahead->steps), workspace_limit, operands);
  };
  return offer;
}

void add_form(const CudnnHandle& handle, const Request& request, GraphForm form, std::vector<CudnnOffer>& offers) {
  const std::string name = form.name;
  try {
    const auto built = build(handle, request, std::move(form));
    for (size_t i = 0; i < built->configs.size(); ++i) offers.push_back(offer_of(handle, request, name, built, i));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    offers.push_back({name.empty() ? "graph" : name, {}, "refused", error.what(), {}, {}});
  }
}

std::vector<CudnnCall> calls_for(const Library& library, const Request& request) {
  if (request.operation == "pool_forward") return pooling_calls(library, PoolForward::of(request));
  if (request.operation == "softmax_forward") return softmax_calls(library, SoftmaxForward::of(request));
  return {};
}

}  // namespace

std::optional<std::string> not_comparable(const Request& request) {
  if (request.dynamic_batch) return "its batch is dynamic";
  if (request.blend != Blend{}) return "it scales or adds to its output";
  if (request.user_code) return "cuDNN knows nothing of its user code";
  if (!request.epilogue.empty() && request.operation != "conv_forward") {
    return "the comparison covers epilogues of conv_forward alone";
  }
  if (result_of(request).spec.elements() == 0) return "its output is empty";
  if (request.operation == "pool_forward") return not_comparable_pooling(PoolForward::of(request));
  constexpr std::array covered = {"conv_forward", "conv_backward_data", "conv_backward_filter", "softmax_forward"};
  if (std::find(covered.begin(), covered.end(), request.operation) != covered.end()) return std::nullopt;
  return fmt::format("the comparison does not cover {}", request.operation);
}

std::vector<GraphForm> graph_forms(const Library& library, const Request& request) {
  std::vector<GraphForm> forms;
  if (request.operation == "pool_forward") {
    Operations graph(library);
    const Operations::Tensor x = bind(graph, request, "x"), y = bind(graph, request, "y");
    graph.resample(PoolForward::of(request), x, y);
    forms.push_back(form_of("resample", std::move(graph)));
  }
  if (request.operation == "conv_backward_data") forms.push_back(form_of("", backward_data(library, request)));
  if (request.operation == "conv_backward_filter") forms.push_back(form_of("", backward_filter(library, request)));
  if (request.operation != "conv_forward") return forms;
  forms.push_back(form_of(request.epilogue.empty() ? "" : "fused", fused(library, request)));
  if (request.epilogue.empty()) return forms;
  if (const auto rest = after_bias(request.epilogue)) {
    forms.push_back(form_of("fused, residual first", residual_first(library, request, *rest)));
  }
  if (request.at("y").dtype == DType::f32) forms.push_back({"separate", separate(library, request)});
  return forms;
}

std::vector<CudnnOffer> cudnn_offers(const CudnnHandle& handle, const Request& request) {
  std::vector<CudnnOffer> offers;
  for (GraphForm& form : graph_forms(handle.library(), request)) {
    add_form(handle, request, std::move(form), offers);
  }
  for (CudnnCall& call : calls_for(handle.library(), request)) {
    CudnnOffer offer{call.name, {}, {}, {}, {}, {}};
    offer.prepare = [&handle, run = std::move(call.run), x = index_of(request, "x"), y = index_of(request, "y")](
                        const auto&, int64_t, const OperandSets& operands) {
      return std::make_unique<CallSide>([&handle, run, x, y, &operands](size_t set) {
        run(handle, operands.address(set, x), operands.address(set, y));
      });
    };
    offers.push_back(std::move(offer));
  }
  return offers;
}

}  // namespace kiln::bench
