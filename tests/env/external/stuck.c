/* SPDX-License-Identifier: Apache-2.0 */
/* An environment whose third step fails, as does each reset with an odd seed; it says why. With the argument "hangs"
 * resets do not fail, and the third step does not end. */
#include <skein/env_plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  int steps, hangs;
  char why[64];
} Stuck;

static int Spec(const char* arguments, SkeinEnvSpec* spec, char* error, size_t error_size) {
  (void)arguments, (void)error, (void)error_size;
  memset(spec, 0, sizeof(*spec));
  spec->name = "Stuck";
  spec->num_agents = spec->obs_size = spec->discrete = 1;
  spec->action_size = 2;
  return 0;
}

static void* Create(const char* arguments, char* error, size_t error_size) {
  (void)error, (void)error_size;
  Stuck* const stuck = calloc(1, sizeof(Stuck));
  stuck->hangs = strcmp(arguments, "hangs") == 0;
  return stuck;
}

static int Reset(void* env, uint32_t seed, float* obs) {
  Stuck* const stuck = env;
  stuck->steps = 0;
  *obs = 0;
  snprintf(stuck->why, sizeof(stuck->why), "the pump has no\nwater for %u", seed);
  return !stuck->hangs && seed % 2 == 1;
}

static int Step(void* env, const float* action, float* obs, float* reward, uint8_t* terminated, uint8_t* truncated) {
  Stuck* const stuck = env;
  (void)action, (void)terminated, (void)truncated;
  *obs = (float)++stuck->steps;
  *reward = 1;
  snprintf(stuck->why, sizeof(stuck->why), "the valve is stuck after %d steps", stuck->steps);
  while (stuck->steps == 3 && stuck->hangs) sleep(60);
  return stuck->steps == 3;
}

static const char* Why(void* env) { return ((const Stuck*)env)->why; }

const SkeinEnvPlugin* skein_env_plugin(void) {
  static const SkeinEnvPlugin plugin = {
      .version = SKEIN_ENV_PLUGIN_VERSION,
      .size = sizeof(SkeinEnvPlugin),
      .spec = Spec,
      .create = Create,
      .destroy = free,
      .reset = Reset,
      .step = Step,
      .why = Why,
  };
  return &plugin;
}
