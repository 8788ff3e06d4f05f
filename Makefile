# README's commands. Each target says what it is for; make help lists them.

# The linter and the test runner, pinned in their own module file.
tool := go tool -modfile=test/tools.mod

.PHONY: help build chat test lint bench generate

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' $(MAKEFILE_LIST)

build: ## build bin/convls
	go build -o bin/convls ./cmd/convls

chat: build ## build, then chat in the terminal; offline unless a model is configured
	./bin/convls chat

test: ## install what the tests need, then run all of them
	./test/run.sh

lint: ## run the linters alone
	$(tool) golangci-lint run ./...

bench: ## run the benchmarks
	go test -run '^$$' -bench . -benchmem -timeout 60m ./...

generate: ## write the generated files anew
	go generate ./...
