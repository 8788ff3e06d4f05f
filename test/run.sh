#!/usr/bin/env bash
# run.sh installs what the tests need and runs every check of the project, the
# quick ones first. It fails with the first that fails.
set -euo pipefail
cd "$(dirname "$0")/.."

./test/install.sh

# Here a test that finds no model server or no Neovim fails instead of being skipped.
export CONVLS_REQUIRE_LLAMA=1
export CONVLS_REQUIRE_NEOVIM=1
# The crash suite and the random walk run in full.
export CONVLS_LONG=1

# How long each fuzz target runs.
fuzz_time=${CONVLS_FUZZ_TIME:-5s}

phase() {
	printf '\n== %s (%d s)\n' "$1" "$SECONDS"
}

tool() {
	go tool -modfile=test/tools.mod "$@"
}

# fuzz runs one target and prints how far it came, or all it said if it failed.
# Go takes a worker that is busy when the time is up for a failure; what counts
# is an input that fails.
fuzz() {
	local log="$work/fuzz.log"
	if (cd "$1" && "$work/fuzz.test" -test.run '^$' -test.fuzz "^$2\$" -test.fuzztime "$fuzz_time" \
		-test.fuzzcachedir "$work/corpus" -test.parallel 2 -test.timeout 5m) >"$log" 2>&1 ||
		{ grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input' "$log"; }; then
		printf 'ok  \t%s %s %s\n' "$1" "$2" "$(grep -o 'execs: [0-9]*' "$log" | tail -n 1)"
		return
	fi
	cat "$log"
	return 1
}

phase "scripts and modules"
mapfile -t scripts < <(git ls-files -- '*.sh' .ci/run)
shellcheck "${scripts[@]}"
go mod tidy -diff

phase "linters"
tool golangci-lint run --allow-parallel-runners ./...
luacheck --quiet --config editors/neovim/.luacheckrc editors/neovim
"${XDG_CACHE_HOME:-$HOME/.cache}/convls-test/stylua/node_modules/.bin/stylua" --check editors/neovim

phase "fuzzing"
# The targets run in binaries like those of the tests. go test -fuzz would build
# all dependencies once more, and the SDKs below the model adapters alone would
# take ten minutes; in so short a run its guidance finds little.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
folders=$(git grep -l '^func Fuzz' -- '*_test.go' | xargs -n 1 dirname | sort -u)
count=0
for folder in $folders; do
	go test -race -vet=off -c -o "$work/fuzz.test" "./$folder"
	targets=$("$work/fuzz.test" -test.list '^Fuzz')
	for target in $targets; do
		fuzz "$folder" "$target"
		count=$((count + 1))
	done
done

phase "tests"
# The linter has run vet already.
tool gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg -- -race -vet=off -timeout 30m ./...

printf 'ok  \tconvls\tlinters, %d fuzz targets and all tests\t%ds\n' "$count" "$SECONDS"
