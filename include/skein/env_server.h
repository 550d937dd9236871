// SPDX-License-Identifier: Apache-2.0
#ifndef SKEIN_ENV_SERVER_H_
#define SKEIN_ENV_SERVER_H_

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "skein/env_plugin.h"

// The server's side of skein.env.v1 by shared memory, in C.
/* Serves environments to the process that started this one, in C or C++:
 *   int main(void) { return skein_env_serve(skein_env_plugin()); }
 * and env.id: exec:./my_server. Protocol skein.env.v1 by shared memory; docs/environments.md describes it. Linux, GCC
 * or Clang. Little-endian hosts. */

#define SKEIN_ENV_HEAD_BYTES 320u
#define SKEIN_ENV_LONGEST_MESSAGE (1u << 18)

typedef struct SkeinEnvColumns {
  float* action;
  uint32_t* seed;
  uint8_t* mask;
  float* observation;
  float* reward;
  uint8_t* terminated;
  uint8_t* truncated;
  uint8_t* failed;
  uint8_t* active;
  float* final_observation;
  float* global_state;
  float* final_global_state;
  float* episode_metrics;
} SkeinEnvColumns;

/* Bytes of the memory; pointers into `base`, if that is not NULL. */
static inline size_t skein_env_lay_out(const SkeinEnvSpec* spec, size_t envs, char* base, SkeinEnvColumns* columns) {
  const size_t agents = spec->num_agents, obs = agents * spec->obs_size;
  const size_t action = agents * (spec->discrete ? 1u : spec->action_size);
  const size_t bytes[13] = {4 * action,
                            4,
                            1,
                            4 * obs,
                            4 * agents,
                            1,
                            1,
                            1,
                            agents,
                            4 * obs,
                            4 * (size_t)spec->global_state_size,
                            4 * (size_t)spec->global_state_size,
                            4 * (size_t)spec->num_metrics};
  char* at[13];
  size_t end = SKEIN_ENV_HEAD_BYTES;
  for (int i = 0; i < 13; ++i) {
    at[i] = base == NULL ? NULL : base + end;
    end = (end + envs * bytes[i] + 63) / 64 * 64;
  }
  columns->action = (float*)(void*)at[0];
  columns->seed = (uint32_t*)(void*)at[1];
  columns->mask = (uint8_t*)at[2];
  columns->observation = (float*)(void*)at[3];
  columns->reward = (float*)(void*)at[4];
  columns->terminated = (uint8_t*)at[5];
  columns->truncated = (uint8_t*)at[6];
  columns->failed = (uint8_t*)at[7];
  columns->active = (uint8_t*)at[8];
  columns->final_observation = (float*)(void*)at[9];
  columns->global_state = (float*)(void*)at[10];
  columns->final_global_state = (float*)(void*)at[11];
  columns->episode_metrics = (float*)(void*)at[12];
  return end;
}

/* A message under way, as protobuf writes it. */
typedef struct SkeinEnvBytes {
  unsigned char* data;
  size_t size, room;
} SkeinEnvBytes;

static inline void skein_env_put(SkeinEnvBytes* out, const void* data, size_t size) {
  if (out->size + size > out->room) {
    out->room = 2 * (out->size + size) + 64;
    out->data = (unsigned char*)realloc(out->data, out->room);
    if (out->data == NULL) abort();
  }
  if (size > 0) memcpy(out->data + out->size, data, size);
  out->size += size;
}

static inline void skein_env_put_varint(SkeinEnvBytes* out, uint64_t value) {
  do {
    const unsigned char byte = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
    skein_env_put(out, &byte, 1);
    value >>= 7;
  } while (value != 0);
}

static inline void skein_env_put_int(SkeinEnvBytes* out, unsigned field, uint64_t value) {
  skein_env_put_varint(out, (uint64_t)field << 3);
  skein_env_put_varint(out, value);
}

static inline void skein_env_put_bytes(SkeinEnvBytes* out, unsigned field, const void* data, size_t size) {
  skein_env_put_varint(out, (uint64_t)field << 3 | 2);
  skein_env_put_varint(out, size);
  skein_env_put(out, data, size);
}

static inline void skein_env_put_text(SkeinEnvBytes* out, unsigned field, const char* text) {
  if (text != NULL) skein_env_put_bytes(out, field, text, strlen(text));
}

/* Reads a varint; 0: it is cut off. */
static inline int skein_env_get_varint(const unsigned char** at, const unsigned char* end, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && *at < end; shift += 7) {
    const unsigned char byte = *(*at)++;
    *value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return 1;
  }
  return 0;
}

/* The field `field` of a message: its number, or its bytes. 0: the message is cut off, or does not have it. */
static inline int skein_env_find(const unsigned char* data, size_t size, unsigned field, uint64_t* number,
                                 const unsigned char** bytes, size_t* bytes_size) {
  const unsigned char* at = data;
  const unsigned char* const end = data + size;
  int found = 0;
  while (at < end) {
    uint64_t key, value;
    if (!skein_env_get_varint(&at, end, &key)) return 0;
    const unsigned char* begin = NULL;
    switch (key & 7) {
      case 0:
        if (!skein_env_get_varint(&at, end, &value)) return 0;
        break;
      case 1:
      case 5:
        value = (key & 7) == 1 ? 8 : 4;
        break;
      case 2:
        if (!skein_env_get_varint(&at, end, &value)) return 0;
        break;
      default:
        return 0;
    }
    if ((key & 7) != 0) {
      if (value > (uint64_t)(end - at)) return 0;
      begin = at;
      at += value;
    }
    if (key >> 3 != field) continue;
    found = 1;
    *number = value;
    *bytes = begin;
    *bytes_size = begin == NULL ? 0 : (size_t)value;
  }
  return found;
}

/* A ServerMessage with `body` as its field `field`. */
static inline int skein_env_send(int fd, unsigned field, const SkeinEnvBytes* body) {
  SkeinEnvBytes message = {NULL, 0, 0};
  skein_env_put_bytes(&message, field, body->data, body->size);
  const ssize_t sent = send(fd, message.data, message.size, MSG_NOSIGNAL);
  free(message.data);
  return sent < 0 ? -1 : 0;
}

static inline void skein_env_send_failure(int fd, uint32_t env, const char* why, int unusable) {
  SkeinEnvBytes body = {NULL, 0, 0};
  skein_env_put_int(&body, 1, env);
  skein_env_put_text(&body, 2, why);
  skein_env_put_int(&body, 3, unusable ? 1 : 0);
  (void)skein_env_send(fd, 3, &body);
  free(body.data);
}

static inline int skein_env_send_welcome(int fd, const SkeinEnvSpec* spec) {
  SkeinEnvBytes body = {NULL, 0, 0}, welcome = {NULL, 0, 0};
  skein_env_put_text(&body, 1, spec->name);
  skein_env_put_int(&body, 2, spec->num_agents);
  skein_env_put_int(&body, 3, spec->obs_size);
  skein_env_put_int(&body, 4, spec->discrete != 0);
  skein_env_put_int(&body, 5, spec->action_size);
  if (!spec->discrete) {
    skein_env_put_bytes(&body, 6, spec->action_low, 4 * (size_t)spec->action_size);
    skein_env_put_bytes(&body, 7, spec->action_high, 4 * (size_t)spec->action_size);
  }
  skein_env_put_int(&body, 8, spec->global_state_size);
  skein_env_put_int(&body, 9, spec->max_episode_steps);
  skein_env_put_varint(&body, 10 << 3 | 1);
  skein_env_put(&body, &spec->reward_threshold, 8);
  for (uint32_t i = 0; i < spec->num_metrics; ++i) skein_env_put_text(&body, 11, spec->metric_names[i]);
  skein_env_put_int(&welcome, 1, 1);
  skein_env_put_bytes(&welcome, 2, body.data, body.size);
  skein_env_put_text(&welcome, 3, "skein/env_server.h");
  const int sent = skein_env_send(fd, 1, &welcome);
  free(body.data);
  free(welcome.data);
  return sent;
}

typedef struct SkeinEnvServer {
  int fd;
  const SkeinEnvPlugin* plugin;
  SkeinEnvSpec spec;
  size_t envs;
  void** env;
  SkeinEnvColumns columns;
  int bare_has_begun;
} SkeinEnvServer;

static inline void skein_env_fail(SkeinEnvServer* server, size_t e, const char* why) {
  server->columns.failed[e] = 1;
  skein_env_send_failure(server->fd, (uint32_t)e, why, 0);
}

static inline void skein_env_begin(SkeinEnvServer* server, size_t e) {
  const SkeinEnvSpec* const spec = &server->spec;
  const SkeinEnvColumns* const c = &server->columns;
  float* const obs = c->observation + e * spec->num_agents * spec->obs_size;
  if (server->plugin->reset(server->env[e], c->seed[e], obs) != 0) {
    skein_env_fail(server, e, skein_env_why(server->plugin, server->env[e], "its reset failed"));
    return;
  }
  if (spec->global_state_size > 0 && server->plugin->global_state != NULL) {
    server->plugin->global_state(server->env[e], c->global_state + e * spec->global_state_size);
  }
}

static inline void skein_env_reset_all(SkeinEnvServer* server) {
  const SkeinEnvColumns* const c = &server->columns;
  const size_t agents = server->spec.num_agents;
  for (size_t e = 0; e < server->envs; ++e) {
    if (!c->mask[e]) continue;
    c->failed[e] = c->terminated[e] = c->truncated[e] = 0;
    memset(c->reward + e * agents, 0, 4 * agents);
    memset(c->active + e * agents, 1, agents);
    skein_env_begin(server, e);
  }
}

static inline void skein_env_step_one(SkeinEnvServer* server, size_t e) {
  const SkeinEnvSpec* const spec = &server->spec;
  const SkeinEnvColumns* const c = &server->columns;
  const size_t agents = spec->num_agents, obs = agents * spec->obs_size, state = spec->global_state_size;
  const size_t action = agents * (spec->discrete ? 1u : spec->action_size);
  c->failed[e] = c->terminated[e] = c->truncated[e] = 0;
  memset(c->active + e * agents, 1, agents);
  void* const env = server->env[e];
  if (server->plugin->step(env, c->action + e * action, c->observation + e * obs, c->reward + e * agents,
                           c->terminated + e, c->truncated + e) != 0) {
    skein_env_fail(server, e, skein_env_why(server->plugin, env, "its step failed"));
    return;
  }
  if (c->terminated[e]) c->truncated[e] = 0;
  if (server->plugin->active != NULL) server->plugin->active(env, c->active + e * agents);
  if (spec->num_metrics > 0 && server->plugin->metrics != NULL) {
    server->plugin->metrics(env, c->episode_metrics + e * spec->num_metrics);
  }
  if (state > 0 && server->plugin->global_state != NULL) {
    server->plugin->global_state(env, c->global_state + e * state);
  }
  if (!c->terminated[e] && !c->truncated[e]) return;
  memcpy(c->final_observation + e * obs, c->observation + e * obs, 4 * obs);
  memcpy(c->final_global_state + e * state, c->global_state + e * state, 4 * state);
  skein_env_begin(server, e);
}

static inline int64_t skein_env_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Waits for a request with another sequence than `last`. 0: the client is gone. */
static inline int skein_env_wait(int fd, uint32_t* words, uint32_t last, uint32_t* sequence) {
  const int64_t end = skein_env_now() + 30000;
  do {
    for (int i = 0; i < 64; ++i) {
      *sequence = __atomic_load_n(words + 16, __ATOMIC_ACQUIRE);
      if (*sequence != last) return 1;
    }
  } while (skein_env_now() < end);
  for (;;) {
    __atomic_store_n(words + 48, 1u, __ATOMIC_SEQ_CST);
    *sequence = __atomic_load_n(words + 16, __ATOMIC_SEQ_CST);
    if (*sequence != last) break;
    struct pollfd source = {fd, POLLIN, 0};
    char woken[64];
    if (poll(&source, 1, 20) > 0 && recv(fd, woken, sizeof(woken), MSG_DONTWAIT) == 0) return 0;
  }
  __atomic_store_n(words + 48, 0u, __ATOMIC_SEQ_CST);
  return 1;
}

/* Takes so many steps of the environments in turn, with the actions that lie there, as a loop without Skein does. */
static inline void skein_env_bare(SkeinEnvServer* server, uint32_t steps) {
  const SkeinEnvSpec* const spec = &server->spec;
  const SkeinEnvColumns* const c = &server->columns;
  const size_t agents = spec->num_agents, obs = agents * spec->obs_size;
  const size_t action = agents * (spec->discrete ? 1u : spec->action_size);
  for (size_t e = 0; e < server->envs && !server->bare_has_begun; ++e) {
    (void)server->plugin->reset(server->env[e], (uint32_t)e, c->observation + e * obs);
  }
  server->bare_has_begun = 1;
  for (uint32_t i = 0; i < steps; ++i) {
    const size_t e = i % server->envs;
    uint8_t terminated = 0, truncated = 0;
    (void)server->plugin->step(server->env[e], c->action + e * action, c->observation + e * obs, c->reward + e * agents,
                               &terminated, &truncated);
    if (terminated || truncated) (void)server->plugin->reset(server->env[e], i, c->observation + e * obs);
  }
}

static inline int skein_env_run(SkeinEnvServer* server, char* memory) {
  uint32_t* const words = (uint32_t*)(void*)memory;
  uint32_t sequence = 0;
  while (skein_env_wait(server->fd, words, sequence, &sequence)) {
    if (words[17] == 1) {
      for (size_t e = 0; e < server->envs; ++e) skein_env_step_one(server, e);
    } else if (words[17] == 2) {
      skein_env_reset_all(server);
    } else {
      skein_env_bare(server, server->columns.seed[0]);
    }
    __atomic_store_n(words + 32, sequence, __ATOMIC_SEQ_CST);
    if (__atomic_exchange_n(words + 64, 0u, __ATOMIC_SEQ_CST) != 0) {
      const char wake = 1;
      if (send(server->fd, &wake, 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN) return 0;
    }
  }
  return 0;
}

/* Serves until the client is gone. Returns the exit code of the program. */
static inline int skein_env_serve(const SkeinEnvPlugin* plugin) {
  const char* const text = getenv("SKEIN_ENV_FD");
  if (text == NULL) {
    fprintf(stderr, "this program serves an environment to Skein: env.id=exec:PROGRAM\n");
    return 64;
  }
  SkeinEnvServer server;
  memset(&server, 0, sizeof(server));
  server.fd = atoi(text);
  server.plugin = plugin;
  /* The kernel ends this process when its parent is gone, whatever it is doing then. */
  const int life = server.fd + 2;
  if (fcntl(life, F_SETOWN, getpid()) != 0 || fcntl(life, F_SETSIG, SIGKILL) != 0 ||
      fcntl(life, F_SETFL, fcntl(life, F_GETFL) | O_ASYNC) != 0) {
    return 70;
  }
  unsigned char* const packet = (unsigned char*)malloc(SKEIN_ENV_LONGEST_MESSAGE);
  if (packet == NULL) return 70;
  const ssize_t got = recv(server.fd, packet, SKEIN_ENV_LONGEST_MESSAGE, 0);
  const unsigned char *hello, *arguments = NULL;
  size_t hello_size, arguments_size = 0;
  uint64_t number, version = 0, envs = 0;
  if (got <= 0 || !skein_env_find(packet, (size_t)got, 1, &number, &hello, &hello_size) || hello == NULL) return 65;
  (void)skein_env_find(hello, hello_size, 3, &number, &arguments, &arguments_size);
  const unsigned char* unused;
  size_t unused_size;
  (void)skein_env_find(hello, hello_size, 1, &version, &unused, &unused_size);
  (void)skein_env_find(hello, hello_size, 4, &envs, &unused, &unused_size);
  if (version != 1 || envs < 1 || plugin->version != SKEIN_ENV_PLUGIN_VERSION) {
    skein_env_send_failure(server.fd, 0, "it speaks version 1 of skein.env.v1", 1);
    return 65;
  }
  char error[1024] = "it gave no reason";
  char* const options = (char*)calloc(1, arguments_size + 1);
  if (options == NULL) return 70;
  if (arguments_size > 0) memcpy(options, arguments, arguments_size);
  server.envs = (size_t)envs;
  server.env = (void**)calloc(server.envs, sizeof(void*));
  if (server.env == NULL) return 70;
  if (plugin->spec(options, &server.spec, error, sizeof(error)) != 0) {
    skein_env_send_failure(server.fd, 0, error, 1);
    return 65;
  }
  for (size_t e = 0; e < server.envs; ++e) {
    server.env[e] = plugin->create(options, error, sizeof(error));
    if (server.env[e] == NULL) {
      skein_env_send_failure(server.fd, 0, error, 1);
      return 65;
    }
  }
  if (skein_env_send_welcome(server.fd, &server.spec) != 0) return 0;
  const ssize_t ready = recv(server.fd, packet, SKEIN_ENV_LONGEST_MESSAGE, 0);
  if (ready <= 0) return 0;
  const size_t size = skein_env_lay_out(&server.spec, server.envs, NULL, &server.columns);
  void* const memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, server.fd + 1, 0);
  if (memory == MAP_FAILED) return 70;
  (void)skein_env_lay_out(&server.spec, server.envs, (char*)memory, &server.columns);
  const int code = skein_env_run(&server, (char*)memory);
  for (size_t e = 0; e < server.envs; ++e) plugin->destroy(server.env[e]);
  free(server.env);
  free(options);
  free(packet);
  return code;
}

#endif /* SKEIN_ENV_SERVER_H_ */
