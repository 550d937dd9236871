// SPDX-License-Identifier: Apache-2.0
// Nothing: cmake makes a precompiled header for a target with sources only.
