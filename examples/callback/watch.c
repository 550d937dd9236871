/* SPDX-License-Identifier: Apache-2.0 */
/* A callback as a program: adds a metric, and stops the run once the mean return has reached what its argument says.
 *   cc examples/callback/watch.c -o build/watch
 *   skein train --env CartPole-v1 --callbacks 'exec:build/watch 195'
 * It reads a JSON object from each line of its standard input and answers with one on a line of its standard output. A
 * library for JSON is better than strstr wherever more than a number is looked for. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  const double target = argc > 1 ? atof(argv[1]) : 475;
  static const char key[] = "\"episode_return_mean\":";
  char* line = NULL;
  size_t room = 0;
  while (getline(&line, &room, stdin) > 0) {
    const char* const found = strstr(line, key);
    char* end = NULL;
    const double mean = found == NULL ? 0 : strtod(found + strlen(key), &end);
    if (strncmp(line, "{\"begin\":", 9) == 0) {
      printf("{\"has\": [\"on_iteration\"]}\n"); /* Nothing else is asked for. */
    } else if (found == NULL || end == found + strlen(key)) {
      printf("{}\n"); /* null: no episode has ended yet. */
    } else if (mean < target) {
      printf("{\"metrics\": {\"to_go\": %.9g}}\n", target - mean);
    } else {
      printf("{\"metrics\": {\"to_go\": 0}, \"stop\": \"the mean return is %.0f\"}\n", mean);
    }
    fflush(stdout);
  }
  free(line);
  return 0;
}
