/* SPDX-License-Identifier: Apache-2.0 */
/* An environment of one's own as a library: push a cart to the middle of its track and keep it there.
 * Observation: position, velocity. Action: force in [-1, 1]. Reward: 1 - |position|, 2 more at rest in the middle. */
#include <math.h>
#include <skein/env_plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  double position, velocity;
} Cart;

static int Spec(const char* arguments, SkeinEnvSpec* spec, char* error, size_t error_size) {
  static const float low = -1, high = 1;
  static const char* const metrics[] = {"distance"};
  if (*arguments != '\0') {
    snprintf(error, error_size, "the cart takes no arguments, got %.100s", arguments);
    return 1;
  }
  memset(spec, 0, sizeof(*spec));
  spec->name = "Cart";
  spec->num_agents = 1;
  spec->obs_size = 2;
  spec->action_size = 1;
  spec->action_low = &low;
  spec->action_high = &high;
  spec->max_episode_steps = 100;
  spec->num_metrics = 1;
  spec->metric_names = metrics;
  spec->state_size = 2;
  return 0;
}

static void* Create(const char* arguments, char* error, size_t error_size) {
  (void)arguments, (void)error, (void)error_size;
  return calloc(1, sizeof(Cart));
}

static void Observe(void* env, float* obs) {
  const Cart* const cart = env;
  obs[0] = (float)cart->position;
  obs[1] = (float)cart->velocity;
}

static int Reset(void* env, uint32_t seed, float* obs) {
  Cart* const cart = env;
  /* A number in [-1, 1] that depends on nothing but the seed. */
  cart->position = (double)((seed * 2654435761u) >> 8) / (1 << 23) - 1;
  cart->velocity = 0;
  Observe(env, obs);
  return 0;
}

static int Step(void* env, const float* action, float* obs, float* reward, uint8_t* terminated, uint8_t* truncated) {
  Cart* const cart = env;
  (void)truncated;
  cart->velocity = 0.9 * cart->velocity + 0.05 * action[0];
  cart->position += cart->velocity;
  Observe(env, obs);
  *terminated = fabs(cart->position) > 2;
  const int rests = fabs(cart->position) < 0.1 && fabs(cart->velocity) < 0.02;
  *reward = *terminated ? -10 : (float)(1 - fabs(cart->position) + 2 * rests);
  return 0;
}

static void Metrics(void* env, float* metrics) { metrics[0] = (float)fabs(((const Cart*)env)->position); }
static void Save(void* env, double* state) { memcpy(state, env, sizeof(Cart)); }
static void Load(void* env, const double* state) { memcpy(env, state, sizeof(Cart)); }

const SkeinEnvPlugin* skein_env_plugin(void) {
  static const SkeinEnvPlugin plugin = {
      .version = SKEIN_ENV_PLUGIN_VERSION,
      .size = sizeof(SkeinEnvPlugin),
      .spec = Spec,
      .create = Create,
      .destroy = free,
      .reset = Reset,
      .step = Step,
      .metrics = Metrics,
      .save = Save,
      .load = Load,
      .observe = Observe,
  };
  return &plugin;
}
