# A step of the work: `sh step.sh ID MODE`. It appends what it does to `log` beside it, writes
# ID.txt, and prints `did[ID]` at its end. MODE `look` does it only if the log has no end of it.
unset LD_PRELOAD # the faults of disk and clock are for the agent
here=$(cd "$(dirname "$0")" && pwd) id=$1 mode=$2
log() { printf '%s %s %s %s\n' "$1" "$id" "$$" "$(date +%s.%N)" >>"$here/log"; }
slowly() {
    for tick in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28; do
        sleep 0.25
        log tick
    done
}
if [ "$mode" = daemon-child ]; then # ends by itself after a minute, should nobody end it
    for tick in $(seq 60); do sleep 1; done
    exit
fi
if grep -q "^begin $id " "$here/log" 2>/dev/null; then # the second time it is quick
    if [ "$mode" = look ] && grep -q "^end $id " "$here/log"; then
        echo "did[$id]"
        exit
    fi
    mode=plain
fi
log begin
case $mode in
slow) slowly ;;
daemon)
    setsid sh "$here/step.sh" "$id" daemon-child </dev/null >/dev/null 2>&1 &
    slowly
    ;;
stubborn)
    trap '' INT TERM HUP
    slowly
    ;;
endless)
    (trap '' PIPE; slowly) &
    timeout 60 yes "a line that never ends"
    ;;
esac
printf 'step %s\n' "$id" >"$here/$id.txt"
log end
echo "did[$id]"
