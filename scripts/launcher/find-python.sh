# Sets $python to a Python of 3.11 or newer, or says which is missing and exits 78. Sourced by tidegate and scripts/*.

python=
older=
for candidate in python3 python3.14 python3.13 python3.12 python3.11 /usr/bin/python3 /usr/local/bin/python3; do
  if "$candidate" -I -S -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 </dev/null; then
    python=$candidate
    break
  fi
  version=$("$candidate" -I -S -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null </dev/null)
  [ -n "$version" ] && [ -z "$older" ] && older="; $candidate is $version"
done
if [ -z "$python" ]; then
  echo "tidegate: needs Python 3.11 or newer$older: install one, for example: apt install python3.11 python3.11-venv" >&2
  exit 78
fi
