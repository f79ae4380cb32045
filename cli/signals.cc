// SPDX-License-Identifier: Apache-2.0
#include "cli/signals.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <csignal>

namespace fovea::cli {

namespace {

volatile std::sig_atomic_t stop_signal = 0;
volatile std::sig_atomic_t save_wanted = 0;

int status_of(int signal) { return 128 + signal; }

char unfinished[PATH_MAX] = "";  // the name of a file, which is written before it counts

void leave(int signal) {
  if (unfinished[0] != '\0') ::unlink(unfinished);
  ::_exit(status_of(signal));
}
void note_save(int) { save_wanted = 1; }
void note_stop(int signal) {
  if (signal == SIGUSR2) {
    // The status is that of a signal that came before.
    if (stop_signal == 0) stop_signal = signal;
    return;
  }
  stop_signal = signal;
  // From now on SIGINT or SIGTERM ends the process at once. SIGHUP does not: a terminal that is
  // closed may send two.
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(signal, &action, nullptr);
}

void handle_all(void (*stop)(int)) {
  handle(SIGINT, stop);
  handle(SIGTERM, stop);
  if (!is_ignored(SIGHUP)) handle(SIGHUP, stop);
  handle(SIGUSR1, note_save);
  handle(SIGUSR2, note_stop);
}

}  // namespace

void prepare_for_signals() { handle_all(leave); }

void remove_if_stopped(const std::filesystem::path& file) {
  if (file.native().size() >= sizeof(unfinished)) return;
  unfinished[0] = '\0';
  if (file.empty()) return;
  std::copy_n(file.c_str() + 1, file.native().size(), unfinished + 1);
  unfinished[0] = file.native()[0];
  handle(SIGINT, leave);
  handle(SIGTERM, leave);
  if (!is_ignored(SIGHUP)) handle(SIGHUP, leave);
}

void listen_to_signals() { handle_all(note_stop); }

Request requested() {
  if (stop_signal != 0) return Request::kStop;
  if (save_wanted == 0) return Request::kNone;
  save_wanted = 0;
  return Request::kSave;
}

int stop_status() {
  return stop_signal == 0 || stop_signal == SIGUSR2 ? 0 : status_of(stop_signal);
}

}  // namespace fovea::cli
