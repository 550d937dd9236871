/* SPDX-License-Identifier: Apache-2.0 */
/* An environment that does nothing, to measure what lies around one: env.id=plugin:./null_env.so, and exec:./null_server with
 * server.c. 17 floats, 6 reals, episodes without end. */
#include <skein/env_plugin.h>
#include <stdlib.h>
#include <string.h>

#define OBSERVATION 17
#define ACTION 6

static int Spec(const char* arguments, SkeinEnvSpec* spec, char* error, size_t error_size) {
  static const float low[ACTION] = {-1, -1, -1, -1, -1, -1}, high[ACTION] = {1, 1, 1, 1, 1, 1};
  (void)arguments, (void)error, (void)error_size;
  memset(spec, 0, sizeof(*spec));
  spec->name = "Null";
  spec->num_agents = 1;
  spec->obs_size = OBSERVATION;
  spec->action_size = ACTION;
  spec->action_low = low;
  spec->action_high = high;
  return 0;
}

static void* Create(const char* arguments, char* error, size_t error_size) {
  (void)arguments, (void)error, (void)error_size;
  return malloc(1);
}

static int Reset(void* env, uint32_t seed, float* obs) {
  (void)env, (void)seed;
  memset(obs, 0, OBSERVATION * sizeof(float));
  return 0;
}

static int Step(void* env, const float* action, float* obs, float* reward, uint8_t* terminated, uint8_t* truncated) {
  (void)env, (void)action, (void)terminated, (void)truncated;
  memset(obs, 0, OBSERVATION * sizeof(float));
  *reward = 0;
  return 0;
}

const SkeinEnvPlugin* skein_env_plugin(void) {
  static const SkeinEnvPlugin plugin = {.version = SKEIN_ENV_PLUGIN_VERSION,
                                        .size = sizeof(SkeinEnvPlugin),
                                        .spec = Spec,
                                        .create = Create,
                                        .destroy = free,
                                        .reset = Reset,
                                        .step = Step};
  return &plugin;
}
