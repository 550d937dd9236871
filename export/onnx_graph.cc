// SPDX-License-Identifier: Apache-2.0
#include "export/onnx_graph.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace skein {
namespace {

void Describe(const std::string& name, OnnxGraph::Type type, int64_t columns, const std::string& meaning,
              onnx::ValueInfoProto* value) {
  value->set_name(name);
  value->set_doc_string(meaning);
  auto* const tensor = value->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  tensor->mutable_shape()->add_dim()->set_dim_param("rows");
  if (columns > 0) tensor->mutable_shape()->add_dim()->set_dim_value(columns);
}

template <typename Value>
std::string Bytes(const std::vector<Value>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value));
}

}  // namespace

std::string OnnxGraph::Input(const std::string& name, Type type, int64_t columns, const std::string& meaning) {
  Describe(name, type, columns, meaning, graph_->add_input());
  return name;
}

void OnnxGraph::Output(const std::string& name, const std::string& value, Type type, int64_t columns,
                       const std::string& meaning) {
  Describe(name, type, columns, meaning, graph_->add_output());
  onnx::NodeProto* const node = graph_->add_node();
  node->set_op_type("Identity");
  node->set_name(absl::StrCat("output_", name));
  node->add_input(value);
  node->add_output(name);
}

std::string OnnxGraph::Floats(const std::string& name, const std::vector<float>& values,
                              const std::vector<int64_t>& dims) {
  onnx::TensorProto* const tensor = graph_->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(onnx::TensorProto::FLOAT);
  for (const int64_t dim : dims) tensor->add_dims(dim);
  tensor->set_raw_data(Bytes(values));
  return name;
}

std::string OnnxGraph::Ints(const std::string& name, const std::vector<int64_t>& values) {
  onnx::TensorProto* const tensor = graph_->add_initializer();
  tensor->set_name(NewName(name));
  tensor->set_data_type(onnx::TensorProto::INT64);
  tensor->add_dims(static_cast<int64_t>(values.size()));
  tensor->set_raw_data(Bytes(values));
  return tensor->name();
}

std::string OnnxGraph::Scalar(float value) { return Floats(NewName("number"), {value}, {}); }

std::string OnnxGraph::NewName(const std::string& base) { return absl::StrCat(base, "_", ++names_); }

onnx::NodeProto* OnnxGraph::AddNode(const std::string& op, const std::vector<std::string>& inputs) {
  const std::string name = NewName(op);
  onnx::NodeProto* const node = graph_->add_node();
  node->set_op_type(op);
  node->set_name(name);
  for (const std::string& input : inputs) node->add_input(input);
  node->add_output(name);
  return node;
}

std::string OnnxGraph::Node(const std::string& op, const std::vector<std::string>& inputs) {
  return AddNode(op, inputs)->output(0);
}

std::string OnnxGraph::IntNode(const std::string& op, const std::vector<std::string>& inputs,
                               const std::vector<std::pair<std::string, int64_t>>& attributes) {
  onnx::NodeProto* const node = AddNode(op, inputs);
  for (const auto& [name, value] : attributes) {
    onnx::AttributeProto* const attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::INT);
    attribute->set_i(value);
  }
  return node->output(0);
}

std::string OnnxGraph::Columns(const std::string& value, int64_t begin, int64_t end) {
  return Node("Slice", {value, Ints("begin", {begin}), Ints("end", {end}), Ints("axis", {1})});
}

std::string OnnxGraph::Concatenated(const std::vector<std::string>& values) {
  return values.size() == 1 ? values[0] : IntNode("Concat", values, {{"axis", 1}});
}

}  // namespace skein
