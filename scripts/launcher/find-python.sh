# Sets $python to a Python of 3.11 or newer with its library, or says which is missing and exits 78.
# Sourced by tidegate and scripts/setup.

python=
seen=
advice="apt install python3 python3-venv"
for candidate in python3 python3.14 python3.13 python3.12 python3.11 /usr/bin/python3 /usr/local/bin/python3; do
  version=$("$candidate" -I -S -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null </dev/null)
  [ -n "$version" ] || continue
  if "$candidate" -I -S -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 </dev/null; then
    if "$candidate" -I -c 'import compileall, hashlib, subprocess, tempfile, venv' >/dev/null 2>&1 </dev/null; then
      python=$candidate
      break
    fi
    [ -n "$seen" ] || seen="; $candidate is $version, but its standard library is not all there"
  elif [ -z "$seen" ]; then
    seen="; $candidate is $version"
    advice="apt install python3.11 python3.11-venv"
  fi
done
if [ -z "$python" ]; then
  echo "tidegate: needs Python 3.11 or newer$seen: install one, for example: $advice" >&2
  exit 78
fi
