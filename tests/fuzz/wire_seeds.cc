// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/number/tensor_packing.h"
#include "tests/fuzz/seeds.h"
#include "tests/fuzz/shapes.h"

namespace skein::fuzz {
namespace {

const std::vector<SampleEnd> kEnds = {{0, 1, true}, {1, 0, false}};

v1::CollectRequest Request(const v1::TrajectoryBatch& batch) {
  v1::CollectRequest request;
  *request.mutable_batch() = batch;
  return request;
}

// A batch of that run, named and timed as an actor does it.
v1::TrajectoryBatch Batch(size_t run) {
  v1::TrajectoryBatch batch = MakeSampleBatch(Shapes()[run], 1, run == 4 ? std::vector<SampleEnd>() : kEnds);
  batch.set_actor_id("actor-1");
  batch.set_generation(1);
  batch.mutable_stage_seconds()->set_env_step(0.5);
  return batch;
}

class TrajectorySeeds {
 public:
  void Add(const std::string& name, size_t run, int piece_bytes, const std::string& bytes) {
    seeds_.push_back({"trajectory", name, absl::StrCat(Head(run), Head(piece_bytes), bytes)});
  }
  void Add(const std::string& name, size_t run, const v1::TrajectoryBatch& batch) {
    Add(name, run, 0, Request(batch).SerializeAsString());
  }
  // Run 0's batch after `change(its tensor of that name)`.
  template <typename Change>
  void AddChanged(const std::string& name, const std::string& tensor, Change change) {
    v1::TrajectoryBatch batch = Batch(0);
    change(FindTensor(&batch, tensor));
    Add(name, 0, batch);
  }
  std::vector<Seed> Take() { return std::move(seeds_); }

 private:
  static std::string Head(size_t value) { return std::string(1, static_cast<char>(value)); }
  std::vector<Seed> seeds_;
};

std::vector<Seed> Trajectories() {
  TrajectorySeeds seeds;
  for (size_t run = 0; run < 3; ++run) seeds.Add(absl::StrCat("good_run_", run), run, Batch(run));
  v1::TrajectoryBatch narrow = Batch(3);
  Narrow(FindTensor(&narrow, "obs"));
  Narrow(FindTensor(&narrow, "final_obs"));
  seeds.Add("good_bfloat16", 3, narrow);
  v1::TrajectoryBatch packed = Batch(4);
  Compress(FindTensor(&packed, "obs"));
  seeds.Add("good_zstd", 4, packed);
  const std::string whole = Request(Batch(0)).SerializeAsString();
  seeds.Add("good_in_pieces", 0, 7, whole);
  v1::CollectRequest small;
  v1::Hello& hello = *small.mutable_hello();
  hello.set_protocol_major(1);
  hello.set_run_id("run");
  hello.set_actor_id("actor-1");
  hello.set_generation(1);
  hello.set_ticket_credits(2);
  hello.set_runners(1);
  *hello.mutable_env_spec() = Shapes()[2].spec;
  seeds.Add("good_hello", 0, 0, small.SerializeAsString());
  small.mutable_goodbye()->set_env_steps_collected(4);
  seeds.Add("good_goodbye", 0, 0, small.SerializeAsString());
  // Field 1000, varint 5: of a version to come.
  seeds.Add("good_unknown_field", 0, 0, whole + std::string("\xc0\x3e\x05", 3));

  seeds.Add("bad_cut_off", 0, 0, whole.substr(0, whole.size() / 2));
  seeds.Add("bad_two_messages", 0, 0, whole + small.SerializeAsString());
  seeds.Add("bad_group", 0, 0, whole + std::string("\x1b\x1c", 2));
  seeds.Add("bad_tag_of_six_bytes", 0, 0, std::string("\xd0\xfe\xff\xe5\xf9\x06\x04", 7));
  seeds.Add("bad_length_of_a_tensor", 0, 0, std::string("\x12\x04\x52\x7f\x22\x7f", 6));
  seeds.Add("bad_length_of_a_batch", 0, 0, std::string("\x12\xff\xff\xff\xff\x07", 6));
  seeds.Add("bad_other_run", 1, Batch(0));
  seeds.AddChanged("bad_bytes_missing", "obs", [](v1::Tensor* tensor) { tensor->mutable_data()->pop_back(); });
  seeds.AddChanged("bad_extent_huge", "obs", [](v1::Tensor* tensor) { tensor->set_shape(0, int64_t{1} << 40); });
  seeds.AddChanged("bad_extent_negative", "reward", [](v1::Tensor* tensor) { tensor->set_shape(1, -2); });
  seeds.AddChanged("bad_product_overflows", "action", [](v1::Tensor* tensor) {
    for (int i = 0; i < 4; ++i) tensor->set_shape(i, int64_t{1} << 32);
  });
  seeds.AddChanged("bad_zero_agents", "obs", [](v1::Tensor* tensor) {
    tensor->set_shape(2, 0);
    tensor->clear_data();
  });
  seeds.AddChanged("bad_shape_long", "obs", [](v1::Tensor* tensor) {
    for (int i = 0; i < 3000; ++i) tensor->add_shape(1);
  });
  seeds.AddChanged("bad_dtype", "obs", [](v1::Tensor* tensor) { tensor->set_dtype(v1::DATA_TYPE_FLOAT64); });
  seeds.AddChanged("bad_nan", "obs", [](v1::Tensor* tensor) { SetElement(tensor, 5, std::nanf("")); });
  seeds.AddChanged("bad_flag", "terminated", [](v1::Tensor* tensor) { SetElement<uint8_t>(tensor, 0, 2); });
  seeds.AddChanged("bad_frame", "obs", [](v1::Tensor* tensor) { tensor->set_compression(v1::COMPRESSION_ZSTD); });
  seeds.AddChanged("bad_name", "obs", [](v1::Tensor* tensor) { tensor->set_name("OBS"); });
  v1::TrajectoryBatch none = Batch(0);
  none.set_num_envs(0);
  seeds.Add("bad_zero_envs", 0, none);
  v1::TrajectoryBatch bomb = Batch(4);
  Compress(FindTensor(&bomb, "obs"));
  FindTensor(&bomb, "obs")->mutable_data()->resize(60);
  seeds.Add("bad_zstd_cut_off", 4, bomb);
  return seeds.Take();
}

}  // namespace

std::vector<Seed> WireSeeds() {
  std::vector<Seed> seeds = Trajectories();
  seeds.push_back({"request_bytes", "good_batch", Request(Batch(2)).SerializeAsString()});
  v1::TrajectoryBatch large = Batch(0);
  FindTensor(&large, "obs")->set_data(std::string(5000, 'x'));  // Sent from where it is.
  seeds.push_back({"request_bytes", "good_shared", Request(large).SerializeAsString()});
  seeds.push_back({"request_bytes", "good_empty_batch", Request({}).SerializeAsString()});
  v1::TrajectoryBatch many;
  for (int i = 0; i < 65; ++i) many.add_tensors();
  seeds.push_back({"request_bytes", "bad_many_tensors", Request(many).SerializeAsString()});

  v1::Tensor tensor;
  tensor.set_dtype(v1::DATA_TYPE_FLOAT32);
  for (int i = 0; i < 300; ++i) {
    const float value = 0.25f * static_cast<float>(i);
    tensor.mutable_data()->append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  seeds.push_back({"tensor_packing", "good_elements", absl::StrCat("\x10", tensor.data())});
  seeds.push_back({"tensor_packing", "good_bfloat16", absl::StrCat("\x20", tensor.data())});
  seeds.push_back({"tensor_packing", "bad_short", std::string("\x10", 1) + "abc"});
  tensor.set_dtype(v1::DATA_TYPE_FLOAT64);
  tensor.mutable_data()->resize(200 * sizeof(double));
  Compress(&tensor);
  const std::string head("\x01\xc8", 2);  // float64, 200 of them.
  seeds.push_back({"tensor_packing", "good_frame", head + tensor.data()});
  seeds.push_back({"tensor_packing", "bad_cut_off", head + tensor.data().substr(0, tensor.data().size() / 2)});
  seeds.push_back({"tensor_packing", "bad_size", std::string("\x01\xc7", 2) + tensor.data()});
  std::string flipped = tensor.data();
  flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 4);
  seeds.push_back({"tensor_packing", "bad_bit", head + flipped});
  return seeds;
}

}  // namespace skein::fuzz
