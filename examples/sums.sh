# What a program counted beside what was captured of it. Sourced by `run` of examples that fork.

# keys CAPTURE PID KEY: a line "PID KEY" for each frame; KEY is columns, with slashes between them.
keys() {
    "$PPT" dump "$1" | awk -F '\t' -v pid="$2" -v key="$3" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; n = split(key, names, "/"); next }
        { k = $at[names[1]]; for (i = 2; i <= n; i++) k = k "/" $at[names[i]]; print $at[pid], k }'
}

# counts CAPTURE: what it says was lost, and what was refused (dropped), in all.
counts() {
    "$PPT" info "$1" | awk '$1 == "lost" { l += $2 } $1 == "dropped" { d += $2 } END { print l + 0, d + 0 }'
}

# compare_sums WHERE LATE KILLED: the lines "PID KEY" in the file counted, in each process's order, beside
# those in captured, of out.bin. KILLED processes may have one more in one of the two. If LATE is 1, what
# a process wrote before its first frame is in counted alone. Fails if more is missing than the capture
# says itself.
compare_sums() {
    awk -v where="$1" -v late="$2" -v killed="$3" -v told="$(counts out.bin)" '
        FILENAME == "captured" { frames++; if (seen[$0]++) twice++; next }
        { lines++; known[$0] = 1; if (!($1 in begun)) { begun[$1] = 0; processes++ } }
        late && !begun[$1] && !seen[$0] { before++; next }
        { begun[$1] = 1; if (seen[$0]) both++; else missing++ }
        function row(what, count) { printf "%-52s %8d\n", what, count }
        END {
            split(told, part, " ")
            for (k in seen) if (!(k in known)) ahead++
            row("requests " where, lines)
            row("processes", processes)
            row("frames in the capture", frames)
            if (late) row("served before a worker was attached to", before)
            row("missing in the capture", missing)
            row("of which it says that they are: lost", part[1])
            row("                                dropped", part[2])
            row("in the capture alone, or twice", ahead + twice)
            gap = missing - part[1] - part[2]
            exit twice > 0 || ahead > killed || gap > killed || (!late && gap < -killed)
        }' captured counted
}
