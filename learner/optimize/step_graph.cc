// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/step_graph.h"

#include <torch/types.h>
#include <torch/utils.h>

#ifdef SKEIN_CUDA
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#endif

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/telemetry/log.h"

namespace skein {
namespace {

// Without the stack that c10 appends.
std::string FirstLine(const std::exception& error) {
  const std::string what = error.what();
  return what.substr(0, what.find('\n'));
}

#ifdef SKEIN_CUDA

// Works on a stream of its own, which no recording may share with other work, in step with the current one.
class CudaRecorder final : public Recorder {
 public:
  explicit CudaRecorder(torch::Device device)
      : stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index())) {}

  void WarmUp(const std::function<void()>& work) override {
    const c10::cuda::CUDAStream current = c10::cuda::getCurrentCUDAStream(stream_.device_index());
    at::cuda::CUDAEvent before, after;
    before.record(current);
    before.block(stream_);
    // Also if `work` throws: what it has enqueued is done before its memory is used again.
    const absl::Cleanup in_order = [&] {
      after.record(stream_);
      after.block(current);
    };
    const c10::cuda::CUDAStreamGuard guard(stream_);
    work();
  }

  void Record(const std::function<void()>& work) override {
    Forget();
    const c10::cuda::CUDAStreamGuard guard(stream_);
    // What warming up has left belongs to this stream, and a recording's memory comes from elsewhere.
    c10::cuda::device_synchronize();
    c10::cuda::CUDACachingAllocator::emptyCache();
    auto graph = std::make_unique<at::cuda::CUDAGraph>();
    const at::MempoolId_t pool = at::cuda::graph_pool_handle();
    graph->capture_begin(pool);
    try {
      work();
      graph->capture_end();
    } catch (...) {
      Abandon(*graph, pool);
      throw;
    }
    graph_ = std::move(graph);
  }

  void Replay() override { graph_->replay(); }
  void Forget() override { graph_.reset(); }

 private:
  // The stream must leave its recording and the allocator the recording's memory, as far as they have not; a
  // recording that has gone wrong makes either complain.
  void Abandon(at::cuda::CUDAGraph& graph, at::MempoolId_t pool) {
    try {
      graph.capture_end();
    } catch (const std::exception&) {
    }
    try {
      c10::cuda::CUDACachingAllocator::endAllocateToPool(stream_.device_index(), pool);
    } catch (const std::exception&) {
    }
  }

  const c10::cuda::CUDAStream stream_;
  std::unique_ptr<at::cuda::CUDAGraph> graph_;
};

#endif

}  // namespace

std::unique_ptr<Recorder> MakeCudaRecorder(torch::Device device) {
#ifdef SKEIN_CUDA
  return std::make_unique<CudaRecorder>(device);
#else
  static_cast<void>(device);
  return nullptr;
#endif
}

std::string WhyNotRecorded(const v1::LearnerConfig& config, bool several_ranks, torch::Device device) {
  if (!device.is_cuda()) return absl::StrCat("updates are computed on ", device.str());
  if (several_ranks) return "several ranks sum their gradients, which waits for the GPU";
  if (config.prefetch_depth() > 0) return "with learner.prefetch_depth the batch stays in host memory";
  return "";
}

StepGraph::StepGraph(std::unique_ptr<Recorder> recorder, Step step)
    : recorder_(std::move(recorder)), step_(std::move(step)) {}

bool StepGraph::Fits(const Minibatch& samples, int64_t minibatch_size) const {
  if (!inputs_.index.defined() || inputs_.index.numel() != minibatch_size) return false;
  const auto fits = [](const Minibatch& some, const Minibatch& others) {
    return std::all_of(some.tensors().begin(), some.tensors().end(), [&](const auto& named) {
      const torch::Tensor& other = others[named.first];
      if (!named.second.defined() || !other.defined()) return named.second.defined() == other.defined();
      return named.second.sizes().equals(other.sizes());
    });
  };
  return fits(inputs_.samples, samples) && fits(samples, inputs_.samples);
}

void StepGraph::Load(const Minibatch& samples, int64_t minibatch_size, double lr,
                     const std::vector<double>& scheduled) {
  if (recorder_ == nullptr) return;
  const torch::NoGradGuard no_grad;
  if (!Fits(samples, minibatch_size)) {
    recorder_->Forget();
    recorded_ = false;
    warm_ups_ = 0;
    inputs_ = {};
    const auto options = samples["obs"].options().dtype(torch::kFloat32);
    inputs_.samples = samples.Each([](const torch::Tensor& tensor) { return torch::empty_like(tensor); });
    inputs_.index = torch::zeros({minibatch_size}, options.dtype(torch::kInt64));
    inputs_.lr = torch::zeros({}, options.dtype(torch::kFloat64));
    for (size_t i = 0; i < scheduled.size(); ++i) inputs_.scheduled.push_back(torch::zeros({}, options));
  }
  for (const auto& [name, tensor] : samples.tensors()) {
    if (tensor.defined()) inputs_.samples[name].copy_(tensor);
  }
  inputs_.lr.fill_(lr);
  for (size_t i = 0; i < scheduled.size(); ++i) inputs_.scheduled[i].fill_(scheduled[i]);
}

void StepGraph::WorkRecorded() {
  if (absl::Status s = step_(inputs_, /*recorded=*/true); !s.ok()) throw std::runtime_error(std::string(s.message()));
}

absl::StatusOr<bool> StepGraph::Run(const torch::Tensor& index) {
  if (recorder_ == nullptr || index.numel() != inputs_.index.numel()) return false;
  inputs_.index.copy_(index);
  if (warm_ups_ < Recorder::kWarmUps) {
    ++warm_ups_;
    absl::Status status;
    recorder_->WarmUp([&] { status = step_(inputs_, /*recorded=*/false); });
    if (!status.ok()) return status;
    return true;
  }
  try {
    if (!recorded_) {
      recorder_->Record([this] { WorkRecorded(); });
      recorded_ = true;
    }
    recorder_->Replay();
    return true;
  } catch (const std::exception& error) {
    spdlog::warn("learner.cuda_graph: going on without, because recording or replaying a gradient step failed: {}",
                 FirstLine(error));
  }
  recorder_.reset();
  recorded_ = false;
  inputs_ = {};
  return false;
}

}  // namespace skein
