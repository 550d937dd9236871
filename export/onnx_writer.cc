// SPDX-License-Identifier: Apache-2.0
// Writes ONNX: each step of PortablePolicy as operators of ONNX.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "export/onnx_graph.h"
#include "export/portable_policy.h"

namespace skein {
namespace {

using onnx::TensorProto;
using Kind = TransformOptions::Kind;

constexpr int64_t kIrVersion = 8, kOpset = 17;  // ONNX 1.12, onnxruntime 1.12.

class Writer {
 public:
  Writer(const PortablePolicy& policy, onnx::GraphProto* proto) : policy_(policy), graph_(proto) {}

  void Write() {
    std::string x =
        graph_.Input("observation", TensorProto::FLOAT, policy_.env.obs_size, "As the environment gives it.");
    if (policy_.state_size() > 0) {
      state_ = graph_.Input("state", TensorProto::FLOAT, policy_.state_size(), "next_state of the step before.");
      const std::string reset =
          graph_.Input("reset", TensorProto::BOOL, 0, "Whether an episode begins: the state is then not read.");
      reset_ = graph_.Node("Unsqueeze", {reset, graph_.Ints("axis", {1})});
    }
    const EnvSpec& spec = policy_.spec;
    const std::string noise =
        graph_.Input("noise", TensorProto::FLOAT, spec.discrete ? 0 : spec.action_size,
                     spec.discrete ? "Of sampled_action: uniform in [0, 1)." : "Of sampled_action: standard normal.");
    for (const Transform& transform : policy_.transforms) x = Observe(transform, x);
    x = Remember(Normalize(x));
    for (size_t i = 0; i < policy_.network.hidden.size(); ++i) {
      x = Activate(
          Layer(absl::StrCat(policy_.network.shared_trunk ? "trunk." : "policy.", i), x, policy_.network.hidden[i]));
    }
    const std::string head = Layer("policy.head", x, policy_.network.head_size());
    graph_.Output(
        "head", head, TensorProto::FLOAT, policy_.network.head_size(),
        spec.discrete ? "Logits of the choices." : "Means of the actions, before clipping, scaling and tanh.");
    if (spec.discrete) {
      WriteChoices(head, noise);
    } else {
      WriteReals(head, noise);
    }
    if (policy_.state_size() > 0) {
      graph_.Output("next_state", graph_.Concatenated(next_state_), TensorProto::FLOAT, policy_.state_size(),
                    "For the next step.");
    }
  }

 private:
  std::string Parameter(const std::string& name, const std::vector<int64_t>& dims) {
    return graph_.Floats(name, policy_.Parameter(name), dims);
  }

  // The next `size` columns of the state.
  std::string TakeState(int64_t size) {
    state_taken_ += size;
    return graph_.Columns(state_, state_taken_ - size, state_taken_);
  }

  std::string Observe(const Transform& transform, const std::string& x) {
    if (transform.options.kind == Kind::kHide) {
      const std::vector<int64_t> kept(transform.kept.begin(), transform.kept.end());
      return graph_.IntNode("Gather", {x, graph_.Ints("kept", kept)}, {{"axis", 1}});
    }
    const int64_t count = transform.options.count, size = transform.inner.obs_size;
    if (transform.options.kind != Kind::kStack || count == 1) return x;
    const std::string first = graph_.Concatenated(std::vector<std::string>(count - 1, x));
    const std::string older = graph_.Node("Where", {reset_, first, TakeState((count - 1) * size)});
    const std::string stacked = graph_.Concatenated({older, x});
    next_state_.push_back(graph_.Columns(stacked, size, count * size));
    return stacked;
  }

  std::string Normalize(const std::string& x) {
    const int64_t size = policy_.spec.obs_size;
    const std::string centred =
        graph_.Node("Sub", {x, graph_.Floats("obs_normalizer.mean", policy_.normalization.mean, {size})});
    const std::string scaled =
        graph_.Node("Mul", {centred, graph_.Floats("obs_normalizer.inv_std", policy_.normalization.inv_std, {size})});
    return graph_.Node("Clip", {scaled, graph_.Scalar(-kNormalizationClip), graph_.Scalar(kNormalizationClip)});
  }

  // weight x + bias, the weight [outputs, inputs].
  std::string Product(const std::string& x, const std::string& weight, const std::string& bias, int64_t outputs) {
    const int64_t inputs = static_cast<int64_t>(policy_.Parameter(weight).size()) / outputs;
    return graph_.IntNode("Gemm", {x, Parameter(weight, {outputs, inputs}), Parameter(bias, {outputs})},
                          {{"transB", 1}});
  }
  std::string Layer(const std::string& name, const std::string& x, int64_t outputs) {
    return Product(x, name + ".weight", name + ".bias", outputs);
  }

  std::string Activate(const std::string& x) {
    switch (policy_.network.activation) {
      case ActivationKind::kElu:
        return graph_.Node("Elu", {x});
      case ActivationKind::kRelu:
        return graph_.Node("Relu", {x});
      default:
        return graph_.Node("Tanh", {x});
    }
  }

  std::string Old(int64_t size) { return graph_.Node("Where", {reset_, graph_.Scalar(0), TakeState(size)}); }

  // The formulas of policy/recurrent.h.
  std::string Remember(const std::string& x) {
    if (policy_.network.memory == MemoryKind::kNone) return x;
    const bool gru = policy_.network.memory == MemoryKind::kGru;
    const int64_t size = policy_.network.memory_size, gates = gru ? 3 : 4;
    const std::string h = Old(size);
    const std::string from_x = Product(x, "memory.weight_ih", "memory.bias_ih", gates * size);
    const std::string from_h = Product(h, "memory.weight_hh", "memory.bias_hh", gates * size);
    const auto gate = [&](const std::string& sums, int64_t i) {
      return graph_.Columns(sums, i * size, (i + 1) * size);
    };
    if (gru) {
      const auto sigmoid = [&](int64_t i) {
        return graph_.Node("Sigmoid", {graph_.Node("Add", {gate(from_x, i), gate(from_h, i)})});
      };
      const std::string r = sigmoid(0), z = sigmoid(1);
      const std::string n =
          graph_.Node("Tanh", {graph_.Node("Add", {gate(from_x, 2), graph_.Node("Mul", {r, gate(from_h, 2)})})});
      const std::string fresh = graph_.Node("Mul", {graph_.Node("Sub", {graph_.Scalar(1), z}), n});
      next_state_.push_back(graph_.Node("Add", {fresh, graph_.Node("Mul", {z, h})}));
      return next_state_.back();
    }
    const std::string c = Old(size), sums = graph_.Node("Add", {from_x, from_h});
    const auto sigmoid = [&](int64_t i) { return graph_.Node("Sigmoid", {gate(sums, i)}); };
    const std::string fresh = graph_.Node("Mul", {sigmoid(0), graph_.Node("Tanh", {gate(sums, 2)})});
    const std::string next_c = graph_.Node("Add", {graph_.Node("Mul", {sigmoid(1), c}), fresh});
    const std::string next_h = graph_.Node("Mul", {sigmoid(3), graph_.Node("Tanh", {next_c})});
    next_state_.push_back(next_h);
    next_state_.push_back(next_c);
    return next_h;
  }

  void WriteChoices(const std::string& logits, const std::string& noise) {
    graph_.Output("action", graph_.IntNode("ArgMax", {logits}, {{"axis", 1}, {"keepdims", 0}}), TensorProto::INT64, 0,
                  "The most likely choice.");
    // The number of choices whose cumulated probability is not beyond the noise.
    const std::string sums =
        graph_.Node("CumSum", {graph_.IntNode("Softmax", {logits}, {{"axis", 1}}), graph_.Ints("axis", {1})});
    const std::string below =
        graph_.Node("LessOrEqual", {sums, graph_.Node("Unsqueeze", {noise, graph_.Ints("axis", {1})})});
    const std::string counted = graph_.IntNode("Cast", {below}, {{"to", TensorProto::INT64}});
    const std::string count = graph_.IntNode("ReduceSum", {counted, graph_.Ints("axis", {1})}, {{"keepdims", 0}});
    graph_.Output("sampled_action", graph_.Node("Min", {count, graph_.Ints("last", {policy_.network.action_size - 1})}),
                  TensorProto::INT64, 0, "A choice by its probability.");
  }

  std::string Bound(const std::string& action, const EnvSpec& spec) {
    const std::string name = absl::StrCat("bounds_", ++bounds_);
    const std::string low = graph_.Floats(name + ".low", spec.action_low, {spec.action_size});
    const std::string high = graph_.Floats(name + ".high", spec.action_high, {spec.action_size});
    return graph_.Node("Min", {graph_.Node("Max", {action, low}), high});
  }

  // What the environment gets of an action.
  std::string Act(std::string action) {
    if (policy_.spec.clip_actions) action = Bound(action, policy_.spec);
    for (auto it = policy_.transforms.rbegin(); it != policy_.transforms.rend(); ++it) {
      if (it->options.kind == Kind::kClip) action = Bound(action, it->inner);
      if (it->options.kind == Kind::kSquash) action = graph_.Node("Tanh", {action});
      if (it->options.kind != Kind::kScale && it->options.kind != Kind::kSquash) continue;
      std::vector<float> range;
      for (int i = 0; i < it->inner.action_size; ++i) {
        range.push_back(it->inner.action_high[i] - it->inner.action_low[i]);
      }
      const std::string name = absl::StrCat("scale_", ++bounds_);
      const std::string half =
          graph_.Node("Mul", {graph_.Node("Add", {action, graph_.Scalar(1)}), graph_.Scalar(0.5f)});
      const std::string scaled =
          graph_.Node("Mul", {half, graph_.Floats(name + ".range", range, {it->inner.action_size})});
      action =
          graph_.Node("Add", {scaled, graph_.Floats(name + ".low", it->inner.action_low, {it->inner.action_size})});
    }
    return action;
  }

  void WriteReals(const std::string& means, const std::string& noise) {
    const int64_t size = policy_.spec.action_size;
    graph_.Output("action", Act(means), TensorProto::FLOAT, size, "The deterministic action, for the environment.");
    const std::string std = graph_.Floats("std", policy_.Std(), {size});
    const std::string sample = graph_.Node("Add", {means, graph_.Node("Mul", {std, noise})});
    graph_.Output("sampled_action", Act(sample), TensorProto::FLOAT, size, "A sampled action, for the environment.");
  }

  const PortablePolicy& policy_;
  OnnxGraph graph_;
  std::string state_, reset_;  // Empty without a state.
  int64_t state_taken_ = 0;
  int bounds_ = 0;
  std::vector<std::string> next_state_;
};

}  // namespace

std::string WriteOnnx(const PortablePolicy& policy) {
  onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("skein");
  model.set_doc_string(absl::StrCat("A policy for ", policy.env_id, ", from the checkpoint ", policy.digest, "."));
  onnx::OperatorSetIdProto* const opset = model.add_opset_import();
  opset->set_domain("");
  opset->set_version(kOpset);
  for (const auto& [key, value] : policy.metadata) {
    onnx::StringStringEntryProto* const entry = model.add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  }
  model.mutable_graph()->set_name("policy");
  Writer(policy, model.mutable_graph()).Write();
  return model.SerializeAsString();
}

}  // namespace skein
