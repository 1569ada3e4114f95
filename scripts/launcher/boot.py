"""The first Python of every start: `python -I -S boot.py FOLDER ENVIRONMENT ARGS...`.

It puts src/ and the environment's packages on the path (nothing is read from the second until something is imported
from it, which `run` does not) and hands over to the command line. Imports here are the C modules that Python has loaded
anyway. It ends as a program in C would on Ctrl-C and on a closed pipe: by the signal, without a traceback.
"""

import _signal
import gc
import posix
import sys

# Ctrl-C during a start ends it as it ends a program in C: nobody is there yet who could say anything better.
if _signal.getsignal(_signal.SIGINT) is not _signal.SIG_IGN:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

# What a start allocates is needed to the end: looking for garbage in it costs 5 to 9 ms. Those who stay turn it on.
gc.disable()

folder, environment = sys.argv[1:3]
arguments = sys.argv[3:]
sys.argv[:] = [folder + "/tidegate", *arguments]
version = sys.version_info
packages = f"{environment}/lib/python{version[0]}.{version[1]}/site-packages"
try:
    posix.stat(packages)
except OSError:  # the Python under the environment was replaced by another version
    prepare = folder + "/scripts/launcher/prepare.py"
    posix.execv(sys.executable, [sys.executable, "-I", prepare, folder, "run", *arguments])
if environment != folder + "/.venv":
    sys.pycache_prefix = environment + "/pycache"
sys.path.insert(0, folder + "/src")
sys.path.append(packages)
try:
    sys.path.insert(0, folder + "/scripts/launcher")
    from bundle import Bundle, bundle_path

    sys.meta_path.insert(0, Bundle(folder + "/src", bundle_path(environment)))
except (ImportError, OSError, ValueError, EOFError, TypeError):
    pass  # the modules are found one by one, as ever
finally:
    del sys.path[0]


def die_by(name: str) -> None:
    """End by a signal, so that whoever started us sees it."""
    number = getattr(_signal, name)
    _signal.signal(number, _signal.SIG_DFL)
    posix.kill(posix.getpid(), number)


try:
    from tidegate.cli.main import main

    status = main(arguments)
    if sys.stdout is not None:
        sys.stdout.flush()
except BrokenPipeError:
    die_by("SIGPIPE")
except KeyboardInterrupt:
    die_by("SIGINT")
except OSError as error:  # the flush, on a full disk; other errors are main's own
    sys.stdout = None
    sys.stderr.write(f"tidegate: cannot write the output: {error.strerror}\n")
    status = 74  # EX_IOERR of sysexits.h
try:  # noqa: SIM105  contextlib costs 5 ms
    sys.stderr.flush()
except (OSError, AttributeError):
    pass  # nobody reads it
# Taking the interpreter apart costs a few milliseconds and frees what the kernel frees anyway.
posix._exit(status)  # noqa: SLF001  documented as os._exit
