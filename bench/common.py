# SPDX-License-Identifier: Apache-2.0
"""What the comparisons share: running fovea, workers for the peers, and how a result is told."""
import atexit
import functools
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]


def add_common_options(parser, rounds=7):
    """rounds: None for a program that has none."""
    binary = os.environ.get("FOVEA", str(ROOT / "build" / "release" / "cli" / "fovea"))
    parser.add_argument("--fovea", default=binary, help="the binary (environment: FOVEA)")
    parser.add_argument("--threads", type=int, default=2)
    if rounds is not None:
        parser.add_argument("--rounds", type=int, default=rounds, help="of which the median is taken")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has the peers")


def environment(threads):
    """Every library that a peer may use gets the same number of threads."""
    limits = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
    pinned = {"MKL_ENABLE_INSTRUCTIONS": "AVX2"} if os.environ.get("ATEN_CPU_CAPABILITY") == "avx2" else {}
    return {**os.environ, **limits, **pinned, "OPENBLAS_NUM_THREADS": "1"}


def processor():
    """The fields of the first processor in /proc/cpuinfo."""
    info = pathlib.Path("/proc/cpuinfo")
    first = info.read_text().split("\n\n")[0] if info.exists() else ""
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in first.splitlines())}


# MKL, PyTorch's library of matrix products, asks this function whether the processor is Intel's. If
# it is not, MKL leaves out its kernels for AVX-512.
UNLOCK = "int mkl_serv_intel_cpu_true(void) { return 1; }"


@functools.cache
def unlocked_mkl():
    """What a process needs in its environment so that MKL takes its fastest kernels; empty where it
    does so anyway."""
    if processor().get("vendor_id") != "AuthenticAMD":
        return {}
    folder = tempfile.mkdtemp()
    source, library = pathlib.Path(folder) / "unlock.c", pathlib.Path(folder) / "unlock.so"
    source.write_text(UNLOCK + "\n")
    atexit.register(shutil.rmtree, folder)
    compiler = os.environ.get("CC", "cc")
    if shutil.which(compiler) is None:
        sys.exit(f"{compiler} is not there: PyTorch at its strongest needs a C compiler (environment: CC)")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    return {"LD_PRELOAD": ":".join(filter(None, [str(library), os.environ.get("LD_PRELOAD")]))}


def pin(threads):
    """What a child does first: stay on as many CPUs as it has threads, the same ones for everybody."""
    return lambda: os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def fovea(options, *arguments):
    """Runs the command with --json; returns the object on its last line."""
    command = [options.fovea, *map(str, arguments), "--json"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8",
                          env=environment(options.threads), preexec_fn=pin(options.threads))
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}:\n{done.stderr}")
    return last_object(done.stdout)


FAR = 100  # nanoseconds from core to core; those that share a cache take about 40


def core_to_core(options):
    """Nanoseconds until a thread of ours sees what another one wrote; 0 if that is not known."""
    if options.threads == 1:
        return 0
    tiny = ("--layers", 1, "--heads", 1, "--width", 16, "--block", 8, "--batch-size", 1, "--vocabulary", 16)
    return fovea(options, "bench", "step", *tiny, "--steps", 1, "--threads", options.threads)["core_to_core_nanoseconds"]


def place_of(before, after):
    """Where the cores were, by their distance before and after."""
    if 0 in (before, after):
        return "cores unknown"
    if (before > FAR) != (after > FAR):
        return "cores moved"
    return "far cores" if after > FAR else "near cores"


class PlacedValues:
    """What was measured, each with where the cores were: hosts of virtual machines move them, and programs
    whose threads exchange data are then faster or slower."""

    def __init__(self, options):
        self.options = options
        self.values = {}  # (name, place) -> list
        self.before = core_to_core(options)

    def add(self, name, value):
        """A value that was measured since the last one was added."""
        after = core_to_core(self.options)
        self.values.setdefault((name, place_of(self.before, after)), []).append(value)
        self.before = after

    def all(self):
        """name -> values, wherever the cores were."""
        found = {}
        for (name, _), values in self.values.items():
            found.setdefault(name, []).extend(values)
        return found

    def at(self, place):
        """The same of one place."""
        return {name: self.values[name, place] for name in self.all() if (name, place) in self.values}


def last_object(output):
    """What a command with --json says on its last line."""
    return json.loads(output.strip().splitlines()[-1])


class Worker:
    """A peer in a process of its own. It first says {"ready": ...} or {"absent": ...}; then each
    line of JSON that it reads is answered by one line of JSON. It sleeps between them."""

    def __init__(self, options, script, *arguments, more_environment=None):
        command = [options.python, str(script), *map(str, arguments)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8",
                                        env={**environment(options.threads), **(more_environment or {})},
                                        preexec_fn=pin(options.threads))
        self.hello = self._read()

    def _read(self):
        line = self.process.stdout.readline()
        if not line:
            return {"absent": f"its process ended with {self.process.wait()}"}
        return json.loads(line)

    def ask(self, **question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        answer = self._read()
        if "absent" in answer:
            sys.exit(f"{' '.join(map(str, self.process.args))}: {answer['absent']}")
        return answer

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def start_torch(options, script, *arguments):
    """The yardsticks: workers of PyTorch as pip installs it, and with MKL's fastest kernels. On an
    Intel processor the two are one. Empty, with a word why, if there is no PyTorch."""
    workers = {"installed": Worker(options, script, *arguments)}
    absent = workers["installed"].hello.get("absent")
    if absent:
        print(f"PyTorch: not measured: {absent}")
        return {}
    if unlocked_mkl():  # of AMD; elsewhere there is nothing to unlock
        workers["unlocked"] = Worker(options, script, *arguments, more_environment=unlocked_mkl())
    return workers


def serve(ready, answer):
    """The worker's side: `answer(**question)` returns a dict."""
    out, sys.stdout = sys.stdout, sys.stderr  # libraries may print; the answers stay clean
    print(json.dumps(ready), file=out, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(**json.loads(line))), file=out, flush=True)


def machine(options):
    """One line: processor, instruction sets, threads, load."""
    fields = processor()
    flags = fields.get("flags", "").split()
    sets = [s for s in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if s in flags]
    pinned = os.environ.get("FOVEA_ISA", "best")
    # One name may stand for several designs: the family tells them apart (AMD: 25 is Zen 4, 26 Zen 5).
    name = f"{fields.get('model name', platform.processor())}, family {fields.get('cpu family', 'unknown')}"
    return (f"{name}; {' '.join(sets)};"
            f" FOVEA_ISA {pinned}; {options.threads} threads of {os.cpu_count()};"
            f" load {os.getloadavg()[0]:.1f}")


@functools.cache
def build():
    """The commit of the sources, with "-dirty" if they were changed since (documents and results aside);
    None outside of a repository."""
    def git(*arguments):
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    if shutil.which("git") is None or git("rev-parse", "HEAD").returncode != 0:
        return None
    unchanged = git("diff", "--quiet", "HEAD", "--", ".", *(f":(exclude){path}" for path in ("bench/results", "docs", "*.md")))
    return git("describe", "--always").stdout.strip() + "-dirty" * (unchanged.returncode != 0)


def keep(path, machine, section, found):
    """Adds `found`, a dict for each name, to a section of the results in a file, which may not be there
    yet; each says of which build it is."""
    results = json.loads(path.read_text()) if path.exists() else {}
    results["machine"] = machine
    results.setdefault(section, {}).update({name: {**one, "build": build()} for name, one in found.items()})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n")


def spread(values):
    """'median (least .. most)'."""
    return f"{statistics.median(values):.4g} ({min(values):.4g} .. {max(values):.4g})"


def need_binary(options):
    if shutil.which(options.fovea) is None:
        sys.exit(f"{options.fovea} is not there: build it (cmake --preset release; cmake --build"
                 " build/release) or name it with --fovea")
