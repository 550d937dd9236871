// SPDX-License-Identifier: Apache-2.0
// faulty-server: an environment server, env.id=exec:faulty-server, that goes wrong once each time it is told so. Two
// numbers, two choices, episodes of 50 steps of 0.1 ms. SKEIN_FAULTY_SERVER names a file; the first server that finds
// it in a step takes it away and does what stands in it: kill, exit, hang, garbage, much, nan, flags or fail.
#include <fcntl.h>
#include <skein/env_server.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

int Spec(const char*, SkeinEnvSpec* spec, char*, size_t) {
  std::memset(spec, 0, sizeof(*spec));
  spec->name = "Faulty";
  spec->num_agents = 1;
  spec->obs_size = 2;
  spec->discrete = 1;
  spec->action_size = 2;
  spec->max_episode_steps = 50;
  return 0;
}

void* Create(const char*, char*, size_t) { return std::malloc(1); }

int Reset(void*, uint32_t, float* obs) {
  obs[0] = obs[1] = 0;
  return 0;
}

// What this process is to do now; empty: nothing.
std::string TakeOrder() {
  const char* const path = std::getenv("SKEIN_FAULTY_SERVER");
  if (path == nullptr) return "";
  const std::string taken = std::string(path) + "." + std::to_string(getpid());
  if (std::rename(path, taken.c_str()) != 0) return "";
  char text[16] = "";
  const int file = open(taken.c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t got = read(file, text, sizeof(text) - 1);
  close(file);
  return std::string(text, got > 0 ? static_cast<size_t>(got) : 0);
}

// One packet to the client, beside the protocol.
void SendPacket(size_t bytes) {
  const int fd = std::atoi(std::getenv("SKEIN_ENV_FD")), room = 1 << 20;
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
  const std::string packet(bytes, '\xff');
  if (send(fd, packet.data(), packet.size(), MSG_NOSIGNAL) < 0) std::perror("faulty-server: send");
}

int Step(void*, const float* action, float* obs, float* reward, uint8_t* terminated, uint8_t*) {
  usleep(100);
  obs[0] = obs[1] = 0.5;
  *reward = *action;
  const std::string order = TakeOrder();
  if (order == "kill") std::raise(SIGKILL);
  if (order == "exit") _exit(3);
  if (order == "hang") pause();
  if (order == "garbage") SendPacket(3);
  if (order == "much") SendPacket(300000);
  if (order == "nan") obs[1] = NAN;
  if (order == "flags") *terminated = 2;
  return order == "fail" ? 1 : 0;
}

}  // namespace

int main() {
  SkeinEnvPlugin plugin = {};
  plugin.version = SKEIN_ENV_PLUGIN_VERSION;
  plugin.size = sizeof(plugin);
  plugin.spec = Spec;
  plugin.create = Create;
  plugin.destroy = std::free;
  plugin.reset = Reset;
  plugin.step = Step;
  return skein_env_serve(&plugin);
}
