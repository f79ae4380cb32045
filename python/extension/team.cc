// SPDX-License-Identifier: Apache-2.0
#include "python/extension/team.h"

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "fovea/base/team.h"

namespace nb = nanobind;

namespace fovea::python {

namespace {

// The entry of a parallel region, as GCC calls it in programs with OpenMP; the libraries of LLVM
// and Intel have it, too. A team of another size would end and start threads in turns with
// PyTorch's, so it is used only at the size that it has.
class OpenMpTeam : public Team {
 public:
  using Parallel = void (*)(void (*work)(void*), void* data, unsigned threads, unsigned flags);
  using GetNumber = int (*)();

  OpenMpTeam(Parallel parallel, GetNumber most_threads, GetNumber thread)
      : parallel_(parallel), most_threads_(most_threads), thread_(thread) {}

  bool is_of(int threads) const override;
  void run(int threads, void (*work)(void*, int), void* data) const override {
    struct Region {
      GetNumber thread;
      void (*work)(void*, int);
      void* data;
    };
    Region region{thread_, work, data};
    parallel_(
        [](void* of_all) {
          const Region& entered = *static_cast<const Region*>(of_all);
          entered.work(entered.data, entered.thread());
        },
        &region, static_cast<unsigned>(threads), 0);
  }

 private:
  Parallel parallel_;
  GetNumber most_threads_;  // omp_get_max_threads
  GetNumber thread_;        // omp_get_thread_num
};

std::atomic<const OpenMpTeam*> team_of_process{nullptr};

// Null again in a child of fork: the threads are gone there, and a library of OpenMP does not start
// them anew, so the child goes on with our own.
bool OpenMpTeam::is_of(int threads) const {
  return team_of_process == this && threads == most_threads_();
}

void use_openmp(std::uintptr_t parallel, std::uintptr_t most_threads, std::uintptr_t thread) {
  static const OpenMpTeam team(reinterpret_cast<OpenMpTeam::Parallel>(parallel),
                               reinterpret_cast<OpenMpTeam::GetNumber>(most_threads),
                               reinterpret_cast<OpenMpTeam::GetNumber>(thread));
  if (pthread_atfork(nullptr, nullptr, [] { team_of_process = nullptr; }) != 0) return;
  team_of_process = &team;
}

}  // namespace

Context context_of(int threads) {
  const Context context(threads);
  const OpenMpTeam* const team = team_of_process;
  return team == nullptr ? context : context.on(*team);
}

void bind_team(nb::module_& m) {
  m.def("use_openmp", &use_openmp, nb::arg("parallel"), nb::arg("most_threads"), nb::arg("thread"),
        "Calls run on the threads of an OpenMP library from now on: the addresses of its "
        "GOMP_parallel, omp_get_max_threads and omp_get_thread_num.");
}

}  // namespace fovea::python
