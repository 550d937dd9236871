// SPDX-License-Identifier: Apache-2.0
// Exists so that the precompiled Torch header has a target to be built in.
