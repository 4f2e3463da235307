#!/bin/sh
# Writes the logs beside it again: what each installed clang prints for program.c. Run it in this folder.
set -eu
for major in 13 14 15 16 19; do
    "clang-$major" -O1 --target=x86_64-pc-linux-gnu -fno-discard-value-names -mllvm -opt-bisect-limit=-1 \
        -c program.c -o /dev/null 2>"clang-$major.txt"
done
