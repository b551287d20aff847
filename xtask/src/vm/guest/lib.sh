# What the cases share.

level() {
    echo "$1" >/proc/sys/kernel/perf_event_paranoid
}

# as WHO COMMAND: root; user; perfmon and admin, users whose flame has that capability.
as() {
    case $1 in
    root) sh -c "$2" ;;
    *) su nobody -s /bin/sh -c "PATH=/tmp/$1:/bin; $2" ;;
    esac
}

# until_dropped PID: that flame records, and has given up what it does not need.
until_dropped() {
    all=$(grep CapPrm /proc/self/status)
    while [ -r /proc/$1/status ] && [ "$(grep CapPrm /proc/$1/status)" = "$all" ]; do sleep 0.1; done
    # The second half of what it opens is opened with what it has kept.
    sleep 1
}

# rights LEVEL WHO: what that user can record.
rights() {
    mkdir ./$1-$2 && chmod 777 ./$1-$2 && cd ./$1-$2
    level $1
    burn 1000 0 >/dev/null & burner=$!
    as $2 'flame record -F 499 -o own.folded -- syscalls 0.3 >own.log 2>&1'
    as $2 "flame record -F 99 -d 0.2s -o other.folded -p $burner >other.log 2>&1"
    as $2 'flame record -F 99 -d 0.2s -o all.folded -a >all.log 2>&1'
    as $2 'flame doctor --json >doctor.json 2>/dev/null'
    kill $burner
    cd ..
    level 2
}
