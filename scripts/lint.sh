#!/bin/sh
# Read the tree: format, layers, columns, words, dead names, subjects of commits, and marks not to be left behind.
set -eu
cd "$(dirname "$0")/.."
failed=0

files()
{
    if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git ls-files --cached --others --exclude-standard -- "$@" | while read -r file; do
            [ -f "$file" ] && echo "$file"
        done
    else
        for pattern in "$@"; do
            find . -path ./build -prune -o -name "$pattern" -type f -print
        done
    fi
}

formatter=$(command -v clang-format-14 || command -v clang-format)
echo "format ($formatter)"
files '*.c' '*.h' '*.cu' '*.cuh' | xargs -r "$formatter" --dry-run -Werror || failed=1

echo "layers"
python3 tests/lint/layers.py . || failed=1

echo "columns"
# Code of C is kept in 120 columns by the formatter, comments everywhere by this.
if awk 'length > 120 { print FILENAME ":" FNR ": " length " columns"; found = 1 } END { exit !found }' \
    $(files '*.c' '*.h' '*.cu' '*.cuh') /dev/null; then
    failed=1
fi
if awk 'length > 120 && /^[[:blank:]]*(#|\/\*|\*|\/\/)/ { print FILENAME ":" FNR ": " length " columns"; found = 1 }
    END { exit !found }' $(files '*.py' '*.sh' '*.cmake' '*.cpp' 'CMakeLists.txt' 'Makefile') /dev/null; then
    failed=1
fi

echo "words"
python3 tests/lint/words.py . || failed=1

echo "dead names"
python3 tests/lint/dead.py . || failed=1

echo "commits"
python3 tests/lint/commits.py . || failed=1

echo "marks"
sources=$(files '*.c' '*.h' '*.cu' '*.cuh' '*.py' '*.sh' '*.cmake' '*.md' 'CMakeLists.txt' 'Makefile')
# The pattern is spelled so that it does not find itself.
for mark in '[[:blank:]]$' 'TO[D]O' 'FIX[M]E' '\bXX[X]\b'; do
    if grep -nE "$mark" $sources /dev/null; then
        echo "found: $mark" >&2
        failed=1
    fi
done
# A comment is a sentence, or part of one, on its own line or field: it does not go on in the next.
if grep -rnE --include='*.c' --include='*.h' --include='*.cu' --include='*.cuh' ', \*/$' src include; then
    echo "found: comments that go on behind the next declaration" >&2
    failed=1
fi
tabs=$(printf '\t')
if grep -n "$tabs" $(files '*.c' '*.h' '*.cu' '*.cuh' '*.py' '*.cmake') /dev/null; then
    echo "found: tabs" >&2
    failed=1
fi

if [ $failed = 0 ]; then
    echo "lint: clean"
fi
exit $failed
