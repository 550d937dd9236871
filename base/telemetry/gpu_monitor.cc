// SPDX-License-Identifier: Apache-2.0
#include "base/telemetry/gpu_monitor.h"

#include <dlfcn.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace skein {
namespace {

constexpr int kCoreTemperature = 0;  // The sensor on the chip.

}  // namespace

// The few functions of NVML that are needed, declared here because its header comes with CUDA only.
struct GpuMonitor::Library {
  struct Utilization {
    unsigned int gpu = 0;  // Percent.
    unsigned int memory = 0;
  };
  struct Memory {
    unsigned long long total = 0;  // Bytes.
    unsigned long long free = 0;
    unsigned long long used = 0;
  };

  ~Library() {
    if (started) shutdown();
    if (handle != nullptr) dlclose(handle);
  }

  template <typename Function>
  void Find(const char* symbol, Function* function) const {
    *function = reinterpret_cast<Function>(dlsym(handle, symbol));
  }

  // False: one is missing without which nothing can be read.
  bool FindAll() {
    Find("nvmlInit_v2", &init);
    Find("nvmlShutdown", &shutdown);
    Find("nvmlDeviceGetCount_v2", &count);
    Find("nvmlDeviceGetHandleByIndex_v2", &device);
    Find("nvmlDeviceGetName", &name);
    Find("nvmlDeviceGetUUID", &uuid);
    Find("nvmlDeviceGetUtilizationRates", &utilization);
    Find("nvmlDeviceGetMemoryInfo", &memory);
    Find("nvmlDeviceGetPowerUsage", &power);
    Find("nvmlDeviceGetTotalEnergyConsumption", &energy);
    Find("nvmlDeviceGetTemperature", &temperature);
    return init != nullptr && shutdown != nullptr && count != nullptr && device != nullptr;
  }

  void* handle = nullptr;
  bool started = false;
  // Each returns 0 for success. Null: this library has none.
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned int* count) = nullptr;
  int (*device)(unsigned int index, void** device) = nullptr;
  int (*name)(void* device, char* text, unsigned int size) = nullptr;
  int (*uuid)(void* device, char* text, unsigned int size) = nullptr;
  int (*utilization)(void* device, Utilization* utilization) = nullptr;
  int (*memory)(void* device, Memory* memory) = nullptr;
  int (*power)(void* device, unsigned int* milliwatts) = nullptr;
  int (*energy)(void* device, unsigned long long* millijoules) = nullptr;  // Since the driver was loaded.
  int (*temperature)(void* device, int sensor, unsigned int* celsius) = nullptr;
};

struct GpuMonitor::Device {
  void* handle = nullptr;
  bool has_counter = false;        // Of energy; decided once, so that nothing is counted by both ways.
  unsigned long long counter = 0;  // Millijoules at the last reading.
  double joules = 0;               // Since the monitor was opened.
  std::optional<double> power;     // Watts at the last reading, without a counter.
  absl::Duration power_read;       // When that was.
};

namespace {

// What `call(device, value)` writes to value; nullopt if it is missing or fails.
template <typename Value>
std::optional<Value> Read(int (*call)(void*, Value*), void* device) {
  Value value = {};
  if (call == nullptr || call(device, &value) != 0) return std::nullopt;
  return value;
}

std::string ReadText(int (*call)(void*, char*, unsigned int), void* device) {
  char text[128] = "";
  if (call == nullptr || call(device, text, sizeof(text)) != 0) return "";
  return text;
}

}  // namespace

GpuMonitor::GpuMonitor(std::unique_ptr<Library> library) : library_(std::move(library)) {}
GpuMonitor::~GpuMonitor() = default;

absl::StatusOr<std::unique_ptr<GpuMonitor>> GpuMonitor::Open(absl::Duration now, const std::string& library_name) {
  auto library = std::make_unique<Library>();
  library->handle = dlopen(library_name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library->handle == nullptr) {
    return absl::UnavailableError(absl::StrCat("no NVIDIA driver (", library_name, ") on this machine"));
  }
  if (!library->FindAll()) {
    return absl::UnavailableError(absl::StrCat(library_name, " lacks functions that are needed"));
  }
  if (const int error = library->init(); error != 0) {
    return absl::UnavailableError(absl::StrCat("the NVIDIA driver does not start (NVML error ", error, ")"));
  }
  library->started = true;
  unsigned int count = 0;
  if (library->count(&count) != 0) count = 0;
  std::unique_ptr<GpuMonitor> monitor(new GpuMonitor(std::move(library)));
  for (unsigned int i = 0; i < count; ++i) {
    void* device = nullptr;
    if (monitor->library_->device(i, &device) == 0) monitor->AddDevice(i, device, now);
  }
  if (monitor->devices_.empty()) return absl::UnavailableError("the NVIDIA driver knows no GPU that may be used");
  return monitor;
}

void GpuMonitor::AddDevice(unsigned index, void* handle, absl::Duration now) {
  gpus_.push_back({index, ReadText(library_->name, handle), ReadText(library_->uuid, handle)});
  Device device;
  device.handle = handle;
  if (const auto counter = Read(library_->energy, handle)) {
    device.has_counter = true;
    device.counter = *counter;
  } else if (const auto milliwatts = Read(library_->power, handle)) {
    device.power = *milliwatts / 1e3;
    device.power_read = now;
  }
  devices_.push_back(device);
}

std::vector<GpuSample> GpuMonitor::Sample(absl::Duration now) {
  std::vector<GpuSample> samples;
  for (Device& device : devices_) {
    GpuSample sample;
    if (const auto utilization = Read(library_->utilization, device.handle)) {
      sample.utilization_ratio = utilization->gpu / 100.0;
    }
    if (const auto memory = Read(library_->memory, device.handle)) {
      sample.memory_used_bytes = memory->used;
      sample.memory_total_bytes = memory->total;
    }
    if (const auto milliwatts = Read(library_->power, device.handle)) sample.power_watts = *milliwatts / 1e3;
    sample.energy_joules = Energy(sample.power_watts, now, &device);
    unsigned int celsius = 0;
    if (library_->temperature != nullptr && library_->temperature(device.handle, kCoreTemperature, &celsius) == 0) {
      sample.temperature_celsius = celsius;
    }
    samples.push_back(sample);
  }
  return samples;
}

std::optional<double> GpuMonitor::Energy(std::optional<double> power_watts, absl::Duration now, Device* device) const {
  if (device->has_counter) {
    const auto counter = Read(library_->energy, device->handle);
    if (!counter) return std::nullopt;
    // A driver that was loaded again counts from 0.
    const unsigned long long used = *counter >= device->counter ? *counter - device->counter : *counter;
    device->counter = *counter;
    device->joules += static_cast<double>(used) / 1e3;
    return device->joules;
  }
  // The trapezoid between two readings in succession.
  if (device->power && power_watts) {
    device->joules += (*device->power + *power_watts) / 2 * absl::ToDoubleSeconds(now - device->power_read);
  }
  device->power = power_watts;
  device->power_read = now;
  if (!power_watts) return std::nullopt;
  return device->joules;
}

std::optional<double> MeanUtilization(const std::vector<GpuSample>& samples) {
  double sum = 0;
  int told = 0;
  for (const GpuSample& sample : samples) {
    if (!sample.utilization_ratio) continue;
    sum += *sample.utilization_ratio;
    ++told;
  }
  if (told == 0) return std::nullopt;
  return sum / told;
}

}  // namespace skein
