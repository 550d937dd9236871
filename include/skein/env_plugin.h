// SPDX-License-Identifier: Apache-2.0
#ifndef SKEIN_ENV_PLUGIN_H_
#define SKEIN_ENV_PLUGIN_H_

#include <stddef.h>
#include <stdint.h>

// The interface between Skein and environments in C and C++.
/* An environment of one's own as a C interface, for two uses:
 *   env.id: plugin:./libmy_env.so   a library that defines skein_env_plugin(), loaded into each actor
 *   env.id: exec:./my_server        a program that calls skein_env_serve() of skein/env_server.h, one for each env
 * group A agents, O floats of observation, D real actions, G floats of global state, P metrics, S doubles of saved
 * state. Functions that return int return 0 for success. An environment is called by one thread at a time; different
 * ones by several at the same time. Nothing may be thrown out of a function. */

#define SKEIN_ENV_PLUGIN_VERSION 1u

#ifdef __cplusplus
extern "C" {
#endif

/* What an environment is. Pointers must stay valid until the library is unloaded. */
typedef struct SkeinEnvSpec {
  const char* name;                /* For people. */
  uint32_t num_agents;             /* A >= 1 */
  uint32_t obs_size;               /* O >= 1 */
  uint32_t discrete;               /* 1: one of action_size choices; 0: action_size reals. */
  uint32_t action_size;            /* Choices, or D; >= 1. */
  const float* action_low;         /* [D], finite; unused if discrete. */
  const float* action_high;        /* [D] */
  uint32_t global_state_size;      /* G; 0 = none. */
  uint32_t max_episode_steps;      /* Truncation after so many steps, which Skein sees to; 0 = never. */
  double reward_threshold;         /* Return at which the task counts as solved; 0 = none. */
  uint32_t num_metrics;            /* P */
  const char* const* metric_names; /* [P], like distance_to_goal */
  uint32_t state_size;             /* S of save and load; 0: its state cannot be saved (plugins only). */
} SkeinEnvSpec;

typedef struct SkeinEnvPlugin {
  uint32_t version; /* SKEIN_ENV_PLUGIN_VERSION */
  uint32_t size;    /* sizeof(SkeinEnvPlugin) */

  /* arguments: the setting env.external.arguments, "" if there are none. On failure `error` gets a line for people. */
  int (*spec)(const char* arguments, SkeinEnvSpec* spec, char* error, size_t error_size);
  void* (*create)(const char* arguments, char* error, size_t error_size); /* NULL: failure. */
  void (*destroy)(void* env);

  /* Begins an episode that depends on nothing but `seed` (under 2^31). Writes obs [A, O]. */
  int (*reset)(void* env, uint32_t seed, float* obs);
  /* action: [A, D] within the bounds, or [A, 1] choices as floats. Writes obs [A, O], reward [A]; *terminated: the
   * task's own end; *truncated: any other end. They are 0 before. Failure: the episode is truncated and counted as
   * lost. */
  int (*step)(void* env, const float* action, float* obs, float* reward, uint8_t* terminated, uint8_t* truncated);

  /* Each may be NULL. */
  void (*active)(void* env, uint8_t* active);    /* [A]: 1 = alive in the next step. NULL: all are. */
  void (*global_state)(void* env, float* state); /* [G] */
  void (*metrics)(void* env, float* metrics);    /* [P] of the episode so far. */
  void (*save)(void* env, double* state);        /* [S]: after load the same actions give the same bits. */
  void (*load)(void* env, const double* state);  /* load also brings back what observe writes. */
  void (*observe)(void* env, float* obs);        /* [A, O] of the present state; needed with save and load. */
  /* One line for people: why the last reset or step of `env` failed. Valid until the next call. Libraries that were
   * compiled before it was here have a smaller `size`, and go on. */
  const char* (*why)(void* env);
} SkeinEnvPlugin;

/* Why `env` failed, or `otherwise` where the library does not say. */
static inline const char* skein_env_why(const SkeinEnvPlugin* plugin, void* env, const char* otherwise) {
  const char* const why = plugin->size >= sizeof(SkeinEnvPlugin) && plugin->why != NULL ? plugin->why(env) : NULL;
  return why != NULL && *why != '\0' ? why : otherwise;
}

/* What a library for plugin: defines, by this name. Its result must stay valid until the library is unloaded. */
const SkeinEnvPlugin* skein_env_plugin(void);

#ifdef __cplusplus
}
#endif

#endif /* SKEIN_ENV_PLUGIN_H_ */
