"""The one table of files and folders that would run outside later (HLD-15): whoever writes them runs there.

Data only. What is listed is read-only inside every hold, whole where it is a folder. A name below a home folder that
is not there cannot be made either (holds/layers.py, `closed`); one below a workspace can, and is named afterwards.
`WHY` and `SOURCES` are what docs/files.md shows. `~` rows are names in a folder of the home; `.config` and
`.local/share` follow XDG_CONFIG_HOME and XDG_DATA_HOME.

What is not in it, because a task must be able to change it: package.json, Makefile, pre-commit's and CI's files, the
code itself. Who runs those afterwards runs what the task wrote.
"""

from __future__ import annotations

# folder in the home, kind, names in it
Group = tuple[str, str, tuple[str, ...]]

# fmt: off
HOME: tuple[Group, ...] = (
    ("", "shells", (
        ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".bash_completion", ".profile",
        ".zshenv", ".zprofile", ".zshrc", ".zlogin", ".zlogout", ".zsh", ".oh-my-zsh", ".kshrc", ".mkshrc", ".cshrc",
        ".tcshrc", ".login", ".logout", ".inputrc", ".shrc", ".xonshrc", ".elvish",
    )),
    ("", "sessions", (
        ".xinitrc", ".xsession", ".xsessionrc", ".xprofile", ".xserverrc", ".Xresources", ".Xdefaults",
        ".pam_environment", ".xbindkeysrc", ".dmrc", ".fluxbox", ".forward", ".procmailrc",
    )),
    ("", "ssh and git", (
        ".ssh", ".gitconfig", ".git", ".git-templates", ".gnupg", ".hgrc", ".rhosts", ".shosts",
    )),
    ("", "editors", (
        ".vimrc", ".gvimrc", ".exrc", ".vim", ".ideavimrc", ".emacs", ".emacs.el", ".emacs.elc", ".emacs.d",
        ".spacemacs", ".spacemacs.d", ".doom.d", ".nanorc", ".vscode", ".vscode-server", ".cursor-server",
    )),
    ("", "debuggers", (
        ".gdbinit", ".gdbearlyinit", ".lldbinit", ".radare2rc",
    )),
    ("", "terminals", (
        ".tmux.conf", ".tmux", ".screenrc", ".wezterm.lua", ".alacritty.toml", ".lesskey", ".less",
    )),
    ("", "languages", (
        ".pythonrc", ".pythonrc.py", ".pystartup", ".pdbrc", ".ipython", ".irbrc", ".pryrc", ".gemrc", ".rspec",
        ".Rprofile", ".Renviron", ".perldb", ".perltidyrc", ".psqlrc", ".sqliterc", ".my.cnf", ".mylogin.cnf",
        ".ghci", ".iex.exs", ".node_repl", ".clisprc", ".sbclrc", ".julia/config", ".octaverc", ".matlab",
    )),
    ("", "tools", (
        ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmrc", ".bunfig.toml", ".pip", ".pydistutils.cfg", ".condarc",
        ".mavenrc", ".makepkg.conf", ".rpmmacros", ".curlrc", ".wgetrc", ".netrc", ".envrc", ".direnvrc", ".envfile",
        ".mise.toml", ".tool-versions", ".docker/cli-plugins", ".docker/config.json", ".kube/config", ".aws/config",
        ".ansible.cfg", ".terraformrc", ".vagrant.d/Vagrantfile", ".bazelrc", ".buckconfig.local",
    )),
    ("", "programs on the PATH", (
        "bin", ".rbenv", ".nodenv", ".asdf", ".nvm", ".volta/bin", ".sdkman", ".jenv", ".n", ".npm-global",
        ".deno/bin", ".bun/bin", "go/bin", ".dotnet/tools", ".rustup/toolchains", ".pixi/bin", ".nix-profile",
        ".krew/bin", ".opencode/bin", ".fzf",
    )),
    ("", "agents", (
        ".claude.json",
    )),
    (".config", "shells", (
        "fish", "zsh", "bash", "powershell", "nushell", "xonsh", "elvish", "starship.toml", "user-dirs.dirs",
    )),
    (".config", "sessions", (
        "autostart", "autostart-scripts", "systemd", "environment.d", "plasma-workspace", "upstart", "mimeapps.list",
        "i3", "sway", "hypr", "river", "niri", "bspwm", "sxhkd", "awesome", "openbox", "qtile", "xmonad", "waybar",
        "polybar", "rofi", "wofi", "dunst", "swaync", "lxsession", "labwc", "pulse", "xdg-terminals.list",
    )),
    (".config", "ssh and git", (
        "git", "gh/config.yml", "glab-cli", "lazygit", "tig", "hg", "jj",
    )),
    (".config", "editors", (
        "nvim", "vim", "emacs", "doom", "helix", "kak", "micro", "nano", "zed", "sublime-text", "Code/User",
        "Code - OSS/User", "VSCodium/User", "Cursor/User", "Windsurf/User", "JetBrains",
    )),
    (".config", "debuggers", (
        "gdb",
    )),
    (".config", "terminals", (
        "tmux", "tmuxinator", "zellij", "kitty", "alacritty", "wezterm", "ghostty", "foot", "terminator", "lesskey",
    )),
    (".config", "languages", (
        "ipython", "python", "pry", "irb", "matplotlib/matplotlibrc",
    )),
    (".config", "tools", (
        "direnv", "mise", "pip", "uv", "pnpm", "containers", "bat", "ranger", "lf", "yazi", "vifm", "nnn", "mpv",
        "htop", "procps", "pacman", "paru", "yay", "home-manager", "nixpkgs", "nix", "chromium-flags.conf",
        "chrome-flags.conf", "electron-flags.conf", "code-flags.conf",
    )),
    (".local/share", "sessions", (
        "applications", "systemd", "dbus-1", "autostart", "gnome-shell", "plasma", "kservices5", "kservicetypes5",
        "kwin", "kio", "cinnamon", "nautilus", "nautilus-python", "nemo", "nemo-python", "thumbnailers", "flatpak",
    )),
    (".local/share", "shells", (
        "fish", "zsh", "bash-completion",
    )),
    (".local/share", "editors", (
        "nvim", "vim", "emacs", "JetBrains", "code-server",
    )),
    (".local/share", "programs on the PATH", (
        "pipx", "uv/tools", "uv/python", "claude", "mise", "fnm", "gh", "jupyter", "python",
    )),
    (".local", "programs on the PATH", (
        "bin", "lib", "lib64", "pipx",
    )),
    (".cargo", "programs on the PATH", (
        "bin", "env", "config", "config.toml",
    )),
    (".gradle", "tools", (
        "init.d", "init.gradle", "init.gradle.kts", "gradle.properties",
    )),
    (".m2", "tools", (
        "settings.xml", "extensions.xml", "toolchains.xml", "settings-security.xml",
    )),
)

# Folders that are written to all the time: a name that is not there yet can be made, and is named afterwards.
OPEN: tuple[Group, ...] = (
    (".local/state", "programs on the PATH", (
        "nix",
    )),
    (".claude", "agents", (
        "settings.json", "settings.local.json", "hooks", "commands", "agents", "skills", "plugins", "local",
        "CLAUDE.md",
    )),
    (".codex", "agents", (
        "config.toml", "hooks.json", "hooks", "prompts", "skills", "rules", "AGENTS.md",
    )),
    (".gemini", "agents", (
        "settings.json", "extensions", "commands", "GEMINI.md",
    )),
    (".cursor", "agents", (
        "mcp.json", "hooks.json", "hooks", "rules", "extensions", "commands",
    )),
)

WORKSPACE: tuple[Group, ...] = (
    ("", "agents", (
        ".mcp.json", ".claude/settings.json", ".claude/settings.local.json", ".claude/hooks", ".codex/config.toml",
        ".codex/hooks.json", ".gemini/settings.json", ".cursor/mcp.json", ".cursor/hooks.json", ".cursor/hooks",
        ".roo/mcp.json", ".kiro/hooks", "opencode.json", ".opencode/plugin",
    )),
    ("", "editors", (
        ".vscode", ".idea", ".fleet", ".zed", ".devcontainer", ".devcontainer.json", ".exrc", ".vimrc", ".lvimrc",
        ".nvim.lua", ".nvimrc", ".dir-locals.el", ".dir-locals-2.el", ".sublime-project",
    )),
    ("", "debuggers", (
        ".gdbinit", ".lldbinit",
    )),
    ("", "tools", (
        ".envrc", ".mise.toml", ".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn/releases", ".yarn/plugins",
    )),
    ("", "tools", (
        ".cargo/config", ".cargo/config.toml", ".bazelrc", ".mvn", ".bunfig.toml",
    )),
)

ZSH = (".zshenv", ".zprofile", ".zshrc", ".zlogin", ".zlogout")  # in ZDOTDIR

# Variables that name one such file.
VARIABLES = (
    "BASH_ENV", "ENV", "INPUTRC", "PYTHONSTARTUP", "GIT_CONFIG_GLOBAL", "NPM_CONFIG_USERCONFIG", "PIP_CONFIG_FILE",
    "KUBECONFIG", "SCREENRC",
)

# kind: why, where that is written
WHY: dict[str, tuple[str, str]] = {
    "shells": ("each shell that starts runs them", "bash(1), zsh(1), fish(1), readline(3)"),
    "sessions": ("run at log-in, by the desktop or by mail", "XDG autostart, systemd.unit(5), environment.d(5)"),
    "ssh and git": (
        "name keys, hooks and programs that ssh, git and gpg run", "ssh_config(5), git-config(1), githooks(5)",
    ),
    "editors": ("loaded when the editor starts or opens the folder", "vim(1), emacs(1); tasks and settings of VS Code"),
    "debuggers": ("commands that a debugger runs at its start", "gdb(1), lldb(1)"),
    "terminals": ("name what a terminal, multiplexer or pager starts", "tmux(1), screen(1), lesskey(1)"),
    "languages": ("run when an interpreter starts", "python(1), irb(1), R's Startup, psql(1)"),
    "tools": ("name programs, plug-ins, scripts or registries to use", "npmrc(5), direnv(1), pip.conf, Cargo's config"),
    "programs on the PATH": ("what a name typed later runs, and what that loads", "environ(7), Python's site"),
    "agents": ("hooks, plug-ins, servers and rights of coding agents", "settings of Claude Code, Codex, Gemini"),
}
# fmt: on
