// SPDX-License-Identifier: Apache-2.0
// Writes a header of C99: the numbers as arrays, and each step of PortablePolicy as statements. Loops and not their
// unrolled bodies, so that the text stays readable and grows with the numbers alone.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "export/portable_policy.h"

namespace skein {
namespace {

using Kind = TransformOptions::Kind;

std::string Number(float value) {
  if (std::isinf(value)) return value < 0 ? "-INFINITY" : "INFINITY";
  std::string text = absl::StrFormat("%.9g", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";  // 1f is no number of C.
  return text + "f";
}

std::string Numbers(const std::vector<float>& values) {
  constexpr size_t kInALine = 8;
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : i % kInALine == 0 ? ",\n    " : ", ", Number(values[i]));
  }
  return text;
}

// A text that can neither end a comment nor look like the begin of one or like the continuation of a line.
std::string InComment(const std::string& text) {
  const std::string open = absl::StrReplaceAll(text, {{"*/", "* /"}, {"?\?/", "? ?/"}, {"\\", "|"}});
  return absl::StrReplaceAll(open, {{"/*", "/ *"}});
}

class Writer {
 public:
  Writer(const PortablePolicy& policy, const std::string& name) : policy_(policy), name_(name) {}

  std::string Write() {
    const EnvSpec& spec = policy_.spec;
    std::string upper = name_;
    for (char& c : upper) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    std::string text =
        absl::StrCat("/* A policy for ", InComment(policy_.env_id), ", written by `skein export`.\n\n", Usage(upper),
                     "\n", Metadata(), "*/\n#ifndef ", upper, "_H\n#define ", upper, "_H\n\n#include <math.h>\n\n");
    absl::StrAppend(&text, "enum {\n  ", upper, "_OBSERVATION_SIZE = ", policy_.env.obs_size, ",\n  ", upper,
                    "_HEAD_SIZE = ", policy_.network.head_size(), ",\n  ", upper,
                    "_STATE_SIZE = ", policy_.state_size(), ",\n  ", upper,
                    "_ACTION_SIZE = ", spec.discrete ? 1 : spec.action_size, "\n};\n\n");
    const std::string body = HeadBody();  // Names the arrays that it needs.
    const std::string actions = spec.discrete ? ChoiceFunctions() : RealFunctions();
    absl::StrAppend(&text, arrays_, Helpers(), "static inline void ", name_,
                    "_head(const float* observation, float* state, int reset, float* head) {\n", body, "}\n\n", actions,
                    "static inline const char* ", name_, "_digest(void) { return \"", policy_.digest,
                    "\"; }\n\n#endif\n");
    return text;
  }

 private:
  std::string Usage(const std::string& upper) const {
    const bool discrete = policy_.spec.discrete;
    return absl::StrCat(
        "   float state[", upper,
        "_STATE_SIZE + 1];   one for each agent of each environment\n"
        "   ",
        name_, "_head(observation, state, reset, head);   reset: 1 with the first observation of an episode, else 0\n",
        discrete
            ? absl::StrCat("   ", name_, "_action(head) is the most likely choice; ", name_,
                           "_sample(head, u) one by its probability, u uniform in [0, 1)\n")
            : absl::StrCat("   ", name_,
                           "_action(head, action);          the deterministic action, as the environment gets it\n",
                           "   ", name_, "_sample(head, noise, action);   a sampled one, noise standard normal\n"),
        "\n   Functions keep nothing: several threads may call them.\n");
  }

  // For a comment.
  std::string Metadata() const {
    std::string text;
    for (const auto& [key, value] : policy_.metadata) {
      absl::StrAppend(&text, "   ", key, ": ", absl::StrJoin(absl::StrSplit(InComment(value), '\n'), "\n     "), "\n");
    }
    return text;
  }

  std::string Array(const std::string& name, const std::vector<float>& values) {
    const std::string full = absl::StrCat(name_, "_", absl::StrReplaceAll(name, {{".", "_"}}));
    absl::StrAppend(&arrays_, "static const float ", full, "[", values.size(), "] = {\n    ", Numbers(values),
                    "};\n\n");
    return full;
  }

  // Of a buffer of the function.
  std::string Buffer(int64_t size) {
    const std::string name = absl::StrCat("x", ++buffers_);
    absl::StrAppend(&body_, "  float ", name, "[", size, "];\n");
    return name;
  }

  template <typename... Parts>
  void Say(const Parts&... parts) {
    absl::StrAppend(&body_, "  ", parts..., "\n");
  }

  std::string HeadBody() {
    std::string x = "observation";
    int64_t state = 0;
    if (policy_.state_size() == 0) Say("(void)state, (void)reset;");
    for (const Transform& transform : policy_.transforms) x = Observe(transform, x, &state);
    x = Remember(Normalize(x), state);
    int64_t inputs = policy_.network.feature_size();
    for (size_t i = 0; i < policy_.network.hidden.size(); ++i) {
      const int64_t outputs = policy_.network.hidden[i];
      const std::string y = Buffer(outputs);
      Product(absl::StrCat(policy_.network.shared_trunk ? "trunk." : "policy.", i, ".weight"),
              absl::StrCat(policy_.network.shared_trunk ? "trunk." : "policy.", i, ".bias"), x, inputs, y, outputs);
      Say("for (int i = 0; i < ", outputs, "; ++i) ", y, "[i] = ", Activation(y), ";");
      x = y;
      inputs = outputs;
    }
    Product("policy.head.weight", "policy.head.bias", x, inputs, "head", policy_.network.head_size());
    return body_;
  }

  std::string Observe(const Transform& transform, const std::string& x, int64_t* state) {
    if (transform.options.kind == Kind::kHide) {
      const std::string y = Buffer(transform.outer.obs_size);
      int column = 0;
      for (const int kept : transform.kept) Say(y, "[", column++, "] = ", x, "[", kept, "];");
      return y;
    }
    const int64_t count = transform.options.count, size = transform.inner.obs_size;
    if (transform.options.kind != Kind::kStack || count == 1) return x;
    const int64_t older = (count - 1) * size;
    const std::string y = Buffer(count * size);
    Say("for (int i = 0; i < ", older, "; ++i) ", y, "[i] = reset ? ", x, "[i % ", size, "] : state[", *state,
        " + i];");
    Say("for (int i = 0; i < ", size, "; ++i) ", y, "[", older, " + i] = ", x, "[i];");
    Say("for (int i = 0; i < ", older, "; ++i) state[", *state, " + i] = ", y, "[", size, " + i];");
    *state += older;
    return y;
  }

  std::string Normalize(const std::string& x) {
    const int64_t size = policy_.spec.obs_size;
    const std::string mean = Array("mean", policy_.normalization.mean);
    const std::string scale = Array("inv_std", policy_.normalization.inv_std);
    const std::string y = Buffer(size), bound = Number(kNormalizationClip);
    Say("for (int i = 0; i < ", size, "; ++i) ", y, "[i] = fminf(fmaxf((", x, "[i] - ", mean, "[i]) * ", scale,
        "[i], -", bound, "), ", bound, ");");
    return y;
  }

  void Product(const std::string& weight, const std::string& bias, const std::string& x, int64_t inputs,
               const std::string& y, int64_t outputs) {
    const std::string w = Array(weight, policy_.Parameter(weight)), b = Array(bias, policy_.Parameter(bias));
    Say(name_, "_layer(", w, ", ", b, ", ", x, ", ", inputs, ", ", y, ", ", outputs, ");");
  }

  std::string Activation(const std::string& y) const {
    switch (policy_.network.activation) {
      case ActivationKind::kElu:
        return absl::StrCat(y, "[i] > 0.0f ? ", y, "[i] : expm1f(", y, "[i])");
      case ActivationKind::kRelu:
        return absl::StrCat("fmaxf(", y, "[i], 0.0f)");
      default:
        return absl::StrCat("tanhf(", y, "[i])");
    }
  }

  // The formulas of policy/recurrent.h. h is at `at` of the state, c after it.
  std::string Remember(const std::string& x, int64_t at) {
    if (policy_.network.memory == MemoryKind::kNone) return x;
    const bool gru = policy_.network.memory == MemoryKind::kGru;
    const int64_t size = policy_.network.memory_size, sums = (gru ? 3 : 4) * size;
    const std::string a = Buffer(sums), b = Buffer(sums);
    Say("float* const h = state + ", at, ";");
    Say("if (reset) {");
    Say("  for (int i = 0; i < ", policy_.network.state_size(), "; ++i) h[i] = 0.0f;");
    Say("}");
    Product("memory.weight_ih", "memory.bias_ih", x, policy_.network.obs_size, a, sums);
    Product("memory.weight_hh", "memory.bias_hh", "h", size, b, sums);
    Say("for (int i = 0; i < ", size, "; ++i) {");
    const auto sum = [&](int gate) {
      const std::string i = gate == 0 ? "i" : absl::StrCat(gate * size, " + i");
      return absl::StrCat(a, "[", i, "] + ", b, "[", i, "]");
    };
    if (gru) {
      const std::string i = absl::StrCat(2 * size, " + i");
      Say("  const float r = ", name_, "_sigmoid(", sum(0), "), z = ", name_, "_sigmoid(", sum(1), ");");
      Say("  h[i] = (1.0f - z) * tanhf(", a, "[", i, "] + r * ", b, "[", i, "]) + z * h[i];");
    } else {
      Say("  const float in = ", name_, "_sigmoid(", sum(0), "), forget = ", name_, "_sigmoid(", sum(1), ");");
      Say("  const float out = ", name_, "_sigmoid(", sum(3), ");");
      Say("  h[", size, " + i] = forget * h[", size, " + i] + in * tanhf(", sum(2), ");");
      Say("  h[i] = out * tanhf(h[", size, " + i]);");
    }
    Say("}");
    return "h";
  }

  std::string Helpers() const {
    std::string text = absl::StrCat(
        "static inline void ", name_,
        "_layer(const float* weight, const float* bias, const float* x, int inputs, float* y, int outputs) {\n"
        "  for (int i = 0; i < outputs; ++i) {\n"
        "    float sum = 0.0f;\n"
        "    for (int j = 0; j < inputs; ++j) sum += weight[i * inputs + j] * x[j];\n"
        "    y[i] = sum + bias[i];\n"
        "  }\n}\n\n");
    if (policy_.network.memory != MemoryKind::kNone) {
      absl::StrAppend(&text, "static inline float ", name_,
                      "_sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }\n\n");
    }
    return text;
  }

  std::string ChoiceFunctions() const {
    const int last = policy_.spec.action_size - 1;
    return absl::StrCat(
        "static inline int ", name_, "_action(const float* head) {\n  int best = 0;\n  for (int i = 1; i <= ", last,
        "; ++i) {\n    if (head[i] > head[best]) best = i;\n  }\n  return best;\n}\n\nstatic inline int ", name_,
        "_sample(const float* head, float u) {\n  const float top = head[", name_,
        "_action(head)];\n"
        "  float left = 0.0f;\n  int i = 0;\n  for (int j = 0; j <= ",
        last, "; ++j) left += expf(head[j] - top);\n  left *= u;\n  while (i < ", last,
        " && (left -= expf(head[i] - top)) >= 0.0f) ++i;\n  return i;\n}\n\n");
  }

  // Statements that clip action[i] to the bounds of `spec`.
  std::string Bound(const EnvSpec& spec) {
    const std::string name = absl::StrCat("bounds_", ++bounds_);
    const std::string low = Array(name + "_low", spec.action_low), high = Array(name + "_high", spec.action_high);
    return absl::StrCat("    action[i] = fminf(fmaxf(action[i], ", low, "[i]), ", high, "[i]);\n");
  }

  std::string RealFunctions() {
    std::string change;
    if (policy_.spec.clip_actions) change = Bound(policy_.spec);
    for (auto it = policy_.transforms.rbegin(); it != policy_.transforms.rend(); ++it) {
      if (it->options.kind == Kind::kClip) change += Bound(it->inner);
      if (it->options.kind == Kind::kSquash) change += "    action[i] = (float)tanh((double)action[i]);\n";
      if (it->options.kind != Kind::kScale && it->options.kind != Kind::kSquash) continue;
      const std::string name = absl::StrCat("scale_", ++bounds_);
      const std::string low = Array(name + "_low", it->inner.action_low);
      const std::string high = Array(name + "_high", it->inner.action_high);
      absl::StrAppend(&change, "    action[i] = ", low, "[i] + (action[i] + 1.0f) * 0.5f * (", high, "[i] - ", low,
                      "[i]);\n");
    }
    const std::string std = Array("std", policy_.Std());
    const auto function = [&](const char* name, const char* noise, const std::string& value) {
      return absl::StrCat("static inline void ", name_, "_", name, "(const float* head, ", noise, "float* action) {\n",
                          "  for (int i = 0; i < ", policy_.spec.action_size, "; ++i) {\n    action[i] = ", value,
                          ";\n", change, "  }\n}\n\n");
    };
    return absl::StrCat(function("action", "", "head[i]"),
                        function("sample", "const float* noise, ", absl::StrCat("head[i] + ", std, "[i] * noise[i]")));
  }

  const PortablePolicy& policy_;
  const std::string name_;
  std::string arrays_, body_;
  int buffers_ = 0, bounds_ = 0;
};

}  // namespace

std::string WriteC(const PortablePolicy& policy, const std::string& name) { return Writer(policy, name).Write(); }

}  // namespace skein
