// SPDX-License-Identifier: Apache-2.0
// Which sanitizer this is compiled for: g++ and clang 14 define different macros.
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FOVEA_ADDRESS_SANITIZER 1
#elif __has_feature(thread_sanitizer)
#define FOVEA_THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define FOVEA_ADDRESS_SANITIZER 1
#elif defined(__SANITIZE_THREAD__)
#define FOVEA_THREAD_SANITIZER 1
#endif
