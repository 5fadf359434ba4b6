# Everything the project can be told to do. `make help` prints the lines that
# carry a double hash, so a target without one is a step of another target.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO ?= go
# Lint tools live in modules of their own, so that their several hundred
# dependencies never reach ours. They come from the Go module proxy alone.
TOOL := $(GO) tool -modfile=tools/go.mod
# RUNNER runs go test in the modules that its first word names, and a failed test once more.
RUNNER = GO='$(GO)' bash scripts/go-test.sh
GOFILES = $$(git ls-files --cached --others --exclude-standard '*.go')

# TAGS are the build tags of the server in all that is built for use. grpcnotrace leaves out the
# traces of grpc-go: with their templates the linker keeps every exported method, 10 MB of them.
TAGS := grpcnotrace
# ARGS is passed on to the server: make run ARGS='--port 6390'.
ARGS ?=
# FUZZTIME is how long each fuzz target runs under make fuzz.
FUZZTIME ?= 10s
# MODULES are modules of their own whose tests start programs: what they need beside this one
# never reaches the server.
MODULES := compat_test/chaos compat_test/page
# PACKAGED are modules that make and check what is published, and that check it for other platforms.
PACKAGED := tools/dist tools/manifests tools/crosscheck
# TOOLS are modules of programs for this project: what measures, draws and writes pages, and the program
# beside the server that gets rules by xDS, whose dependencies the server is to be without. Those of
# their tests that start programs have the tag real, as in this module.
# CALLERS are what callers in Go import: what only some of them need is a module of its own.
CALLERS := clients/go clients/go/grpclimit clients/go/rueidislimit clients/go/stores/golimiter clients/go/stores/ulule
# Beside CALLERS are the program that writes clients/vectors, and examples of routers.
TOOLS := tools/bench tools/docgen tools/xds $(CALLERS) clients/go/internal/vectors clients/go/internal/routers
# LINTED are the modules that vet and lint read.
LINTED := $(MODULES) $(TOOLS) tools/dist tools/crosscheck
IN = for module in $(1); do ( cd "$$module" && $(2) ); done
# BIN is where programs are put.
BIN ?= bin
PLATFORMS := linux/amd64 linux/arm64 darwin/arm64 windows/amd64

.PHONY: help
help: ## Print this list
	@awk 'BEGIN {FS = ":[^#]*## "} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the server into bin/, without libc: it runs on any Linux, in an empty image too
	CGO_ENABLED=0 $(GO) build -trimpath -tags '$(TAGS)' -o $(BIN)/ ./cmd/cellserver

.PHONY: cellbench
cellbench: ## Build the load generator into bin/ (see docs/cellbench.md)
	CGO_ENABLED=0 $(GO) -C tools/bench build -trimpath -o $(abspath $(BIN))/ ./cellbench

# IMAGE is where make image-files puts what an image consists of, and CERTIFICATES are those of
# this machine's authorities: an image has no others.
IMAGE ?= bin/image
CERTIFICATES ?= /etc/ssl/certs/ca-certificates.crt

.PHONY: image-files
image-files: ## Compile what the container image consists of into bin/image (see Dockerfile)
	rm -rf $(IMAGE)
	mkdir -p $(IMAGE)/root/etc/ssl/certs $(IMAGE)/data
	cp $(CERTIFICATES) $(IMAGE)/root/etc/ssl/certs/ca-certificates.crt
	touch $(IMAGE)/data/.keep
	CGO_ENABLED=0 $(GO) build -trimpath -tags '$(TAGS)' -ldflags='-s -w' -o $(IMAGE)/root/cellserver ./cmd/cellserver

.PHONY: ratelimit-files
ratelimit-files: ## Compile what the image in the place of envoyproxy/ratelimit has in addition (after make image-files)
	CGO_ENABLED=0 $(GO) -C tools/xds build -trimpath -tags '$(TAGS)' -ldflags='-s -w' -o $(abspath $(IMAGE))/ratelimit ./ratelimit

# What is published carries the date of the last commit.
DATE = $$(git log -1 --format=%ct 2>/dev/null || echo 0)

.PHONY: dist
dist: ## Make the archives of all platforms, with checksums and bills of materials, in dist/
	cd tools/dist && $(GO) run . -root ../.. -out ../../dist -tags '$(TAGS)' -date $(DATE)

.PHONY: packages
packages: ## Test what is published alone, as make test-real does: archives, chart, images, packages for callers
	$(RUNNER) "$(PACKAGED)" -timeout 10m
	PACKAGES=./compat_test $(RUNNER) . -tags real -run 'Package$$/^pack' -timeout 20m

.PHONY: run
run: build ## Build and start the server (ARGS='--port 6390' passes options on)
	exec bin/cellserver $(ARGS)

.PHONY: setup
setup: ## Say what make test-real needs and this machine lacks, and install it
	bash scripts/ci-setup.sh

# The tests of transport wait for sockets, so they begin, and others run beside them.
.PHONY: test
test: ## Run the tests that need nothing but Go: they start no program
	PACKAGES='./transport/... ./...' $(RUNNER) ". $(TOOLS)" -timeout 10m

.PHONY: test-real
test-real: setup ## Run the tests that start programs: servers, clients, libraries, browser, packages
	GO='$(GO)' bash scripts/real-tests.sh "$(TOOLS)" "$(MODULES) $(PACKAGED)" -timeout 30m

.PHONY: compatibility
compatibility: setup ## Run the limiter libraries and write docs/compatibility.md
	CELL_WRITE_COMPATIBILITY=1 $(GO) test -tags real -count=1 -timeout 30m -run TestLibraries ./compat_test

.PHONY: race
race: ## Run the tests of make test under the race detector, where goroutines are
	packages=$$(bash scripts/race-packages.sh); PACKAGES=$$packages $(RUNNER) ". tools/bench clients/go clients/go/grpclimit clients/go/rueidislimit" -race -short -timeout 25m

# TIMES is how often make steady runs a target, and STEADY names the target.
TIMES ?= 20
STEADY ?= test

# A Sentinel whose process was stopped for 2 s fails over nothing for 30 s (TILT). Under stops of 2 s
# every 15 s it would never act, so those of make test-real take 1 s.
.PHONY: steady
steady: ## Run make test 20 times on a machine that is made busy and stops now and then (TIMES, STEADY=test-real)
	HALT=$(if $(filter test-real,$(STEADY)),1,2) bash scripts/steady.sh $(TIMES) $(MAKE) $(STEADY)

# CELL_LONG is how many times the full size the random tests are under make long.
CELL_LONG ?= 1

.PHONY: long
long: ## Run tests that draw random steps at full size (CELL_LONG=20: twenty times that)
	packages=$$(grep -rl --include='*_test.go' internal/effort . | xargs -n1 dirname | sort -u); \
		CELL_LONG=$(CELL_LONG) PACKAGES=$$packages $(RUNNER) . -timeout 12h

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME each (default 10s)
	bash scripts/fuzz.sh $(FUZZTIME)

.PHONY: fmt
fmt: ## Format every Go file in place
	$(TOOL) gofumpt -w $(GOFILES)

.PHONY: fmt-check
fmt-check:
	@unformatted=$$($(TOOL) gofumpt -l $(GOFILES)); \
	if [ -n "$$unformatted" ]; then \
		echo "not formatted (make fmt does it):"; echo "$$unformatted"; exit 1; \
	fi

.PHONY: vet
vet: ## Run go vet
	$(GO) vet -tags real ./...
	$(call IN,$(LINTED),$(GO) vet -tags real ./...)

.PHONY: lint
lint: ## Run the linters of .golangci.yml, and that of the workflows
	$(GO) tool -modfile=tools/workflows/go.mod actionlint
	$(TOOL) golangci-lint run ./...
	$(call IN,$(LINTED),$(GO) tool -modfile=$(CURDIR)/tools/go.mod golangci-lint run ./...)

.PHONY: vuln
vuln: ## Look up known vulnerabilities (says SKIP when the database is out of reach)
	bash scripts/vulncheck.sh

.PHONY: architecture
architecture: ## Print the measures of all packages
	$(GO) run ./internal/architecture/cmd

.PHONY: generate
generate: ## Write the generated documentation again
	$(GO) generate ./...
	$(call IN,$(TOOLS),$(GO) generate ./...)

.PHONY: generate-check
generate-check:
	bash scripts/generated-fresh.sh $(MAKE) --no-print-directory generate

.PHONY: tzdata
tzdata: ## Take the rules of time zones of this Go into calendar (needs Python 3.9; ten minutes)
	bash scripts/tzdata.sh

.PHONY: tzdata-check
tzdata-check: ## Check that the rules of time zones are those of the Go distribution with their release
	bash scripts/tzdata.sh --check

# The types are checked, and no code is generated: make dist compiles and links what is published.
.PHONY: cross
cross: ## Check all packages and their tests for the other platforms that we promise
	@own=$$($(GO) env GOHOSTOS)/$$($(GO) env GOHOSTARCH); \
	others=$$(printf '%s\n' $(PLATFORMS) | grep -vx "$$own" | tr '\n' ' '); \
	$(GO) -C tools/crosscheck run . -platforms "$$others" ../.. ../bench

.PHONY: check
check: fmt-check vet lint generate-check tzdata-check test race test-real cross vuln ## Run everything that CI runs

.PHONY: clean
clean: ## Remove what make built
	rm -rf bin coverage.out
	$(GO) clean -testcache

.PHONY: bench
bench: ## Measure beside Redis and write docs/performance.md (BENCH_QUICK=1: a short look)
	bash scripts/bench.sh

.PHONY: bench-store
bench-store: ## Measure --store beside redis_rate on a cluster and write docs/scale-out-performance.md (ARGS='--rounds 1' changes that)
	bash scripts/bench-store.sh $(ARGS)

.PHONY: bench-fronts
bench-fronts: build ## Measure rls-port and http-port beside empty handlers (ARGS='--ratelimit PROGRAM': beside envoyproxy/ratelimit too)
	CGO_ENABLED=0 $(GO) -C tools/bench build -trimpath -o $(abspath $(BIN))/ ./frontbench
	bin/frontbench $(ARGS)

.PHONY: bench-callers
bench-callers: build ## Measure clients/go beside plain clients, redis_rate and httprate-redis (ARGS='--rounds 1' changes that)
	CGO_ENABLED=0 $(GO) -C tools/bench build -trimpath -o $(abspath $(BIN))/ ./callerbench
	bin/callerbench $(ARGS)

.PHONY: bench-observability
bench-observability: build ## Measure what metrics, SLOWLOG and rules of users cost (OTHER=PROGRAM: another build to compare with)
	bash scripts/bench-observability.sh bin/cellserver $(OTHER)

.PHONY: bench-replication
bench-replication: build cellbench ## Measure what a replica costs, beside redis-server and its replica
	bash scripts/bench-replication.sh bin/cellserver bin/cellbench

.PHONY: attack
attack: build ## Attack the server and redis-server at full size (ARGS='--only mix' chooses; see docs/attacks.md)
	$(GO) -C tools/bench build -trimpath -o $(CURDIR)/bin/attack ./attack/cmd
	bin/attack $(ARGS)

.PHONY: page-day
page-day: ## Watch the page for five minutes of healthy, uneven traffic (needs a browser)
	cd compat_test/page && CELL_DAY=5m $(GO) test -count=1 -v -timeout 10m -run TestHealthyUnevenDay .

.PHONY: picture
picture: ## Make the picture of docs/page.md from a server that runs (needs a browser; six minutes)
	cd compat_test/page && CELL_PICTURE=4m $(GO) test -count=1 -v -timeout 20m -run 'TestPicture$$' .

.PHONY: chaos
chaos: ## Harm real stores at full size: lost replies, resharding, killed masters (about an hour)
	cd compat_test/chaos && CHAOS_FULL=1 $(GO) test -count=1 -v -timeout 120m ./...
	CHAOS_FULL=1 $(GO) test -count=1 -v -run 'CutAtEachByte|CutsUnderChurn' ./replication

# SEEDS is how many histories make simulate plays, or TIME is for how long, from the seed FROM on.
SEEDS ?= 0
TIME ?= 0
FROM ?= 0
.PHONY: simulate
simulate: ## Play histories of clusters with faults in virtual time (SEEDS=1000, or TIME=2h; FROM=17)
	$(GO) test -count=1 -v -timeout 0 -run TestSeeds ./internal/simulation -seeds $(SEEDS) -spend $(TIME) -from $(FROM)

.PHONY: mutants
mutants: ## Break the product on purpose, and print how long make simulate takes to find it (LIMIT=60s)
	bash scripts/mutants.sh

.PHONY: valkey-suite
valkey-suite: ## Play Valkey's test suite (VALKEY_DIR=checkout of 7.2.7; see compat_test/valkey)
	VALKEY_DIR='$(if $(VALKEY_DIR),$(abspath $(VALKEY_DIR)))' $(GO) test -tags real -count=1 -v -timeout 90m -parallel 4 -run 'TestValkey' ./compat_test

.PHONY: cluster-demo
cluster-demo: build ## Show three servers that hold one limit in a cluster, kill a master, and block a key (half a minute)
	$(GO) run ./examples/cluster

.PHONY: ha-demo
ha-demo: build ## Show a standby with three sentinels, and kill the primary (ARGS='-replicas 1', ARGS='-acks 0'; half a minute)
	$(GO) run ./examples/standby $(ARGS)

.PHONY: gateway-demo
gateway-demo: build ## Show Envoy in front of a page, and block a tenant by redis-cli while a load runs (ten seconds)
	$(GO) run ./examples/gateway
