"""Files that would run outside later, tried from inside real runs: each hold, as root and as a user (HLD-15).

`./tidegate run` in a home folder with a bit of everything. The program inside tries each row of a table and says the
errno that it ended with; a neighbour must pass. Afterwards the home folder is looked at from outside.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.holds import held
from tests.product import PYTHON, Product
from tidegate.runtime.caches import CACHES

if TYPE_CHECKING:
    from collections.abc import Iterator

INSIDE = r"""
import ctypes, errno, json, os, sys
h, w = os.environ['HOME'], os.getcwd()
libc = ctypes.CDLL(None, use_errno=True)
def write(path, mode='a'):
    with open(path, mode) as file:
        file.write('evil\n')
def check(result):
    if result:
        raise OSError(ctypes.get_errno(), '')
def exchange(one, two):
    check(libc.renameat2(-100, one.encode(), -100, two.encode(), 2))
def fresh():
    path = w + '/fresh-%d' % len(os.listdir(w))
    write(path)
    return path
def at(folder, name):
    fd = os.open(folder, os.O_RDONLY)
    os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=fd))
def apart(act):
    pid = os.fork()
    if pid == 0:
        code = 0
        try:
            act()
        except OSError as error:
            code = error.errno
        os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code:
        raise OSError(code, '')
def own_mounts(act):
    def inside():
        uid, gid = os.getuid(), os.getgid()
        check(libc.unshare(0x10020000))
        for name, text in (('setgroups', 'deny'), ('uid_map', f'{uid} {uid} 1'), ('gid_map', f'{gid} {gid} 1')):
            write_plain('/proc/self/' + name, text)
        act()
    apart(inside)
def write_plain(path, text):
    fd = os.open(path, os.O_WRONLY)
    os.write(fd, text.encode())
def remount(path):
    check(libc.mount(None, path.encode(), None, 0x1020, None))
def rows():
"""

ENDED = """
    return locals()
found = {}
for name, row in rows().items():
    try:
        row()
        found[name] = 'passed'
    except OSError as error:
        found[name] = errno.errorcode[error.errno]
print(json.dumps(found))
"""

MADE = (".cargo", ".cache", ".npm", ".m2", "go", ".bun", ".yarn")  # for tools that are there: runtime/caches.py

# name, what is tried, what it may end with; the first that is listed is the usual one
ESCAPES = (
    ("write_bashrc", "write(h + '/.bashrc')", "EROFS"),
    ("truncate_bashrc", "os.truncate(h + '/.bashrc', 0)", "EROFS"),
    ("chmod_bashrc", "os.chmod(h + '/.bashrc', 0o777)", "EROFS"),
    ("unlink_bashrc", "os.unlink(h + '/.bashrc')", "EROFS"),
    ("replace_bashrc", "os.replace(fresh(), h + '/.bashrc')", "EXDEV EROFS"),
    ("exchange_bashrc", "exchange(fresh(), h + '/.bashrc')", "EXDEV EROFS"),
    ("link_of_bashrc", "os.link(h + '/.bashrc', w + '/same')", "EXDEV"),
    ("link_as_profile", "os.link(h + '/notes', h + '/.zlogin')", "EXDEV EROFS"),
    ("new_profile", "write(h + '/.bash_profile')", "EROFS"),
    ("new_link_profile", "os.symlink(w + '/x', h + '/.zprofile')", "EROFS"),
    ("new_bin", "os.mkdir(h + '/bin')", "EROFS"),
    ("new_by_descriptor", "at(h, '.profile')", "EROFS"),
    ("new_by_proc", "write('/proc/self/root' + h + '/.profile')", "EROFS"),
    ("through_a_link", "write(h + '/.zshrc')", "EROFS"),
    ("what_the_link_leads_to", "write(h + '/dotfiles/zshrc')", "EROFS"),
    ("unlink_what_it_leads_to", "os.unlink(h + '/dotfiles/zshrc')", "EBUSY EROFS"),
    ("replace_what_it_leads_to", "os.replace(h + '/dotfiles/other', h + '/dotfiles/zshrc')", "EBUSY EROFS"),
    ("move_what_it_leads_to", "os.rename(h + '/dotfiles', h + '/projects/d')", "EXDEV EBUSY EROFS"),
    ("replace_the_link", "os.replace(fresh(), h + '/.zshrc')", "EXDEV EROFS"),
    ("dangling_link", "write(h + '/.zshenv')", "EROFS"),
    ("move_config", "os.rename(h + '/.config', h + '/old')", "EBUSY EROFS"),
    ("swap_config", "exchange(h + '/.config', h + '/projects')", "EBUSY EXDEV EROFS"),
    ("new_in_config", "os.mkdir(h + '/.config/fish')", "EROFS"),
    ("move_into_its_place", "os.rename(h + '/.config/app', h + '/.config/fish')", "EXDEV EBUSY EROFS"),
    ("git_config_of_the_user", "write(h + '/.config/git/config')", "EROFS"),
    ("authorized_keys", "write(h + '/.ssh/authorized_keys')", "EROFS"),
    ("user_unit", "os.makedirs(h + '/.config/systemd/user')", "EROFS"),
    ("user_unit_of_data", "os.makedirs(h + '/.local/share/systemd/user')", "EROFS"),
    ("autostart", "os.mkdir(h + '/.config/autostart')", "EROFS"),
    ("local_bin", "write(h + '/.local/bin/tool')", "EROFS"),
    ("python_start", "os.makedirs(h + '/.local/lib/python3/site-packages')", "EROFS"),
    ("claude_settings", "write(h + '/.claude/settings.json')", "EROFS"),
    ("hook", "write(w + '/.git/hooks/pre-commit')", "EROFS"),
    ("hooks_moved", "os.rename(w + '/.git/hooks', w + '/.git/h')", "EBUSY"),
    ("git_config", "write(w + '/.git/config')", "EROFS"),
    ("git_config_replaced", "os.replace(fresh(), w + '/.git/config')", "EBUSY"),
    ("git_config_exchanged", "exchange(fresh(), w + '/.git/config')", "EBUSY"),
    ("git_moved", "os.rename(w + '/.git', w + '/g')", "EBUSY"),
    ("git_exchanged", "os.mkdir(w + '/g2'); exchange(w + '/.git', w + '/g2')", "EBUSY"),
    ("submodule_hook", "write(w + '/.git/modules/m/hooks/post-checkout')", "EROFS"),
    ("submodules_moved", "os.rename(w + '/.git/modules', w + '/.git/m2')", "EBUSY"),
    ("editor_tasks", "write(w + '/.vscode/tasks.json')", "EROFS"),
    ("new_editor_tasks", "write(w + '/.vscode/launch.json')", "EROFS"),
    ("editor_moved", "os.rename(w + '/.vscode', w + '/v')", "EBUSY"),
    ("workspace_moved", "os.rename(w, h + '/projects/w')", "EBUSY EXDEV EROFS"),
    ("writable_again", "own_mounts(lambda: remount(h))", "EPERM"),
    ("taken_away", "own_mounts(lambda: check(libc.umount2(h.encode(), 0)))", "EINVAL EPERM"),
    ("looked_below", "own_mounts(lambda: check(libc.mount(h.encode(), b'/tmp', None, 0x1000, None)))", "EINVAL EPERM"),
)
NEIGHBOURS = (
    ("notes", "write(h + '/notes')"),
    ("in_a_folder_at_home", "write(h + '/projects/other/x')"),
    ("beside_what_a_link_leads_to", "write(h + '/dotfiles/other')"),
    ("of_a_program", "write(h + '/.config/app/state')"),
    ("renaming_there", "os.replace(h + '/.config/app/state', h + '/.config/app/state2')"),
)
ALWAYS = (
    ("of_an_agent", "write(h + '/.claude/history')"),
    ("new_in_the_workspace", "write(w + '/new')"),
    ("renamed_in_the_workspace", "os.rename(w + '/new', w + '/new2')"),
    ("makefile", "write(w + '/Makefile')"),
    ("package", "os.replace(fresh(), w + '/package.json')"),
    ("git_index", "write(w + '/.git/index.lock'); os.rename(w + '/.git/index.lock', w + '/.git/index')"),
    ("git_ref", "os.makedirs(w + '/.git/refs/heads/a'); write(w + '/.git/refs/heads/a/b')"),
    ("cache", "write(h + '/.cache/x')"),
    ("temporary", "write('/tmp/x')"),
    ("reading", "open(h + '/.bashrc').read()"),
)


# Folders of caches, which are made at a start where their tools are.
MADE = {name.partition("/")[0] for name, _ in CACHES} - {".local", ".claude"}


def program(rows: tuple[tuple[str, ...], ...]) -> str:
    """The program inside, with these rows."""
    functions = "".join(f"    def {row[0]}():\n        {row[1]}\n" for row in rows)
    return INSIDE + functions + ENDED


def git(home: Path, *words: str) -> None:
    """Run git for a user who has no configuration yet."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home / "none"), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *words], check=True, capture_output=True, env=environment)


def furnish(product: Product) -> None:
    """Put a bit of everything into the home folder."""
    home, work = product.home, product.folder
    git(home, "init", "-q", str(work))
    git(home, "init", "-q", "--bare", str(work / ".git/modules/m"))
    for name in (".ssh", ".config/git", ".config/app", ".local/share", ".local/bin", "dotfiles", "projects/other",
                 ".claude", "project/.vscode"):  # fmt: skip
        (home / name).mkdir(parents=True, exist_ok=True)
    for name in (".bashrc", "notes", "dotfiles/zshrc", "dotfiles/other", ".config/git/config", ".claude/settings.json",
                 "project/.vscode/tasks.json", "project/Makefile", "project/package.json"):  # fmt: skip
        (home / name).write_text("")
    (home / ".zshrc").symlink_to("dotfiles/zshrc")
    (home / ".zshenv").symlink_to("dotfiles/zshenv")
    if product.user:
        subprocess.run(["chown", "-hR", "12345:12345", str(home)], check=True)


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder outside /tmp, where homes are; and one that an ordinary user may pass."""
    path = tempfile.mkdtemp(prefix="tidegate-files-", dir="/var/tmp")
    os.chmod(path, 0o755)
    yield Path(path)
    shutil.rmtree(path)


def protected(home: Path) -> dict[str, Any]:
    """What must be the same afterwards."""
    found: dict[str, Any] = {name: sorted(os.listdir(home / name)) for name in (".ssh", ".config/git", ".local/bin")}
    for name in (".bashrc", "dotfiles/zshrc", ".config/git/config", "project/.git/config", ".claude/settings.json",
                 "project/.vscode/tasks.json"):  # fmt: skip
        found[name] = ((home / name).read_text(), (home / name).stat().st_mode)
    found["home"] = sorted(name for name in os.listdir(home) if name not in MADE)
    found["config"] = sorted(name for name in os.listdir(home / ".config") if name != "tidegate")
    found["links"] = [os.readlink(home / name) for name in (".zshrc", ".zshenv")]
    found["hooks"] = sorted(os.listdir(home / "project/.git/hooks"))
    return found


def tried(product: Product, rows: tuple[tuple[str, ...], ...], *options: str) -> dict[str, str]:
    """What each row ended with inside."""
    done = product.run("-q", *options, "--", PYTHON, "-I", "-c", program(rows))
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("where", ["/tmp", "/var/tmp"])
@pytest.mark.parametrize("hold", held.BY_MOUNTS)
@pytest.mark.parametrize("user", held.USERS)
def test_what_would_run_later_cannot_be_changed(user: str, hold: str, where: str, base: Path, tmp_path: Path) -> None:
    """Written, replaced, made, linked, moved or uncovered: each way ends with its errno; neighbours pass (HLD-15)."""
    product = Product(base if where == "/var/tmp" else tmp_path, user=user == "ordinary")
    furnish(product)
    before = protected(product.home)
    found = tried(product, (*ESCAPES, *NEIGHBOURS, *ALWAYS), "--files", "normal", "--hold", hold)
    wrong = {name: found[name] for name, _, expected in ESCAPES if found[name] not in expected.split()}
    assert not wrong
    assert {name: found[name] for name, _ in (*NEIGHBOURS, *ALWAYS) if found[name] != "passed"} == {}
    assert protected(product.home) == before


@pytest.mark.parametrize("hold", held.BY_MOUNTS)
@pytest.mark.parametrize("user", held.USERS)
def test_strict_leaves_the_workspace_temporary_folders_and_caches(user: str, hold: str, tmp_path: Path) -> None:
    """Nothing else can be written, by any name; what is shared can (HLD-15)."""
    product = Product(tmp_path, user=user == "ordinary")
    furnish(product)
    before = protected(product.home)
    more = (
        ("machine", "write('/var/tmp/../lib/tidegate-test')"),
        ("etc", "write('/etc/tidegate-test')"),
        ("bin", "write('/usr/local/bin/tidegate-test')"),
    )
    temporary = (
        "machines_temporary",
        "write('/var/tmp/tidegate-%d' % os.getpid()); os.unlink('/var/tmp/tidegate-%d' % os.getpid())",
    )
    share = str(product.home / "projects")
    options = ("--files", "strict", "--hold", hold, "--share", share)
    shared, *closed = sorted(NEIGHBOURS, key=lambda row: row[0] != "in_a_folder_at_home")
    found = tried(product, (*ESCAPES, *closed, *more, *ALWAYS, temporary, shared), *options)
    wrong = {name: found[name] for name, _, expected in ESCAPES if found[name] not in expected.split()}
    assert not wrong
    assert {found[name] for name, _ in closed if name != "renaming_there"} == {"EROFS"}
    assert {found[name] for name, _ in more} == {"EROFS"}
    assert {name: found[name] for name, _ in (*ALWAYS, temporary, shared) if found[name] != "passed"} == {}
    assert protected(product.home) == before


@pytest.mark.parametrize("user", held.USERS)
def test_strict_is_the_default_for_root_alone(user: str, tmp_path: Path) -> None:
    """Root could write what the machine runs later; an ordinary user keeps its home. Both are chosen by name too."""
    product = Product(tmp_path, user=user == "ordinary")
    furnish(product)
    rows = (("notes", "write(h + '/notes')"),)
    assert tried(product, rows) == {"notes": "EROFS" if user == "root" else "passed"}
    assert tried(product, rows, "--files", "strict") == {"notes": "EROFS"}
    assert tried(product, rows, "--files", "normal") == {"notes": "passed"}
    policy = product.folder / "p.yaml"
    policy.write_text("files: strict\n")
    assert tried(product, rows, "--policy", "p.yaml") == {"notes": "EROFS"}
    assert tried(product, rows, "--policy", "p.yaml", "--files", "normal") == {"notes": "passed"}


@pytest.mark.parametrize("user", held.USERS)
def test_a_share_opens_what_it_names(user: str, tmp_path: Path) -> None:
    """`--share ~/.config/git` is a word for that; ~ itself opens new names, and not what is protected (HLD-14)."""
    product = Product(tmp_path, user=user == "ordinary")
    furnish(product)
    home = str(product.home)
    rows = (
        ("git", "write(h + '/.config/git/ignore')"),
        ("new", "write(h + '/new')"),
        ("rc", "write(h + '/.bashrc')"),
    )
    closed = {"git": "EROFS", "new": "EROFS", "rc": "EROFS"}
    assert tried(product, rows, "--files", "normal") == closed
    assert tried(product, rows, "--files", "normal", "--share", home + "/.config/git") == closed | {"git": "passed"}
    assert tried(product, rows, "--files", "normal", "--share", home) == closed | {"new": "passed"}
    os.unlink(home + "/new")
    assert tried(product, rows, "--files", "normal", "--share", home + "/.config/git:ro") == closed


@pytest.mark.parametrize("files", ["normal", "strict"])
@pytest.mark.parametrize("user", held.USERS)
def test_an_agent_keeps_its_state(user: str, files: str, tmp_path: Path) -> None:
    """Saved as Claude Code does, by renaming, it is there the next time; ~/.claude.json cannot be changed (HLD-15)."""
    product = Product(tmp_path, user=user == "ordinary")
    furnish(product)
    outside = product.home / ".claude.json"
    outside.write_text("outside\n")
    if product.user:
        os.chown(outside, 12345, 12345)
    state = "s = os.environ['CLAUDE_CONFIG_DIR'] + '/.claude.json'"
    save = f"{state}; write(s + '.tmp', 'w'); os.rename(s + '.tmp', s)"
    for found in ("outside", "evil"):
        rows = (
            ("outside", "write(h + '/.claude.json')"),
            ("found", f"{state}; assert open(s).read() == '{found}\\n'"),
            ("save", save),
        )
        assert tried(product, rows, "--files", files) == {"outside": "EROFS", "found": "passed", "save": "passed"}
    assert outside.read_text() == "outside\n"
    assert (product.home / ".claude/.claude.json").read_text() == "evil\n"


@pytest.mark.parametrize("user", held.USERS)
def test_what_is_new_and_may_run_later_is_named(user: str, tmp_path: Path) -> None:
    """What cannot be kept from a workspace is said afterwards, once it is there; other new files are not (HLD-15)."""
    product = Product(tmp_path, user=user == "ordinary")
    furnish(product)
    done = product.run("--", "sh", "-c", "touch .envrc other; echo /x >.git/commondir")
    folder = os.path.realpath(product.folder)
    assert done.stderr == f"tidegate: note: new, and may run later: {folder}/.git/commondir, {folder}/.envrc\n"
    assert product.run("-q", "--", "touch", ".exrc").stderr == ""
    (product.folder / ".git/commondir").unlink()
    assert product.run("--", "touch", "again").stderr == ""


# name, where (below the workspace), what a first run does, what a second one tries, what must stay as it was
TWO_RUNS = (
    ("modes_of_an_agents_folder", "", "chmod 300 ~/.claude", "chmod 700 ~/.claude; echo e >~/.claude/settings.json",
     "~/.claude/settings.json"),
    ("modes_of_the_repository", "", "chmod 0 .git", "chmod 700 .git; echo e >.git/hooks/pre-commit", ".git/hooks"),
    ("modes_of_submodules", "", "chmod 300 .git/modules",
     "chmod 700 .git/modules; echo e >.git/modules/m/hooks/post-checkout", ".git/modules/m/hooks"),
    ("modes_of_a_folder", "", "chmod 0 .cargo", "chmod 700 .cargo; echo e >.cargo/config.toml", ".cargo/config.toml"),
    ("a_common_folder", "", "mkdir f; echo ../f >.git/commondir",
     "rm .git/commondir; echo e >.git/hooks/pre-commit; echo e >.git/config", ".git/hooks"),
    ("a_common_folder_at_home", "", "echo $HOME/.ssh >.git/commondir", "true", "~/.ssh"),
    ("a_submodule_without_head", "", "rm .git/modules/m/HEAD", "echo e >.git/modules/m/hooks/post-checkout",
     ".git/modules/m/hooks"),
    ("many_names", "", "cd .git/modules; for i in $(seq 300); do mkdir !$i; done",
     "echo e >.git/modules/m/hooks/post-checkout", ".git/modules/m/hooks"),
    ("a_repository_in_between", "sub", "mkdir .git", "echo e >../.git/hooks/pre-commit", ".git/hooks"),
    ("modes_of_the_home", "", "chmod 300 ~", "chmod 700 ~; echo e >~/.bashrc", "~/.bashrc"),
    ("a_cache_that_is_a_link", "", "rm -rf ~/.npm; ln -s .ssh ~/.npm", "echo e >~/.npm/authorized_keys", "~/.ssh"),
)  # fmt: skip


def shown(product: Product, name: str) -> Any:
    """What is in a file or the names in a folder, `~/` being the home folder."""
    path = product.home / name[2:] if name.startswith("~/") else product.folder / name
    return sorted(os.listdir(path)) if path.is_dir() else path.read_text()


@pytest.mark.parametrize("row", TWO_RUNS, ids=[row[0] for row in TWO_RUNS])
@pytest.mark.parametrize("user", held.USERS)
def test_what_one_run_leaves_does_not_open_the_next(user: str, row: tuple[str, ...], base: Path) -> None:
    """Modes, links and names that a task may change make no later run look elsewhere (HLD-15)."""
    product = Product(base, user=user == "ordinary")
    for name in (".cargo", "sub"):
        (product.folder / name).mkdir()
    (product.folder / ".cargo/config.toml").write_text("")
    furnish(product)
    _, below, first, second, kept = row
    before = shown(product, kept)
    shares = ("--share", str(product.home)) if "home" in row[0] or "link" in row[0] else ()
    folder = product.folder / below
    options = ("-q", "--files", "normal", "--no-network")
    assert product.run(*options, *shares, "--", "sh", "-c", f"set -e; {first}", cwd=folder).returncode == 0
    product.run(*options, "--", "sh", "-c", second, cwd=folder)
    for opened in (product.home, product.home / ".claude", *map(product.folder.joinpath, (".cargo", ".git"))):
        opened.chmod(0o755)
    (product.folder / ".git/modules").chmod(0o755)
    assert shown(product, kept) == before
    assert product.run(*options, "--", "touch", "neighbour", cwd=folder).returncode == 0


@pytest.mark.parametrize("user", held.USERS)
def test_a_cache_that_becomes_a_link_meanwhile_opens_nothing(user: str, base: Path) -> None:
    """The set-up command leads ~/.yarn/berry to ~/.ssh, and the next hold does not follow (HLD-15)."""
    product = Product(base, user=user == "ordinary")
    (product.home / ".yarn/berry").mkdir(parents=True)
    (product.home / "policy.yaml").write_text(
        "files: normal\nsetup: 'rmdir ~/.yarn/berry; ln -s ../.ssh ~/.yarn/berry'\n"
    )
    furnish(product)
    done = product.run(
        "-q", "--policy", str(product.home / "policy.yaml"), "--", "sh", "-c", "touch ~/.cache/x; touch ~/.yarn/berry/x"
    )
    assert "Read-only file system" in done.stderr
    assert os.readlink(product.home / ".yarn/berry") == "../.ssh"
    assert os.listdir(product.home / ".ssh") == []
    assert (product.home / ".cache/x").exists()


@pytest.mark.parametrize("goal", ["loop", "x" * 300])
@pytest.mark.parametrize("user", held.USERS)
def test_a_link_that_leads_nowhere_stops_no_start(user: str, goal: str, base: Path) -> None:
    """A loop, or a goal longer than names can be, left in the place of a protected file (HLD-15)."""
    product = Product(base, user=user == "ordinary")
    furnish(product)
    (product.folder / "loop").symlink_to(goal)
    (product.folder / ".envrc").symlink_to(goal)
    assert tried(product, (("new", "write(w + '/new')"), ("it", "os.unlink(w + '/.envrc')"))) == {
        "new": "passed",
        "it": "EBUSY",
    }


@pytest.mark.parametrize("user", held.USERS)
def test_links_into_the_workspace_are_named(user: str, base: Path) -> None:
    """~/.config, or the goal of ~/.zprofile, in a workspace: what is new there is said, as in the table (HLD-15)."""
    product = Product(base, user=user == "ordinary")
    (product.folder / "cfg/app").mkdir(parents=True)
    (product.home / ".config").symlink_to("project/cfg")
    (product.home / ".zprofile").symlink_to("project/zp")
    furnish(product)
    done = product.run("--", "sh", "-c", "mkdir cfg/fish cfg/other; touch zp")
    home = os.path.realpath(product.home)
    assert done.stderr == f"tidegate: note: new, and may run later: {home}/project/zp, {home}/.config/fish\n"


@pytest.mark.parametrize("user", held.USERS)
def test_what_somebody_outside_replaced_is_named(user: str, base: Path) -> None:
    """`git config` outside puts a new file in the place of .git/config, which takes the protection away (HLD-15)."""
    product = Product(base, user=user == "ordinary")
    furnish(product)
    running = product.start("--no-network", "--", "sh", "-c", "echo up; read x", stdin=subprocess.PIPE)
    assert running.stdout is not None
    assert running.stdout.readline() == "up\n"
    config = product.folder / ".git/config"
    git(product.home, "-C", str(product.folder), "-c", "safe.directory=*", "config", "a.b", "c")
    error = running.communicate("\n", timeout=120)[1]
    assert error == f"tidegate: note: changed meanwhile, and may run later: {os.path.realpath(config)}\n"
    if product.user:
        os.chown(config, 12345, 12345)
    assert product.run("--no-network", "--", "true").stderr == ""


def test_the_home_of_the_password_file_counts_too(base: Path) -> None:
    """HOME may be unset or another's; a log-in shell reads the files of the password file's home (HLD-15)."""
    product = Product(base, user=False)
    furnish(product)
    script = "import os, pwd; os.mkdir(pwd.getpwuid(os.getuid()).pw_dir + '/tidegate-test-new')"
    for environment in ({"PATH": os.environ["PATH"]}, product.environment):
        done = product.run("--files", "normal", "--no-network", "--", PYTHON, "-I", "-c", script, env=environment)
        assert "Read-only file system" in done.stderr


@pytest.mark.parametrize("user", held.USERS)
def test_git_goes_on_working(user: str, tmp_path: Path) -> None:
    """Commit, branch, rebase, worktrees, fetch and clone inside; what writes .git/config fails and says so (HLD-15)."""
    product = Product(tmp_path, user=user == "ordinary")
    furnish(product)
    script = (
        "set -e; export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t.test GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t.test;"
        "rm -f .git/index; git add Makefile; git commit -qm one; git branch other; git checkout -q other;"
        "echo x >y; git add y; git commit -qm two; git checkout -q -; echo z >z; git add z; git commit -qm three;"
        "git rebase -q other; git worktree add -q wt -b third; git stash -q || true; git gc -q;"
        "git clone -q . clone; git -C clone config a.b c; git fetch -q ./clone; git tag t; git log --oneline | wc -l;"
        "git config a.b c || true; git remote add o /x || true; git remote"
    )
    done = product.run("-q", "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "3\n"
    assert "could not write config file .git/config: Device or resource busy" in done.stderr


def test_a_file_that_is_saved_by_renaming_stops_no_start(base: Path) -> None:
    """A shell that saves its history, say, while the view is built; each start goes well (HLD-7)."""
    product = Product(base, user=True)
    furnish(product)
    saves = (
        "import os, sys\nos.chdir(sys.argv[1])\nwhile True:\n for n in range(40):\n"
        "  open(f'.n{n}', 'w').close(); os.rename(f'.n{n}', f'.history{n}')\n"
    )
    saving = subprocess.Popen([PYTHON, "-I", "-c", saves, str(product.home)])
    try:
        for _ in range(12):
            done = product.run("-q", "--files", "normal", "--no-network", "--", "true")
            assert (done.returncode, done.stderr) == (0, "")
    finally:
        saving.kill()
        saving.wait()


def test_two_tasks_at_once_cannot_lead_one_another_astray(base: Path) -> None:
    """One swaps the folders above the other's workspace for links while that starts: it starts right or not at all."""
    product = Product(base, user=True)
    furnish(product)
    inner = product.home / "projects/other/deep"
    inner.mkdir()
    if product.user:
        os.chown(inner, 12345, 12345)
    swap = (
        "import os, sys\n"
        "p = os.environ['HOME'] + '/projects/'\n"
        "print('swapping', flush=True)\n"
        "while True:\n"
        " os.rename(p + 'other', p + 'aside'); os.symlink(os.environ['HOME'] + '/.ssh', p + 'other')\n"
        " os.unlink(p + 'other'); os.rename(p + 'aside', p + 'other')\n"
    )
    other = product.start("-q", "--files", "normal", "--", PYTHON, "-I", "-c", swap)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "swapping\n"
        ran = 0
        for _ in range(12):
            try:
                done = product.run(
                    "-q", "--files", "strict", "--no-network", "--", "sh", "-c", "pwd -P; touch x", cwd=inner
                )
            except FileNotFoundError:
                continue  # it was not there just then
            ran += done.returncode == 0
            assert done.returncode in (0, 1, 78), done.stderr
        assert os.listdir(product.home / ".ssh") == []
    finally:
        other.kill()
        other.communicate()
