#!/bin/sh
# fuzz.sh TIME [WORKERS [AT_ONCE]]: every fuzz target for TIME, then one line for each. A
# target that fails does not keep the others from running; what broke it is kept as a seed
# beside it. AT_ONCE targets run side by side, each with so many WORKERS.
time=${1:-60s} workers=${2:-2} at_once=${3:-1}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for dir in $(grep -rl '^func Fuzz' --include '*_test.go' internal | xargs -n1 dirname | sort -u); do
  for target in $(cat "$dir"/*_test.go | sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' | sort -u); do
    echo "$dir $target"
  done
done >"$out/targets"
xargs -P "$at_once" -L 1 sh -c '
  out=$0 time=$1 workers=$2 dir=$3 target=$4
  log=$out/$(echo "$dir.$target" | tr / .)
  if go test "./$dir" -run "^\$" -fuzz "^$target\$" -fuzztime "$time" -parallel "$workers" >"$log" 2>&1; then verdict=clean; else verdict=FAILED; fi
  echo "== $dir $target"; tail -n 30 "$log"
  runs=$(sed -n "s/.*execs: \([0-9]*\).*/\1/p" "$log" | tail -n 1)
  found=$(sed -n "s/.*(total: \([0-9]*\)).*/\1/p" "$log" | tail -n 1)
  printf "%-8s %10s runs %6s inputs  %s %s\n" "$verdict" "${runs:-0}" "${found:-0}" "$dir" "$target" >"$log.sum"
' "$out" "$time" "$workers" <"$out/targets"
echo
echo "fuzzed for $time each:"
cat "$out"/*.sum
[ "$(cat "$out"/*.sum | grep -c '^clean')" = "$(wc -l <"$out/targets")" ]
