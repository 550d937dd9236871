// SPDX-License-Identifier: Apache-2.0
#include "base/telemetry/resource_sampler.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/process/build_info.h"
#include "base/process/clock.h"
#include "base/process/file.h"
#include "base/process/steady_wait.h"
#include "base/telemetry/node_claim.h"
#include "base/telemetry/proc_text.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"

namespace skein {
namespace {

std::string ReadProc(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path);
  return text.ok() ? *text : std::string();
}

double ProcessCpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// In seconds of Unix time.
double ProcessStartTime() {
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  return static_cast<double>(ParseBootTime(ReadProc("/proc/stat"))) +
         static_cast<double>(ParseStartTicks(ReadProc("/proc/self/stat"))) / ticks;
}

uint64_t OpenFiles() {
  std::error_code error;
  uint64_t entries = 0;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end; it.increment(error)) {
    ++entries;
  }
  return entries == 0 ? 0 : entries - 1;  // One is the listing's own.
}

prometheus::Gauge& AddGauge(prometheus::Registry* registry, const std::string& name, const std::string& help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(*registry).Add({});
}

// A gauge for each GPU that tells the figure; one that stops telling it loses its gauge.
class GpuGauges {
 public:
  GpuGauges(prometheus::Registry* registry, const std::string& name, const std::string& help, size_t gpus)
      : family_(prometheus::BuildGauge().Name(name).Help(help).Register(*registry)), gauges_(gpus) {}

  void Set(size_t gpu, const std::string& label, std::optional<double> value) {
    prometheus::Gauge*& gauge = gauges_[gpu];
    if (value) {
      if (gauge == nullptr) gauge = &family_.Add({{"gpu", label}});
      gauge->Set(*value);
    } else if (gauge != nullptr) {
      family_.Remove(gauge);
      gauge = nullptr;
    }
  }

 private:
  prometheus::Family<prometheus::Gauge>& family_;
  std::vector<prometheus::Gauge*> gauges_;
};

// The node's GPUs as metrics. Not thread-safe.
class GpuMetrics {
 public:
  GpuMetrics(prometheus::Registry* registry, const std::vector<GpuInfo>& gpus)
      : utilization_(registry, "skein_node_gpu_utilization_ratio",
                     "Share of the last moments in which a kernel ran on the GPU.", gpus.size()),
        memory_used_(registry, "skein_node_gpu_memory_used_bytes", "Memory of the GPU in use, in bytes.", gpus.size()),
        memory_total_(registry, "skein_node_gpu_memory_total_bytes", "Memory of the GPU in bytes.", gpus.size()),
        temperature_(registry, "skein_node_gpu_temperature_celsius", "Temperature of the GPU's chip.", gpus.size()),
        energy_family_(prometheus::BuildCounter()
                           .Name("skein_node_gpu_energy_joules_total")
                           .Help("Energy that the GPU has used since this process began to look, in joules.")
                           .Register(*registry)),
        energy_(gpus.size()) {
    auto& info = prometheus::BuildGauge()
                     .Name("skein_node_gpu_info")
                     .Help("Always 1; the labels say which GPU has which number.")
                     .Register(*registry);
    for (const GpuInfo& gpu : gpus) {
      labels_.push_back(std::to_string(gpu.index));
      info.Add({{"gpu", labels_.back()}, {"name", gpu.name}, {"uuid", gpu.uuid}}).Set(1);
    }
  }

  void Set(const std::vector<GpuSample>& samples) {
    for (size_t i = 0; i < samples.size(); ++i) {
      const GpuSample& sample = samples[i];
      utilization_.Set(i, labels_[i], sample.utilization_ratio);
      memory_used_.Set(i, labels_[i], sample.memory_used_bytes);
      memory_total_.Set(i, labels_[i], sample.memory_total_bytes);
      temperature_.Set(i, labels_[i], sample.temperature_celsius);
      if (!sample.energy_joules) continue;
      if (energy_[i] == nullptr) energy_[i] = &energy_family_.Add({{"gpu", labels_[i]}});
      energy_[i]->Increment(*sample.energy_joules - energy_[i]->Value());
    }
  }

 private:
  std::vector<std::string> labels_;
  GpuGauges utilization_, memory_used_, memory_total_, temperature_;
  prometheus::Family<prometheus::Counter>& energy_family_;
  std::vector<prometheus::Counter*> energy_;
};

// CPU and memory of the node as metrics, until it is destroyed. Not thread-safe.
class NodeMetrics {
 public:
  explicit NodeMetrics(prometheus::Registry* registry)
      : size_family_(prometheus::BuildGauge()
                         .Name("skein_node_memory_size_bytes")
                         .Help("Memory of the node in bytes.")
                         .Register(*registry)),
        available_family_(prometheus::BuildGauge()
                              .Name("skein_node_memory_available_bytes")
                              .Help("Memory of the node that can be had without swapping, in bytes.")
                              .Register(*registry)),
        core_family_(prometheus::BuildGauge()
                         .Name("skein_node_cpu_utilization_ratio")
                         .Help("Busy share of the node's CPU time since the sample before, by core and for all cores.")
                         .Register(*registry)),
        size_(size_family_.Add({})),
        available_(available_family_.Add({})),
        all_cores_(core_family_.Add({{"core", "all"}})) {}
  NodeMetrics(const NodeMetrics&) = delete;
  NodeMetrics& operator=(const NodeMetrics&) = delete;

  ~NodeMetrics() {
    size_family_.Remove(&size_);
    available_family_.Remove(&available_);
    core_family_.Remove(&all_cores_);
    for (prometheus::Gauge* core : cores_) core_family_.Remove(core);
  }

  void Set(const ResourceSample& sample) {
    size_.Set(static_cast<double>(sample.node_memory_total_bytes));
    available_.Set(static_cast<double>(sample.node_memory_available_bytes));
    all_cores_.Set(sample.cpu_ratio);
    while (cores_.size() < sample.core_ratio.size()) {
      cores_.push_back(&core_family_.Add({{"core", std::to_string(cores_.size())}}));
    }
    for (size_t i = 0; i < sample.core_ratio.size(); ++i) cores_[i]->Set(sample.core_ratio[i]);
  }

 private:
  prometheus::Family<prometheus::Gauge>&size_family_, &available_family_, &core_family_;
  prometheus::Gauge &size_, &available_, &all_cores_;
  std::vector<prometheus::Gauge*> cores_;
};

}  // namespace

class ResourceSampler::Impl {
 public:
  Impl(prometheus::Registry* registry, absl::Duration period, std::unique_ptr<GpuMonitor> gpus)
      : cpu_seconds_(prometheus::BuildCounter()
                         .Name("process_cpu_seconds_total")
                         .Help("User and system CPU time of this process in seconds.")
                         .Register(*registry)
                         .Add({})),
        resident_(AddGauge(registry, "process_resident_memory_bytes", "Resident memory of this process in bytes.")),
        open_fds_(AddGauge(registry, "process_open_fds", "Open file descriptors of this process.")),
        threads_(AddGauge(registry, "process_threads", "Threads of this process.")),
        registry_(registry),
        gpus_(std::move(gpus)),
        cpu_before_(ParseCpuTimes(ReadProc("/proc/stat"))),
        period_(period) {
    prometheus::BuildGauge()
        .Name("skein_build_info")
        .Help("Always 1; the labels say what this program was built from.")
        .Register(*registry)
        .Add({{"version", BuildVersion()}, {"commit", BuildCommit()}})
        .Set(1);
    AddGauge(registry, "process_start_time_seconds", "When this process started, in seconds of Unix time.")
        .Set(ProcessStartTime());
    if (gpus_ != nullptr) gpu_metrics_.emplace(registry, gpus_->gpus());
    TakeSample();
    thread_ = std::thread([this] { Run(); });
  }

  ~Impl() {
    {
      absl::MutexLock lock(&mu_);
      stop_ = true;
    }
    thread_.join();
  }

  void SetPeriod(absl::Duration period) ABSL_LOCKS_EXCLUDED(mu_) {
    if (period <= absl::ZeroDuration()) return;
    absl::MutexLock lock(&mu_);
    period_ = period;
    period_changed_ = true;
  }

  void ExportNode(const std::string& run_id) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    run_id_ = run_id;
  }

  void ExportShare(const ResourceShare& share) {
    if (share.cpus) {
      AddGauge(registry_, "skein_process_requested_cpus", "CPUs that this process may use (resources).")
          .Set(*share.cpus);
    }
    if (share.gpus) {
      AddGauge(registry_, "skein_process_requested_gpus", "GPUs that this process may use (resources).")
          .Set(*share.gpus);
    }
    if (share.memory_bytes) {
      AddGauge(registry_, "skein_process_requested_memory_bytes", "Memory that this process may use (resources).")
          .Set(static_cast<double>(*share.memory_bytes));
    }
  }

  ResourceSample newest() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return newest_;
  }

 private:
  bool Woken() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stop_ || period_changed_; }

  void Run() ABSL_LOCKS_EXCLUDED(mu_) {
    while (true) {
      {
        absl::MutexLock lock(&mu_);
        while (AwaitFor(&mu_, absl::Condition(this, &Impl::Woken), period_)) {
          if (stop_) return;
          period_changed_ = false;  // The wait begins anew.
        }
      }
      TakeSample();
    }
  }

  // Called by the constructor, then only on the thread.
  void TakeSample() ABSL_LOCKS_EXCLUDED(mu_) {
    ResourceSample sample;
    const NodeCpuTimes cpu = ParseCpuTimes(ReadProc("/proc/stat"));
    sample.cpu_ratio = BusyRatio(cpu_before_.all, cpu.all);
    for (size_t i = 0; i < cpu.core.size(); ++i) {
      sample.core_ratio.push_back(i < cpu_before_.core.size() ? BusyRatio(cpu_before_.core[i], cpu.core[i]) : 0.0);
    }
    cpu_before_ = cpu;
    sample.process_cpu_seconds = ProcessCpuSeconds();
    sample.resident_bytes = ParseResidentPages(ReadProc("/proc/self/statm")) * static_cast<uint64_t>(getpagesize());
    sample.open_fds = OpenFiles();
    sample.threads = ParseThreads(ReadProc("/proc/self/stat"));
    const std::string meminfo = ReadProc("/proc/meminfo");
    sample.node_memory_total_bytes = ParseMemInfoBytes(meminfo, "MemTotal");
    sample.node_memory_available_bytes = ParseMemInfoBytes(meminfo, "MemAvailable");
    if (gpus_ != nullptr) sample.gpus = gpus_->Sample(MonotonicNow());
    Export(sample);
    FollowRun();
    if (claim_ != nullptr && !node_ && claim_->Take()) node_.emplace(registry_);
    if (node_) node_->Set(sample);
    absl::MutexLock lock(&mu_);
    newest_ = sample;
  }

  void FollowRun() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    if (run_id_ == claimed_run_id_) return;
    claimed_run_id_ = run_id_;
    node_.reset();
    claim_ = std::make_unique<NodeClaim>(run_id_);
  }

  void Export(const ResourceSample& sample) {
    cpu_seconds_.Increment(sample.process_cpu_seconds - cpu_seconds_.Value());
    resident_.Set(static_cast<double>(sample.resident_bytes));
    open_fds_.Set(static_cast<double>(sample.open_fds));
    threads_.Set(sample.threads);
    if (gpu_metrics_) gpu_metrics_->Set(sample.gpus);
  }

  prometheus::Counter& cpu_seconds_;
  prometheus::Gauge& resident_;
  prometheus::Gauge& open_fds_;
  prometheus::Gauge& threads_;
  prometheus::Registry* const registry_;

  // Of the sampling thread.
  const std::unique_ptr<GpuMonitor> gpus_;
  std::optional<GpuMetrics> gpu_metrics_;
  NodeCpuTimes cpu_before_;
  std::string claimed_run_id_;
  std::unique_ptr<NodeClaim> claim_;
  std::optional<NodeMetrics> node_;

  mutable absl::Mutex mu_;
  std::string run_id_ ABSL_GUARDED_BY(mu_);  // Empty: not known yet.
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  absl::Duration period_ ABSL_GUARDED_BY(mu_);
  bool period_changed_ ABSL_GUARDED_BY(mu_) = false;
  ResourceSample newest_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

ResourceSampler::ResourceSampler(prometheus::Registry* registry, absl::Duration period,
                                 std::unique_ptr<GpuMonitor> gpus)
    : impl_(std::make_unique<Impl>(registry, period, std::move(gpus))) {}

ResourceSampler::~ResourceSampler() = default;

void ResourceSampler::SetPeriod(absl::Duration period) { impl_->SetPeriod(period); }

void ResourceSampler::ExportShare(const ResourceShare& share) { impl_->ExportShare(share); }
void ResourceSampler::ExportNode(const std::string& run_id) { impl_->ExportNode(run_id); }

ResourceSample ResourceSampler::newest() const { return impl_->newest(); }

}  // namespace skein
