# To be sourced: named steps of checks, one line each with its time and that of the CPUs, and a last
# line that counts.
#
# Before: `logs`, a directory, and `chosen`, the steps that are wanted; all, if none. A test run
# counts its tests; any other step counts as one.
passed=0 failed=0 skipped=0

# wanted NAME: whether that step is to run.
wanted() {
    [ ${#chosen[@]} -eq 0 ] || [[ " ${chosen[*]} " == *" $1 "* ]]
}

# step NAME DESCRIPTION COMMAND...
step() {
    local name=$1 description=$2 log=$logs/$1.log status=0 start=$SECONDS tests broken ignored
    local TIMEFORMAT='%0U %0S' user system
    shift 2
    wanted "$name" || return 0
    printf '%-9s %-55s' "$name" "$description"
    { time "$@" >"$log" 2>&1 </dev/null; } 2>"$log.cpu" || status=$?
    read -r user system <"$log.cpu"

    # Each test binary closes with "test result: ok. 3 passed; 1 failed; 0 ignored; ...".
    read -r tests broken ignored < <(awk '
        function before(word, i) { for (i = 2; i <= NF; i++) if (index($i, word) == 1) return $(i - 1) }
        /^test result: / { p += before("passed"); f += before("failed"); s += before("ignored") }
        END { print p + 0, f + 0, s + 0 }' "$log")
    if [ "$status" -ne 0 ] && [ "$broken" -eq 0 ]; then
        broken=1 # a build, a lint, or a test binary that died
    elif [ "$status" -eq 0 ] && [ $((tests + broken)) -eq 0 ]; then
        tests=1
    fi
    passed=$((passed + tests)) failed=$((failed + broken)) skipped=$((skipped + ignored))
    if [ "$broken" -eq 0 ]; then
        printf '%4d passed %5d s %5d s of CPU\n' "$tests" $((SECONDS - start)) $((user + system))
    else
        printf '%4d FAILED %5d s %5d s of CPU\n' "$broken" $((SECONDS - start)) $((user + system))
        cat "$log"
        printf -- '----- %s: %d failed (exit status %d), log above and in %s\n' "$name" "$broken" "$status" "$log"
    fi
}

# without NAME DESCRIPTION WHY: the step is skipped, and says so.
without() {
    wanted "$1" || return 0
    printf '%-9s %-55s skipped: %s\n' "$1" "$2" "$3"
    skipped=$((skipped + 1))
}

# The last line; fails if a step did.
summary() {
    local note=''
    [ $((passed + failed + skipped)) -gt 0 ] || failed=1 # nothing ran: a misspelt step
    [ "$skipped" -eq 0 ] || note=", $skipped skipped"
    echo "$passed passed, $failed failed$note" | tee "$logs/summary"
    [ "$failed" -eq 0 ]
}
