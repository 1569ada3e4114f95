"""One file with all compiled modules of a start: looking for each of a hundred files costs more than reading them.

Made at set-up beside the packages, so it is as read-only inside a task as they are. Each entry carries the source's
time and size; one whose source has changed since is passed over, and Python finds the module as it always does. So a
stale or missing bundle is slower and never wrong. Measured: 25 ms instead of 38 for what `run` and its gate import.

What nobody reads while it runs is left out of the code: docstrings, and annotations of functions. That is a fifth of
the file, which each process of a start has in its memory (docs/decisions/0006). What a plain start does not import is
in a second half, of which each module is read by itself when it is imported (docs/decisions/0032).
"""

import marshal
import os
import posix
import sys

# All of it is read at each start, so what few starts need is left out; it is found as any module is.
SKIPPED = (
    "cli/policy", "cli/events", "cli/group", "policy/document", "policy/entry", "policy/loader", "policy/reading",
    "policy/requests", "policy/diff", "cli/serve", "cli/task", "server", "questions", "doctor", "holds/container",
    "inspect/authority", "inspect/body", "inspect/clean", "inspect/cod", "inspect/grpc", "inspect/http2",
    "inspect/model", "inspect/placeholder", "inspect/scrub", "inspect/secrets", "inspect/strict",
    "inspect/terminate", "cli/watch", "cli/api_client",
    "cli/actions", "cli/doctor", "cli/portal", "cli/token", "cli/settings", "cli/rules", "cli/living", "cli/log",
    "journal/verify", "runtime/ssh_", "runtime/ask",
)  # fmt: skip

# What a plain `run` does not import: later in the file, and read only when it is imported.
LATER = (
    "cli/exec", "cli/launcher", "cli/run_without_gate", "cli/terms", "gate/announced", "gate/answer", "gate/around",
    "gate/cleaned", "gate/ends", "gate/forward", "gate/handshake", "gate/identity", "gate/inner", "gate/inspected",
    "gate/inward", "gate/known_heads", "gate/origin.py", "gate/published", "gate/redial", "gate/request",
    "gate/resolve", "gate/tls_end", "holds/callers", "holds/carve", "holds/file_call", "holds/idmap",
    "holds/landlock_", "holds/own_folder", "holds/pause", "holds/uid", "holds/unix_files", "journal/actions",
    "journal/chain", "journal/contacts", "journal/heads", "journal/readback", "journal/refusals", "journal/segments",
    "journal/sinks", "policy/amend", "policy/dialects", "policy/explain", "policy/harnesses/harness_file",
    "policy/learned", "policy/new_hosts", "policy/positions", "policy/proposal", "policy/suffixes", "policy/together",
    "policy/unused", "policy/written", "runtime/comeback", "runtime/imported_policy", "runtime/leases",
    "runtime/lone_keys", "runtime/model_keys", "runtime/pulse", "runtime/relay", "runtime/screen_modes",
    "runtime/secret_s", "runtime/server_", "runtime/setup", "runtime/sign_ins", "runtime/terminal", "runtime/tool_",
    "state/database", "state/s", "tools/", "wire/body", "wire/conntrack", "wire/headers", "wire/kernel_log",
    "wire/method_fields", "wire/sock", "wire/ssh_agent",
)  # fmt: skip

# A command's docstring is its --help, which a person reads while it runs.
_COMMAND = b"\nimport click\n"


def bundle_path(environment: str) -> str:
    """Return where the bundle of an environment is; its name carries the version whose bytecode it holds."""
    return f"{environment}/tidegate-{sys.implementation.cache_tag}.bundle"


def write_bundle(folder: str, environment: str) -> None:
    """Compile the source below `folder` into the environment's bundle, at once or not at all.

    Raises:
        OSError: when it cannot be written; nothing depends on it.
    """
    source = os.path.join(folder, "src")
    first, later = {}, {}
    for parent, _, names in os.walk(os.path.join(source, "tidegate")):
        for name in sorted(names):
            path = os.path.join(parent, name)
            relative = os.path.relpath(path, source)
            if not name.endswith(".py") or relative.split(os.sep, 1)[-1].startswith(SKIPPED):
                continue
            found = os.stat(path)
            with open(path, "rb") as file:
                text = file.read()
            if _COMMAND in text:
                continue
            code = compile(_bare(text), path, "exec", dont_inherit=True)
            package = name == "__init__.py"
            dotted = relative[: -len("/__init__.py") if package else -len(".py")].replace(os.sep, ".")
            half = later if relative.split(os.sep, 1)[-1].startswith(LATER) else first
            half[dotted] = (relative, package, found.st_mtime_ns, found.st_size), marshal.dumps(code)
    index = {}
    at = 0
    for dotted, (entry, code) in (first | later).items():
        index[dotted] = (*entry, at, at + len(code))
        at += len(code)
    head = marshal.dumps((index, sum(len(code) for _, code in first.values())))
    fresh = bundle_path(environment) + f".{os.getpid()}"
    with open(fresh, "wb") as file:
        file.write(b"".join((len(head).to_bytes(8, "little"), head, *(code for _, code in (first | later).values()))))
    os.replace(fresh, bundle_path(environment))


def _bare(source: bytes) -> object:
    """Parse a module and take out what is for readers and checkers alone. Lines keep their numbers."""
    import ast  # here: a start does not wait for it

    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
            arguments = node.args
            every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
            for one in filter(None, every):
                one.annotation = None
        elif not isinstance(node, (ast.Module, ast.ClassDef)):
            continue
        if ast.get_docstring(node, clean=False) is not None:
            alone = len(node.body) == 1 and not isinstance(node, ast.Module)
            node.body[:1] = [ast.copy_location(ast.Pass(), node.body[0])] if alone else []
    return tree


class Bundle:
    """Finds and loads modules of a bundle: an entry of sys.meta_path (importlib's finder and loader protocols)."""

    def __init__(self, source: str, path: str) -> None:
        """Read the first half of the bundle of the source folder.

        Raises:
            OSError: where there is none. ValueError, EOFError, TypeError: where it is no bundle.
        """
        bundle = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
        try:
            self._file = _which(bundle)
            begin = 8 + int.from_bytes(_exactly(bundle, 8, 0), "little")
            head = _exactly(bundle, min(begin, self._file[2]) - 8, 8)
            self._index, half = marshal.loads(head)  # noqa: S302  our own environment, which no task can write
            if not isinstance(self._index, dict):
                raise ValueError("no bundle")  # noqa: TRY004  as for any other file that is none
            self._codes = memoryview(_exactly(bundle, half, begin))
        finally:
            posix.close(bundle)
        self._begin = begin
        self._path = path
        self._source = source
        self._spec = type(sys.__spec__)

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> object:
        """Return how to load a module whose source is as it was, None for every other."""
        entry = self._index.get(name)
        if entry is None:
            return None
        relative, package, time, size, start, end = entry
        path = f"{self._source}/{relative}"
        try:
            found = posix.stat(path)
            if found.st_mtime_ns != time or found.st_size != size:
                return None
            code = self._codes[start:end] if end <= len(self._codes) else self._later(start, end)
        except (OSError, ValueError):
            return None
        spec = self._spec(name, self, origin=path, loader_state=code, is_package=package)
        if package:
            spec.submodule_search_locations.append(path[: -len("/__init__.py")])
        return spec

    def create_module(self, _spec: object) -> None:
        """Leave making the module to Python."""

    def exec_module(self, module: object) -> None:
        """Run the module's code."""
        spec = module.__spec__
        # Said here: a spec with a location has Python work out where it would cache the module, 20 us for each.
        module.__file__ = spec.origin
        code, spec.loader_state = spec.loader_state, None
        exec(marshal.loads(code), module.__dict__)  # noqa: S102, S302  as importlib does

    def _later(self, start: int, end: int) -> bytes:
        """Read a part of the second half from the file that the index is of; another may lie in its place by now."""
        bundle = posix.open(self._path, posix.O_RDONLY | posix.O_CLOEXEC)
        try:
            if _which(bundle) != self._file:
                raise ValueError("another bundle")
            return _exactly(bundle, end - start, self._begin + start)
        finally:
            posix.close(bundle)


def _which(descriptor: int) -> tuple[int, int, int, int]:
    found = posix.fstat(descriptor)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _exactly(descriptor: int, count: int, at: int) -> bytes:
    data = posix.pread(descriptor, count, at)
    if len(data) != count:
        raise ValueError("the bundle is cut")
    return data
