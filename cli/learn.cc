// SPDX-License-Identifier: Apache-2.0
// fovea learn: the chapters of the course, and their commands.
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "cli/chapters.h"
#include "cli/commands.h"
#include "cli/language.h"
#include "cli/options.h"
#include "cli/output.h"
#include "fovea/base/file.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/text/utf8.h"

namespace fovea::cli {

namespace {

namespace fs = std::filesystem;

// A paragraph of 100 columns is the widest that is easy to read.
index columns() { return std::min<index>(result_columns(), 100); }

struct LearnOptions {
  bool run = false;
  std::string output = "learn-NN";

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("run", run, "run the commands of the chapter, each shown before it runs",
          {.only_command_line = true});
    visit("output", output, "run them in this folder, which is new or empty; NN: the chapter",
          {.only_command_line = true, .shown = "DIR", .also = "o"});
  }
};

std::string numbers_of(std::string_view separator) {
  std::string numbers = "1";
  for (int n = 2; n <= chapter_count(); ++n) numbers += fmt::format("{}{}", separator, n);
  return numbers;
}

Chapter chapter_numbered(const std::string& number, PageLanguage language) {
  for (Chapter& chapter : chapters_in(language)) {
    if (fmt::format("{}", chapter.number) == number) return std::move(chapter);
  }
  throw Error(ErrorCode::kUsage, fmt::format("learn: there is no chapter {}", excerpt(number)),
              fmt::format("name one of: {}", numbers_of(", ")));
}

void print_list(PageLanguage language) {
  std::string list;
  for (const Chapter& chapter : chapters_in(language)) {
    list += fmt::format("{:>2}  {}\n", chapter.number, chapter.title);
    const std::string about = plain_text(chapter.summary, columns() - 4);
    for (const std::string_view line : parts_between(about, '\n')) {
      if (!line.empty()) list += fmt::format("    {}\n", line);
    }
  }
  print(list + (language == PageLanguage::kChinese
                    ? "\nfovea learn N --lang zh 打印第 N 章，fovea learn N --run 运行它的命令\n"
                    : "\nfovea learn N prints chapter N, fovea learn N --run runs its commands\n"));
}

// What is started speaks English, as the pages of both languages show it, and its `fovea` is this
// program.
void set_environment() {
  setenv("FOVEA_LANG", "en", 1);
  std::error_code failure;
  const fs::path self = fs::read_symlink("/proc/self/exe", failure);
  if (failure || self.filename() != "fovea") return;
  const char* const path = std::getenv("PATH");
  const std::string rest = path != nullptr ? fmt::format(":{}", path) : ":/usr/bin:/bin";
  setenv("PATH", (self.parent_path().string() + rest).c_str(), 1);
}

// The exit status of the shell that runs these commands in the folder; its messages go where its
// results go, so that both stand in their order.
int run_commands(const std::string& commands, const fs::path& folder) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addchdir_np(&files, folder.c_str());
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", 0, 0);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  sigset_t defaults;  // this program ignores them, and what it starts would, too
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  sigaddset(&defaults, SIGXFSZ);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  std::string words[] = {"sh", "-e", "-c", commands};
  char* const arguments[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(),
                             nullptr};
  pid_t process = 0;
  const int failure = posix_spawnp(&process, "sh", &files, &attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (failure != 0) {
    throw Error(ErrorCode::kMissingInput,
                fmt::format("learn: cannot start sh: {}", std::generic_category().message(failure)),
                "install a POSIX shell, or type the commands");
  }
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// The first code with this exit status, which is that of the command that failed.
ErrorCode code_of_status(int status) {
  constexpr int kNoSuchCommand = 127;  // by the shell
  if (status == kNoSuchCommand) return ErrorCode::kMissingInput;
  const auto* const found = std::find_if(kErrorCodes.begin(), kErrorCodes.end(),
                                         [&](const auto& e) { return e.exit_status == status; });
  return found != kErrorCodes.end() ? found->code : ErrorCode::kInternal;
}

void require_new_or_empty(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder, ignored) ||
      (fs::is_directory(folder, ignored) && fs::is_empty(folder, ignored))) {
    return;
  }
  throw Error(ErrorCode::kOutputExists,
              fmt::format("learn: {} is there already", printable(folder.string())),
              "choose another folder with -o DIR, or remove this one");
}

// The Python of the chapter, to be run in the folder after its commands.
void write_program(const Chapter& chapter, const fs::path& folder) {
  std::string name = chapter.name + ".py", text;
  std::replace(name.begin(), name.end(), '-', '_');
  for (const std::string& block : code_blocks(chapter.text, "python")) text += block + "\n";
  if (text.empty()) return;
  write_file_atomically(folder / name, text);
  note(
      fmt::format("the Python of the chapter, which needs numpy and fovea's package: cd {} && "
                  "python3 {}",
                  shell_word(folder.string()), name));
}

void run_chapter(const Chapter& chapter, const fs::path& folder) {
  require_new_or_empty(folder);
  create_folders(folder);
  set_environment();
  const std::vector<std::string> blocks = code_blocks(chapter.text, "sh");
  for (std::size_t n = 0; n < blocks.size(); ++n) {
    std::string shown = n == 0 ? "" : "\n";
    for (const std::string_view line : parts_between(blocks[n], '\n')) {
      if (!line.empty()) shown += fmt::format("$ {}\n", line);
    }
    print_answers(shown);
    const int status = run_commands(blocks[n], folder);
    if (status == 0) continue;
    throw Error(code_of_status(status),
                fmt::format("learn: block {} of {} of chapter {} ended with exit status {}", n + 1,
                            blocks.size(), chapter.number, status),
                fmt::format("the lines above say why, and what was made lies in {}; mend it, and "
                            "begin again in another folder: -o DIR",
                            printable(folder.string())));
  }
  note(fmt::format("what the chapter made lies in {}", printable(folder.string())));
  write_program(chapter, folder);
}

int learn(const Arguments& arguments) {
  begin_command(arguments);
  LearnOptions options;
  read_options(arguments, options);
  const bool runs = options.run || arguments.has("output");
  if (!arguments.has("N")) {
    if (runs) {
      throw Error(ErrorCode::kUsage, "learn: no chapter to run",
                  fmt::format("name one of: {}", numbers_of(", ")));
    }
    print_list(language());
    return 0;
  }
  const Chapter chapter = chapter_numbered(arguments.text("N"), language());
  if (!runs) {
    print(plain_text(chapter.text, columns()));
    return 0;
  }
  if (!arguments.has("output")) options.output = fmt::format("learn-{:02}", chapter.number);
  run_chapter(chapter, options.output);
  return 0;
}

}  // namespace

Command learn_command() {
  return {.name = "learn",
          .summary = "Prints a chapter of the course, or runs its commands.",
          .positionals = {{.name = "N",
                           .help = "the chapter; without it, all are listed",
                           .required = false,
                           .choices = numbers_of("|")}},
          .options = joined({said_or_not(LearnOptions(), "Run"), message_options()}),
          .epilog = R"(Examples:
  fovea learn                 the chapters
  fovea learn 1               attention by hand
  fovea learn 1 --lang zh
  fovea learn 1 --run         runs its commands in learn-01
  fovea learn 1 -o by-hand    runs them in this folder

It stops at the first command that fails. The documentation has the chapters as pages, scripts
and notebooks, too.)",
          .run = learn};
}

}  // namespace fovea::cli
