#!/bin/sh
# Goal: a transport of somebody else's, built outside the tree, carries worlds of several nodes; what is no such
# transport is told by its path and by what is wrong with it.
# Method: the example, compiled with the public headers alone, passes the conformance suite and connects nodes for which
# this host stands in; by it PEs that are killed or leave are noticed; one without `fate` does, too; then libraries of
# another version or size, without the symbol, without a function, absent, by a relative path, two of them, others on
# other PEs, and in a process with more rights.
# Usage: transport_plugin.sh CC INCLUDE SOURCE CONFORMANCE GONE LAUNCHED WEFTRUN NODES PROGRAM...
set -eu
cc=$1
include=$2
source=$3
conformance=$4
gone=$5
launched=$6
weftrun=$7
nodes=$8
shift 8
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
build()
{
    "$cc" -std=c11 -Wall -Wextra -Werror -O2 -shared -fPIC -o "$place/$1.so" -I"$include" "$2"
}
build sockets "$source"
export WEFT_TRANSPORT="$place/sockets.so"
"$conformance"
for program in "$@"; do
    "$weftrun" -n 4 "$nodes" 2 "$program"
done
for scene in 'test_*killed*' test_who_leaves test_stopped_pes; do
    "$gone" "$place/sockets.so" "$scene"
done

# A world of two nodes of one PE, for which the first PE's environment may differ.
fails_with()
{
    text=$1
    if "$weftrun" -n 2 "$nodes" 1 "${2:-$launched}" world >"$place/said" 2>&1; then
        echo "this should have failed: $text"
        exit 1
    fi
    grep -q -- "$text" "$place/said" || { echo "nothing says \"$text\":"; cat "$place/said"; exit 1; }
}
changed()
{
    name=$1
    shift
    sed "$@" "$source" >"$place/$name.c"
    cmp -s "$source" "$place/$name.c" && { echo "nothing was changed for $name"; exit 1; }
    build "$name" "$place/$name.c"
}
changed unknowing -e 's/^    \.fate = .*//' -e '/^static weft_transport_fate/s/^static/__attribute__((unused)) static/'
WEFT_TRANSPORT=$place/unknowing.so "$weftrun" -n 2 "$nodes" 1 "$launched" world
echo 'extern int nothing; int nothing;' >"$place/none.c"
build none "$place/none.c"
changed version 's/\.version = WEFT_TRANSPORT_PLUGIN_VERSION/.version = 77u/'
changed size 's/\.size = sizeof(weft_transport_plugin)/.size = sizeof(weft_transport_plugin) - 8/'
changed lacking 's/^    \.fence = .*//'
changed nameless 's/\.name = "sockets"/.name = ""/'
changed other 's/\.name = "sockets"/.name = "others"/'
WEFT_TRANSPORT=$place/absent.so fails_with "absent.so cannot be loaded"
WEFT_TRANSPORT=$place/none.so fails_with "none.so is no transport: it exports no weft_transport_plugin_ops"
WEFT_TRANSPORT=$place/version.so fails_with "version.so has version 77 of"
WEFT_TRANSPORT=$place/size.so fails_with "size.so has version 2 of weft_transport_plugin ([0-9]* bytes)"
WEFT_TRANSPORT=$place/lacking.so fails_with "lacking.so lacks the function fence"
WEFT_TRANSPORT=$place/nameless.so fails_with "nameless.so has no name"
WEFT_TRANSPORT=./sockets.so fails_with "\"./sockets.so\"; give an absolute path"
WEFT_TRANSPORT=$place/sockets.so,$place/other.so fails_with "names $place/other.so, and this process has the transport $place/sockets.so"
SOCKETS_HOST=192.0.2.1 fails_with "sockets.so: this host does not listen at SOCKETS_HOST"
cat >"$place/differing" <<END
#!/bin/sh
[ "\$WEFT_LOCAL_PE" = 0 ] || export WEFT_TRANSPORT=$place/other.so
exec $launched "\$@"
END
chmod +x "$place/differing"
fails_with "has the transport \"sockets\" ($place/sockets.so), and PE 1 \"others\"" "$place/differing"

# A program that belongs to another user and has its rights follows no path, and so has no network.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    cp "$launched" "$place/setuid"
    chmod 4755 "$place/setuid"
    chmod 755 "$place"
    printf '#!/bin/sh\nexec setpriv --reuid 65534 --clear-groups %s "$@"\n' "$place/setuid" >"$place/lowered"
    chmod +x "$place/lowered"
    fails_with "sockets.so, which is not followed in a program that has more rights" "$place/lowered"
fi
