/* SPDX-License-Identifier: Apache-2.0 */
/* Plays the exported policy.h: reads observation, reset and noise of each step from standard input, writes head, action
   and sampled action as raw floats. */
#include <stdio.h>

#include "policy.h"

int main(void) {
  float observation[SKEIN_POLICY_OBSERVATION_SIZE], state[SKEIN_POLICY_STATE_SIZE + 1];
  float head[SKEIN_POLICY_HEAD_SIZE], action[SKEIN_POLICY_ACTION_SIZE], noise[SKEIN_POLICY_ACTION_SIZE];
  unsigned char reset;
  while (fread(observation, sizeof observation, 1, stdin) == 1 && fread(&reset, 1, 1, stdin) == 1 &&
         fread(noise, sizeof noise, 1, stdin) == 1) {
    skein_policy_head(observation, state, reset, head);
    fwrite(head, sizeof head, 1, stdout);
#ifdef CHOICES
    action[0] = (float)skein_policy_action(head);
    fwrite(action, sizeof action, 1, stdout);
    action[0] = (float)skein_policy_sample(head, noise[0]);
#else
    skein_policy_action(head, action);
    fwrite(action, sizeof action, 1, stdout);
    skein_policy_sample(head, noise, action);
#endif
    fwrite(action, sizeof action, 1, stdout);
  }
  return skein_policy_digest()[0] == 0;
}
