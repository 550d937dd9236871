// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/gpu_usage.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace skein {

// The few functions of NVML that are needed, declared here because its header comes with CUDA only.
struct GpuMonitor::Library {
  struct Utilization {
    unsigned int gpu = 0;  // Percent.
    unsigned int memory = 0;
  };

  ~Library() {
    if (started) shutdown();
    if (handle != nullptr) dlclose(handle);
  }

  template <typename Function>
  bool Find(const char* name, Function* function) const {
    *function = reinterpret_cast<Function>(dlsym(handle, name));
    return *function != nullptr;
  }

  bool FindAll() {
    return Find("nvmlInit_v2", &init) && Find("nvmlShutdown", &shutdown) && Find("nvmlDeviceGetCount_v2", &count) &&
           Find("nvmlDeviceGetHandleByIndex_v2", &device) && Find("nvmlDeviceGetName", &name) &&
           Find("nvmlDeviceGetUtilizationRates", &utilization);
  }

  void* handle = nullptr;
  bool started = false;
  // Each returns 0 for success.
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned int* count) = nullptr;
  int (*device)(unsigned int index, void** device) = nullptr;
  int (*name)(void* device, char* text, unsigned int size) = nullptr;
  int (*utilization)(void* device, Utilization* utilization) = nullptr;
};

GpuMonitor::GpuMonitor(std::unique_ptr<Library> library) : library_(std::move(library)) {}
GpuMonitor::~GpuMonitor() = default;

absl::StatusOr<std::unique_ptr<GpuMonitor>> GpuMonitor::Open() {
  auto library = std::make_unique<Library>();
  library->handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library->handle == nullptr) return absl::UnavailableError("no NVIDIA driver (libnvidia-ml.so.1) on this machine");
  if (!library->FindAll()) return absl::UnavailableError("libnvidia-ml.so.1 lacks functions that are needed");
  if (const int error = library->init(); error != 0) {
    return absl::UnavailableError(absl::StrCat("the NVIDIA driver does not start (NVML error ", error, ")"));
  }
  library->started = true;
  std::unique_ptr<GpuMonitor> monitor(new GpuMonitor(std::move(library)));
  unsigned int count = 0;
  if (monitor->library_->count(&count) != 0) count = 0;
  for (unsigned int i = 0; i < count; ++i) {
    void* device = nullptr;
    if (monitor->library_->device(i, &device) != 0) continue;
    char name[128] = "";
    if (monitor->library_->name(device, name, sizeof(name)) != 0) continue;
    monitor->devices_.push_back(device);
    monitor->names_.emplace_back(name);
  }
  if (monitor->devices_.empty()) return absl::UnavailableError("the NVIDIA driver knows no GPU that may be used");
  return monitor;
}

double GpuMonitor::Utilization() const {
  double percent = 0;
  for (void* device : devices_) {
    Library::Utilization utilization;
    if (library_->utilization(device, &utilization) == 0) percent += utilization.gpu;
  }
  return percent / 100 / static_cast<double>(devices_.size());
}

}  // namespace skein
