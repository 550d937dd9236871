// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "onnx/onnx.pb.h"

namespace skein {

// Builds an ONNX graph, node by node in the order of computation. Values are known by their names. The first dimension
// of inputs and outputs is free, "rows".
class OnnxGraph {
 public:
  using Type = onnx::TensorProto::DataType;

  explicit OnnxGraph(onnx::GraphProto* graph) : graph_(graph) {}

  // An input [rows] or, with columns > 0, [rows, columns].
  std::string Input(const std::string& name, Type type, int64_t columns, const std::string& meaning);
  // The same of an output, which is `value`.
  void Output(const std::string& name, const std::string& value, Type type, int64_t columns,
              const std::string& meaning);

  std::string Floats(const std::string& name, const std::vector<float>& values, const std::vector<int64_t>& dims);
  std::string Ints(const std::string& name, const std::vector<int64_t>& values);
  std::string Scalar(float value);

  // A node with one output, whose name is returned.
  std::string Node(const std::string& op, const std::vector<std::string>& inputs);
  std::string IntNode(const std::string& op, const std::vector<std::string>& inputs,
                      const std::vector<std::pair<std::string, int64_t>>& attributes);
  // Columns [begin, end) of a value [rows, columns].
  std::string Columns(const std::string& value, int64_t begin, int64_t end);
  std::string Concatenated(const std::vector<std::string>& values);

 private:
  onnx::NodeProto* AddNode(const std::string& op, const std::vector<std::string>& inputs);
  std::string NewName(const std::string& base);

  onnx::GraphProto* const graph_;
  int64_t names_ = 0;
};

}  // namespace skein
