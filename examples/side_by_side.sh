# What the examples of other people's programs have in common: two builds of a server, `absent` (as
# published) and `patched`, are put under the same load in turn. Sourced by their `run`.

say() { printf '\n== %s\n' "$*"; }

# Ends with 77, which test harnesses take for "skipped".
cannot() {
    echo "skipped: $*" >&2
    exit 77
}

# The two programs: $PPT and $PPTC, else those on PATH, else the release build of this repository.
find_ppt() {
    local built
    built=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/target/release
    PPT=$(realpath "${PPT:-$(command -v ppt || echo "$built/ppt")}")
    PPTC=$(realpath "${PPTC:-$(command -v pptc || echo "$built/pptc")}")
    [ -x "$PPT" ] && [ -x "$PPTC" ] ||
        cannot "no ppt and pptc: cargo build --release in the repository, or set PPT and PPTC"
}

# needs ADVICE PROGRAM…
needs() {
    local advice=$1 program missing=
    shift
    for program; do
        command -v "$program" >/dev/null || missing+=" $program"
    done
    [ -z "$missing" ] || cannot "not found:$missing; $advice"
}

# fetch PACKAGE FOLDER: Debian's source package, from this machine's own package sources; nothing outside
# of the current folder changes.
fetch() {
    local list
    mkdir -p apt/sources apt/lists/partial apt/cache/archives/partial
    for list in /etc/apt/sources.list.d/{debian,ubuntu}.sources; do
        [ ! -e "$list" ] || sed 's/^Types:.*/Types: deb-src/' "$list" >"apt/sources/$(basename "$list")"
    done
    [ ! -e /etc/apt/sources.list ] ||
        sed -nE 's/^deb(-src)? /deb-src /p' /etc/apt/sources.list | sort -u >apt/sources/own.list
    apt() {
        apt-get -qq -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$PWD/apt/sources" \
            -o Dir::State::lists="$PWD/apt/lists" -o Dir::Cache="$PWD/apt/cache" \
            -o APT::Sandbox::User="$(id -un)" "$@"
    }
    # A mirror may lack the newest one: then that of the release.
    apt update && { apt source "$1" || apt source "$1/$(. /etc/os-release && echo "$VERSION_CODENAME")"; } \
        >fetch.out 2>&1 || cannot "$1's source package cannot be fetched: $(tail -n 1 fetch.out)"
    mv "$1"-[0-9]*/ "$2"
}

declare -A pid ports # by server

stop_servers() {
    local server
    for server in "${!pid[@]}"; do
        kill "${pid[$server]}" 2>/dev/null || true # errexit holds in a trap, too
        wait "${pid[$server]}" 2>/dev/null || true
    done
}
trap stop_servers EXIT

# attach CAPTURE: to the patched server; returns when it is attached.
attach() {
    : >attach.err
    "$PPT" attach "${pid[patched]}" -o "$1" --force 2>attach.err &
    agent=$!
    until grep -q '^attached:' attach.err; do
        kill -0 $agent 2>/dev/null || { cat attach.err >&2; exit 1; }
        sleep 0.05
    done
}

detach() { kill -INT $agent && wait $agent; }

# Nanoseconds of processor that a server's threads have had.
processor() { awk '{ ns += $1 } END { printf "%.0f\n", ns }' /proc/"${pid[$1]}"/task/*/schedstat; }

# compare ROUNDS COMMANDS: `load SERVER` puts COMMANDS commands on a server and prints how many it
# got done a second.
compare() {
    local round state server before
    for ((round = 0; round < $1; round++)); do
        for state in absent off on; do
            server=patched
            [ $state != absent ] || server=absent
            [ $state != on ] || attach round.bin
            before=$(processor $server)
            echo "$state $(load $server)" "$(($(processor $server) - before))"
            [ $state != on ] || detach
        done
    done >rounds
    table() { # unit, column
        printf '%-10s %10s %10s %10s   %s\n' "" median lowest highest "$1"
        for state in absent off on; do
            awk -v s=$state -v commands="$2" "\$1 == s { print $3 }" rounds | sort -n |
                awk -v s="ppt $state" '{ v[NR] = $1 }
                    END { m = (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2
                          f = v[NR] < 1000 ? "%.2f" : "%.0f"
                          printf "%-10s %10s %10s %10s\n", s, sprintf(f, m), sprintf(f, v[1]), sprintf(f, v[NR]) }'
        done
    }
    say "$1 rounds in turn: absent, off (nobody attached), on (attached)"
    table "commands a second" "$2" '$2'
    table "us of processor a command, in the server" "$2" '$3 / commands / 1000'
}
