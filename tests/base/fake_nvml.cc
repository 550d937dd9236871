// SPDX-License-Identifier: Apache-2.0
// A libnvidia-ml.so.1 that tells what its script says. Built twice: the second time without the counter of energy, as
// of old drivers.
#include "tests/base/fake_nvml.h"

#include <cstdio>

namespace {

using skein::FakeNvml;

constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;

struct Utilization {
  unsigned int gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;
};

FakeNvml script;

// The error of `function`, or 0.
int Begin(const char* function) {
  if (script.failing != function || script.good_calls-- > 0) return 0;
  return kNotSupported;
}

FakeNvml::Gpu& GpuOf(void* device) { return *static_cast<FakeNvml::Gpu*>(device); }
long IndexOf(void* device) { return &GpuOf(device) - script.gpu; }

}  // namespace

extern "C" {

FakeNvml* FakeNvmlScript() { return &script; }

int nvmlInit_v2() {
  if (script.init_error == 0) ++script.started;
  return script.init_error;
}

int nvmlShutdown() {
  --script.started;
  return 0;
}

int nvmlDeviceGetCount_v2(unsigned int* count) {
  *count = script.gpus;
  return Begin("nvmlDeviceGetCount_v2");
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** device) {
  if (index >= script.gpus || static_cast<int>(index) == script.refused_gpu) return kNotFound;
  *device = &script.gpu[index];
  return 0;
}

int nvmlDeviceGetName(void* device, char* text, unsigned int size) {
  std::snprintf(text, size, "Fake %ld", IndexOf(device));
  return Begin("nvmlDeviceGetName");
}

int nvmlDeviceGetUUID(void* device, char* text, unsigned int size) {
  std::snprintf(text, size, "GPU-%ld", IndexOf(device));
  return Begin("nvmlDeviceGetUUID");
}

int nvmlDeviceGetUtilizationRates(void* device, Utilization* utilization) {
  *utilization = {GpuOf(device).utilization, 0};
  return Begin("nvmlDeviceGetUtilizationRates");
}

int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  const FakeNvml::Gpu& gpu = GpuOf(device);
  *memory = {gpu.memory_total, gpu.memory_total - gpu.memory_used, gpu.memory_used};
  return Begin("nvmlDeviceGetMemoryInfo");
}

int nvmlDeviceGetPowerUsage(void* device, unsigned int* milliwatts) {
  *milliwatts = GpuOf(device).milliwatts;
  return Begin("nvmlDeviceGetPowerUsage");
}

#ifndef FAKE_NVML_WITHOUT_ENERGY
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  *millijoules = GpuOf(device).millijoules;
  return Begin("nvmlDeviceGetTotalEnergyConsumption");
}
#endif

int nvmlDeviceGetTemperature(void* device, int sensor, unsigned int* celsius) {
  *celsius = GpuOf(device).celsius;
  return sensor == 0 ? Begin("nvmlDeviceGetTemperature") : kNotSupported;
}

}  // extern "C"
