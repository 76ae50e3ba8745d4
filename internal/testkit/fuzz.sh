#!/bin/sh
# fuzz.sh TIME [WORKERS]: every fuzz target for TIME, then one line for each. A target that
# fails does not keep the others from running; what broke it is kept as a seed beside it.
time=${1:-60s} workers=${2:-2}
sum=$(mktemp) log=$(mktemp)
trap 'rm -f "$sum" "$log"' EXIT
failed=0
for dir in $(grep -rl '^func Fuzz' --include '*_test.go' internal | xargs -n1 dirname | sort -u); do
  for target in $(cat "$dir"/*_test.go | sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' | sort -u); do
    echo "== $dir $target"
    if go test "./$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$time" -parallel "$workers" >"$log" 2>&1; then verdict=clean; else verdict=FAILED failed=1; fi
    tail -n 30 "$log"
    runs=$(sed -n 's/.*execs: \([0-9]*\).*/\1/p' "$log" | tail -n 1)
    found=$(sed -n 's/.*(total: \([0-9]*\)).*/\1/p' "$log" | tail -n 1)
    printf '%-8s %10s runs %6s inputs  %s %s\n' "$verdict" "${runs:-0}" "${found:-0}" "$dir" "$target" >>"$sum"
  done
done
echo
echo "fuzzed for $time each:"
cat "$sum"
exit $failed
