# Agent Knock Knock. `make help` lists every habit.
BIN     := bin
PREFIX  ?= $(HOME)/.local
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X github.com/agent-knock-knock/akk/internal/version.Version=$(VERSION)
# grpcnotrace leaves out gRPC's debug pages and the HTML templates that they need.
GOBUILD := CGO_ENABLED=0 go build -trimpath -tags grpcnotrace -ldflags '$(LDFLAGS)'
AGENT   ?= standin
BUF     := go tool -modfile=internal/buildtools/go.mod buf
TIME    ?= 60s
WORKERS ?= 2
RUN     ?= ^TestReal

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## bin/agent-knock-knock, bin/akk-monitor, bin/akk-callback, bin/akk-top, bin/akk-telemetry
	$(GOBUILD) -o $(BIN)/agent-knock-knock ./bridge
	$(GOBUILD) -o $(BIN)/akk-monitor ./monitor
	$(GOBUILD) -o $(BIN)/akk-callback ./worker
	$(GOBUILD) -o $(BIN)/akk-top ./internal/top/akktop
	$(GOBUILD) -o $(BIN)/akk-telemetry ./internal/telemetry/akktelemetry

.PHONY: install
install: build ## put the programs into $(PREFIX)/bin
	install -d $(PREFIX)/bin
	install -m 755 $(BIN)/agent-knock-knock $(BIN)/akk-monitor $(BIN)/akk-callback $(BIN)/akk-top $(BIN)/akk-telemetry $(PREFIX)/bin/

.PHONY: tmux
tmux: # a line that says what to do, before anything needs tmux
	@command -v tmux >/dev/null || { echo "tmux is not installed; trying apt-get (any other way is fine too)"; \
	  apt-get install -y -qq tmux >/dev/null 2>&1 || { apt-get update -qq >/dev/null && apt-get install -y -qq tmux >/dev/null; } || \
	  { echo "install tmux (for example: sudo apt-get install tmux) and run make again"; exit 1; }; }

.PHONY: chromium
chromium: # the same for the browser that shows the ledger's view
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || { echo "chromium is not installed; trying apt-get (any other way is fine too)"; \
	  apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1 || { apt-get update -qq >/dev/null && apt-get install -y -qq --no-install-recommends chromium >/dev/null; } || \
	  { echo "install chromium (for example: sudo apt-get install chromium) and run make again"; exit 1; }; }

.PHONY: test
test: tmux ## the whole test suite: real tmux, real SQLite, real processes
	go test -timeout 45m ./...

.PHONY: race
race: tmux ## the test suite under the race detector
	go test -race -timeout 40m ./...

.PHONY: e2e
e2e: tmux chromium build ## the real Codex and Claude Code at pinned versions against a scripted model; RUN= picks tests
	AKK_INSTALL_AGENTS=1 go test -tags e2e -count 1 -timeout 60m -run '$(RUN)' ./internal/e2e/...

.PHONY: e2e-acp
e2e-acp: ## the real ACP agents (Claude, Codex, Gemini, OpenCode) from npm at pinned versions against a scripted model; RUN= picks tests
	AKK_INSTALL_AGENTS=1 go test -tags e2e -count 1 -timeout 30m -run '$(if $(filter command line environment,$(origin RUN)),$(RUN),^TestRealACP)' ./internal/e2e/...

.PHONY: compat
compat: tmux ## docs/COMPATIBILITY.md: AGENT=codex VERSIONS="0.150.0 latest"; npm installs each version
	@case "$(AGENT)$(if $(VERSIONS),+)" in codex+|claude+) ;; *) echo 'make compat AGENT=codex|claude VERSIONS="0.150.0 latest"'; exit 2;; esac
	AKK_COMPAT_AGENT=$(AGENT) AKK_COMPAT_VERSIONS="$(VERSIONS)" AKK_COMPAT_OUT=$(CURDIR)/docs/COMPATIBILITY.md \
	  go test -tags e2e,compat -count 1 -timeout 90m -parallel 2 -run '^TestCompatibility$$' -v ./internal/e2e

.PHONY: demo
demo: tmux build ## delegate one task end to end; AGENT=codex or AGENT=claude uses the real CLI
	./internal/testkit/demo.sh $(AGENT)

.PHONY: golden
golden: ## rewrite the golden files; review them as code
	go test ./internal/... ./proto/... -update

.PHONY: gen
gen: ## generated code: protobuf
	$(BUF) generate --template proto/buf.gen.yaml
	go test ./proto -update

.PHONY: lint
lint: ## gofmt, vet (linux and darwin), buf lint and breaking
	@out=$$(gofmt -l $$(git ls-files '*.go' | grep -v '\.pb\.go$$')); [ -z "$$out" ] || { echo "not gofmt-ed: $$out"; exit 1; }
	go vet ./...
	go vet -tags e2e ./internal/e2e/...
	GOOS=darwin go vet ./bridge ./monitor ./worker
	$(BUF) lint
	$(BUF) breaking --against '.git#branch=main'

.PHONY: bench
bench: tmux build ## the budgets of docs/BENCHMARKS.md, measured
	go test -tags e2e -count 1 -run '^TestBudgets$$' -v ./internal/e2e/...
	go test -run '^$$' -bench . -benchtime 1s ./internal/...

.PHONY: growth
growth: tmux build ## how cost grows with Turns, callbacks, panes and Turns at once; RUN= picks a table
	go test -tags e2e -count 1 -run '$(if $(filter command line environment,$(origin RUN)),$(RUN),^TestGrowth)' -v -timeout 20m ./internal/e2e

.PHONY: kill
kill: tmux build ## SIGKILL Bridge, monitor and callback worker at random during 100 sends
	AKK_KILL_SENDS=100 go test -count 1 -run '^(TestHundredSendsUnderRandomKills|TestH2ASend.*)$$' -v -timeout 20m ./internal/e2e/...

.PHONY: bench-acp
bench-acp: ## the budgets of headless agents in docs/BENCHMARKS.md, measured
	go test -tags e2e -count 1 -run '^TestHeadlessBudgets$$' -v -timeout 15m ./internal/e2e
	go test -run '^$$' -bench '^BenchmarkStream$$' -benchtime 2s ./internal/redact

ACP_ROUNDS = $(if $(filter command line environment,$(origin ROUNDS)),$(ROUNDS),200)
.PHONY: kill-acp
kill-acp: ## ROUNDS=200: SIGKILL proxy, server, supervisor and agents of headless sessions at random; SEED= ONLY= play one again
	AKK_ACP_ROUNDS=$(ACP_ROUNDS) AKK_ACP_SEED=$(SEED) AKK_ACP_ONLY=$(ONLY) \
	  go test -count 1 -run '^TestManyKillsOfProxyServerSupervisorAndAgent$$' -v -timeout 60m ./internal/e2e

ROUNDS  ?= 500
SEED    ?= $(shell date +%s)
ONLY    ?= -1
AT_ONCE ?= 1
.PHONY: torture
torture: tmux ## ROUNDS=500: kill, freeze or starve what a task touches at each of its boundaries; SEED= ONLY= play one again
	AKK_TORTURE_ROUNDS=$(ROUNDS) AKK_TORTURE_SEED=$(SEED) AKK_TORTURE_ONLY=$(ONLY) \
	  go test -count 1 -parallel $(AT_ONCE) -run '^TestTorture$$' -v -timeout 6h ./internal/testkit/torture

TURNS   ?= 200000
.PHONY: bigstore
bigstore: tmux ## TURNS=200000: eight Bridges start at once on a Store that holds so many, each within a second
	AKK_BIG_TURNS=$(TURNS) go test -count 1 -run '^TestEightBridgesStartAtOnceOnABigStore$$' -v -timeout 30m ./internal/e2e

.PHONY: fuzz
fuzz: ## every fuzz target for TIME each, AT_ONCE of them at a time, then a summary
	./internal/testkit/fuzz.sh $(TIME) $(WORKERS) $(AT_ONCE)

PLATFORMS ?= linux/amd64,linux/arm64,darwin/amd64,darwin/arm64
DIST      ?= dist
.PHONY: dist
dist: ## dist/: reproducible archives of a release with checksums, completions, man pages
	rm -rf $(DIST)
	go run ./internal/dist -version $(VERSION) -epoch $$(git log -1 --format=%ct) -platforms $(PLATFORMS) -out $(DIST)

.PHONY: clean
clean: ## remove what was built
	rm -rf $(BIN) dist
