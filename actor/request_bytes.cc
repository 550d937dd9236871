// SPDX-License-Identifier: Apache-2.0
#include "actor/request_bytes.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <string>
#include <utility>
#include <vector>

#include "grpcpp/support/slice.h"
#include "skein/v1/learner_service.grpc.pb.h"

namespace skein {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;

// Smaller tensors are cheaper copied than sent as a piece of their own.
constexpr size_t kSharedBytes = 4096;

// Appends the tag and length of a length-delimited field.
void AppendFieldHead(int field, size_t size, std::string* out) {
  uint8_t head[20];
  uint8_t* end = CodedOutputStream::WriteTagToArray(
      WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED), head);
  end = CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(size), end);
  out->append(reinterpret_cast<const char*>(head), end - head);
}

// A message's own bytes and, between them, those of others.
class Writer {
 public:
  explicit Writer(std::shared_ptr<const v1::CollectRequest> owner) : owner_(std::move(owner)) {}

  std::string* own() { return &own_; }
  void AppendShared(const std::string& data) {
    if (data.size() < kSharedBytes) {
      own_ += data;
      return;
    }
    Flush();
    using Owner = std::shared_ptr<const v1::CollectRequest>;
    slices_.emplace_back(
        const_cast<char*>(data.data()), data.size(), [](void* owner) { delete static_cast<Owner*>(owner); },
        new Owner(owner_));
  }
  grpc::ByteBuffer Finish() {
    Flush();
    return grpc::ByteBuffer(slices_.data(), slices_.size());
  }

 private:
  void Flush() {
    if (!own_.empty()) slices_.emplace_back(own_);
    own_.clear();
  }
  const std::shared_ptr<const v1::CollectRequest> owner_;
  std::string own_;
  std::vector<grpc::Slice> slices_;
};

}  // namespace

grpc::ByteBuffer BatchBytes(std::shared_ptr<const v1::CollectRequest> request) {
  const v1::TrajectoryBatch& batch = request->batch();
  // What is not a tensor, then each tensor as what is not its data, and its data: protobuf reads fields in any order.
  v1::TrajectoryBatch header;
  header.set_actor_id(batch.actor_id());
  header.set_generation(batch.generation());
  header.set_sequence(batch.sequence());
  header.set_ticket_id(batch.ticket_id());
  header.set_policy_version(batch.policy_version());
  header.set_first_env(batch.first_env());
  header.set_num_envs(batch.num_envs());
  header.set_steps(batch.steps());
  header.set_env_steps_collected(batch.env_steps_collected());
  *header.mutable_stage_seconds() = batch.stage_seconds();
  const std::string header_bytes = header.SerializeAsString();

  std::vector<std::string> tensors(batch.tensors_size());
  size_t batch_size = header_bytes.size();
  for (int i = 0; i < batch.tensors_size(); ++i) {
    const v1::Tensor& tensor = batch.tensors(i);
    v1::Tensor own;
    own.set_name(tensor.name());
    own.set_dtype(tensor.dtype());
    *own.mutable_shape() = tensor.shape();
    own.set_compression(tensor.compression());
    std::string bytes = own.SerializeAsString();
    AppendFieldHead(v1::Tensor::kDataFieldNumber, tensor.data().size(), &bytes);
    AppendFieldHead(v1::TrajectoryBatch::kTensorsFieldNumber, bytes.size() + tensor.data().size(), &tensors[i]);
    tensors[i] += bytes;
    batch_size += tensors[i].size() + tensor.data().size();
  }
  Writer writer(request);
  AppendFieldHead(v1::CollectRequest::kBatchFieldNumber, batch_size, writer.own());
  *writer.own() += header_bytes;
  for (int i = 0; i < batch.tensors_size(); ++i) {
    *writer.own() += tensors[i];
    writer.AppendShared(batch.tensors(i).data());
  }
  return writer.Finish();
}

grpc::ByteBuffer RequestBytes(const v1::CollectRequest& request) {
  grpc::ByteBuffer bytes;
  bool owned = false;
  grpc::SerializationTraits<v1::CollectRequest>::Serialize(request, &bytes, &owned);
  return bytes;
}

}  // namespace skein
