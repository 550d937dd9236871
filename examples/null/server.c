/* SPDX-License-Identifier: Apache-2.0 */
/* The same environment as a program: env.id=exec:./null_server. Where it crashes, only its own episodes are lost. */
#include <skein/env_server.h>

int main(void) { return skein_env_serve(skein_env_plugin()); }
