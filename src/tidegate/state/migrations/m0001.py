"""The first schema. A folder is the bytes of a path; device and inode are text, which has room for all."""

from __future__ import annotations

_FOLDER = "folder BLOB NOT NULL, dev TEXT NOT NULL, ino TEXT NOT NULL"

STATEMENTS = (
    f"""CREATE TABLE tasks (
        id TEXT PRIMARY KEY, {_FOLDER}, created_at REAL NOT NULL, policy BLOB NOT NULL, name TEXT NOT NULL,
        command TEXT NOT NULL, phase TEXT NOT NULL, wait_seconds REAL NOT NULL, hold TEXT NOT NULL,
        network TEXT NOT NULL, "by" TEXT NOT NULL, owner_pid INTEGER NOT NULL, ended_at REAL, outcome TEXT NOT NULL
    ) STRICT""",
    "CREATE INDEX tasks_by_age ON tasks (created_at, id)",
    f"""CREATE TABLE answers (
        question INTEGER PRIMARY KEY, task TEXT NOT NULL, {_FOLDER}, host TEXT NOT NULL, port INTEGER NOT NULL,
        phase TEXT NOT NULL, answer TEXT NOT NULL, until REAL, connections INTEGER, bytes INTEGER,
        "by" TEXT NOT NULL, at REAL NOT NULL
    ) STRICT""",
    "CREATE INDEX answers_of_task ON answers (task, question)",
    """CREATE TABLE grants (
        task TEXT NOT NULL, phase TEXT NOT NULL, host TEXT NOT NULL, port INTEGER NOT NULL, question INTEGER NOT NULL,
        kind TEXT NOT NULL, until REAL, connections INTEGER, bytes INTEGER, "by" TEXT NOT NULL,
        PRIMARY KEY (task, phase, host, port)
    ) STRICT""",
    f"""CREATE TABLE rules (
        id INTEGER PRIMARY KEY AUTOINCREMENT, {_FOLDER}, host TEXT NOT NULL, port INTEGER NOT NULL,
        phase TEXT NOT NULL, at REAL NOT NULL, "by" TEXT NOT NULL, question INTEGER NOT NULL,
        UNIQUE (folder, dev, ino, phase, host, port)
    ) STRICT""",
    f"""CREATE TABLE trust (
        {_FOLDER}, sha256 TEXT NOT NULL, text BLOB NOT NULL, at REAL NOT NULL, "by" TEXT NOT NULL,
        PRIMARY KEY (folder, dev, ino)
    ) STRICT""",
    """CREATE TABLE tokens (
        id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL,
        role TEXT NOT NULL CHECK (role IN ('owner', 'viewer')), hash BLOB NOT NULL UNIQUE,
        created REAL NOT NULL, last_used REAL, expires REAL, revoked REAL
    ) STRICT""",
    "CREATE UNIQUE INDEX tokens_in_force ON tokens (name) WHERE revoked IS NULL",
    "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT",
    "CREATE TABLE numbers (name TEXT PRIMARY KEY, next INTEGER NOT NULL) STRICT",
)
