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

# until_open PID: that flame has opened all events and given up what it does not need any more. It has -g, so that it
# says then that this is not needed.
until_open() {
    until grep -q 'g is not needed' err || ! [ -e /proc/$1/exe ]; do sleep 0.1; done
}

# rights LEVEL WHO: what that user can record.
rights() {
    mkdir ./$1-$2 && chmod 777 ./$1-$2 && cd ./$1-$2
    level $1
    burn 1000 0 >/dev/null & burner=$!
    # One part of the time is a program's own, one the kernel's.
    as $2 'flame record -F 499 -o own.folded -- sh -c "burn 0.2 0; syscalls 0.2" >own.log 2>&1'
    as $2 "flame record -F 99 -d 0.2s -o other.folded -p $burner >other.log 2>&1"
    as $2 'flame record -F 99 -d 0.2s -o all.folded -a >all.log 2>&1'
    as $2 'flame doctor --json >doctor.json 2>/dev/null'
    kill $burner
    cd ..
    level 2
}
