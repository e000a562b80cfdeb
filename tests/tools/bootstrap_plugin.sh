#!/bin/sh
# Goal: a bootstrap of somebody else's, built outside the tree, makes worlds; what is no plugin is told by its path.
# Method: the example that goes by files, compiled with the public headers alone, brings together processes that know
# nothing else; then plugins of another version, without the symbol, absent, and in a process with more rights.
# Usage: bootstrap_plugin.sh CC INCLUDE SOURCE LAUNCHED
set -eu
cc=$1
include=$2
source=$3
launched=$4
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
build()
{
    # shellcheck disable=SC2086
    "$cc" -shared -fPIC -o "$place/$1.so" -I"$include" ${3:-} "$2"
}
build files "$source"
export WEFT_BOOTSTRAP=plugin WEFT_BOOTSTRAP_PLUGIN="$place/files.so" FILES_DIR="$place" FILES_SIZE=3 WEFT_DEADLINE=30
others=
for rank in 1 2; do
    FILES_RANK=$rank "$launched" world 3 &
    others="$others $!"
done
FILES_RANK=0 "$launched" world 3
for other in $others; do
    wait "$other"
done

fails_with()
{
    text=$1
    if FILES_RANK=0 "$launched" world >"$place/said" 2>&1; then
        echo "this should have failed: $text"
        exit 1
    fi
    grep -q -- "$text" "$place/said" || { echo "nothing says \"$text\":"; cat "$place/said"; exit 1; }
}

echo 'int nothing;' >"$place/none.c"
build none "$place/none.c"
sed 's/WEFT_BOOTSTRAP_PLUGIN_VERSION, sizeof/77u, sizeof/' "$source" >"$place/other.c"
build other "$place/other.c"
WEFT_BOOTSTRAP_PLUGIN=$place/absent.so fails_with "absent.so cannot be loaded"
WEFT_BOOTSTRAP_PLUGIN=$place/none.so fails_with "none.so is no bootstrap"
WEFT_BOOTSTRAP_PLUGIN=$place/other.so fails_with "has version 77"
WEFT_BOOTSTRAP_PLUGIN='' fails_with "needs the path of a library"
FILES_SIZE=0 fails_with "its open returned 2"

# A program that belongs to another user and has its rights follows no variable.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    cp "$launched" "$place/setuid"
    chmod 4755 "$place/setuid"
    chmod 755 "$place"
    launched="setpriv --reuid 65534 --clear-groups $place/setuid"
    if FILES_RANK=0 $launched world >"$place/said" 2>&1; then exit 1; fi
    grep -q "is not followed" "$place/said" || { cat "$place/said"; exit 1; }
fi
