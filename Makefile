# Everything one does in this repository. `make help` lists it.
#
# The machine needs Go, git and, for the race detector, a C compiler. All else
# is built from Go modules on first use and kept in the user's cache directory.

SHELL := /bin/sh
.DEFAULT_GOAL := help

GO ?= go

# How long the tests of a package may take, how long each fuzz target runs, and how often
# and how long each benchmark does.
TIMEOUT ?= 20m
FUZZTIME ?= 10s
BENCH ?= .
BENCHCOUNT ?= 1
BENCHTIME ?= 1s

# The examples are modules of their own, so that each can be copied out, and
# simulate is one, so that what it needs is not an operator's to link. They
# share the workspace; the modules under bridge and hack, the example that needs the
# bridge, and the commands that write CustomResourceDefinitions and packages stay outside it.
BRIDGE := $(patsubst %/go.mod,%,$(sort $(wildcard bridge/*/go.mod examples/controllerruntime/go.mod)))
EXAMPLES := $(filter-out $(BRIDGE),$(patsubst %/go.mod,%,$(sort $(wildcard examples/*/go.mod simulate/go.mod))))
CRDGEN := resource/crdgen
PACK := cmd/pack
SIDE := $(BRIDGE) $(CRDGEN) $(PACK) $(patsubst %/go.mod,%,$(sort $(wildcard hack/*/go.mod hack/guests/*/go.mod)))
PACKAGES := ./... $(EXAMPLES:%=./%/...)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: ## run the example operator on your cluster, or where there is none on a simulated one
	$(GO) run ./examples/website

# hack/test says what runs, and how.
.PHONY: test
test: need-go ## run every test, with the race detector where goroutines start; sets up what it needs (STEPS="name ...", FRESH=1)
	@$(GO) run ./hack/test $(if $(FRESH),-fresh) $(STEPS)

.PHONY: cold
cold: need-go ## run README's two commands with empty caches, an empty home and only the tools that README names (some 30 minutes)
	@$(GO) run ./hack/cold

.PHONY: nightly
nightly: bridge guests scaffold release-dry simulation ## what is too slow for each change: suites and programs of others, many seeds

# Without the race detector, without what starts servers or processes, without sweeps of seeds, and with the results of
# packages that have not changed from Go's cache.
SLOW := ^(TestControlPlane|TestIntegration|TestEnvtest|TestClient_OnARealControlPlane)$$
UNQUICK := hack/|clientgo/factory$$|integration$$|envtest$$|simulate/judges|simulate/kit|simulate/transcript|flyball$$
.PHONY: quick
quick: ## run the unit tests of the packages, for the inner loop; make house has the rules
	$(GO) test -short -skip '$(SLOW)' $$($(GO) list ./... ./simulate/... | grep -vE '($(UNQUICK))')

.PHONY: simulation
simulation: ## run the example and the kit's programs under SEEDS seeds (200), each with other faults (SEEDS=n)
	@$(GO) run ./hack/test -fresh -seeds $(or $(SEEDS),200) sweeps-website sweeps-replicas sweeps-doubts sweeps-kit

# Starting seeds, and at most how many seeds from each.
ZOO_STARTS ?= 7
ZOO_MOST ?= 1000
.PHONY: zoo
zoo: ## measure how many seeds find each bug planted in the zoo's operators, and run those without a bug (ZOO_STARTS=n, some 20 minutes)
	$(GO) test -count=1 -timeout 3h -run '^TestZoo_OperatorsWithoutABugAreRight' ./simulate/kit/zoo -zoo.right=300
	$(GO) test -count=1 -timeout 3h -run '^TestZoo_SeedsToFindEachBug' -v ./simulate/kit/zoo -zoo.starts=$(ZOO_STARTS) -zoo.most=$(ZOO_MOST)

.PHONY: scaffold
scaffold: control-plane ## write three operators with flyball new, run their tests on simulated and real API servers, and type the guide's commands with empty caches
	$(GO) test -count=1 -timeout $(TIMEOUT) ./cmd/flyball -run _Q1 -whole
	kubectl="$$($(GO) run ./hack/controlplane)/kubectl" && cd hack/release && GOWORK=off $(GO) test -count=1 -timeout $(TIMEOUT) -run _Q1 . -kubectl "$$kubectl"

.PHONY: own-news
own-news: ## run two writers under SEEDS seeds (200): each foreign write wakes (SEEDS=10000, some ten minutes)
	FLYBALL_OWN_NEWS_SEEDS=$(or $(SEEDS),200) $(GO) test -count=1 -timeout 2h -run '^TestOwnNews_EachForeignWriteWakes_R15' -v ./simulate/simtest

.PHONY: check
check: format vet lint tidy licenses standalone cross release-dry test ## all that a change must pass: format, vet, lint, tidy, licences, modules alone, other systems, release, tests, house

# The database is on the network. Without it the check is skipped and says so, or
# fails where VULNCHECK_REQUIRED is set, as in continuous integration.
GOVULNDB ?= https://vuln.go.dev
.PHONY: vulncheck
vulncheck: ## look for known vulnerabilities in what is called; skipped where the database cannot be had (GOVULNDB=url)
	@out=$$(GOWORK=off $(GO) tool -modfile=$(CURDIR)/hack/tools/go.mod govulncheck -db '$(GOVULNDB)' ./... 2>&1); code=$$?; \
	printf '%s\n' "$$out"; \
	if [ $$code -eq 0 ] || [ $$code -eq 3 ]; then exit $$code; fi; \
	case "$$out" in \
	*"fetching vulnerabilities"* | *"unrecognized vulndb format"*) \
		if [ -n "$(VULNCHECK_REQUIRED)" ]; then echo "vulncheck: $(GOVULNDB) cannot be had, and VULNCHECK_REQUIRED is set"; exit $$code; fi; \
		echo "vulncheck: SKIPPED: $(GOVULNDB) cannot be had; nothing was checked";; \
	*) exit $$code;; \
	esac

.PHONY: licenses
licenses: ## fail where a module that ours are built or tested with has a licence that is not allowed
	cd hack/licenses && GOWORK=off $(GO) run . -all $(addprefix ../../,. $(EXAMPLES) $(SIDE))

# What an image is released with. PROGRAM is the file in it, IMAGE its name with a
# digest: a tag can be moved after it was signed.
SBOM ?= sbom.spdx.json
.PHONY: sbom
sbom: ## write what a program was built of as SPDX 2.3 in JSON (PROGRAM=file SBOM=file)
	@test -n "$(PROGRAM)" || { echo "sbom: give PROGRAM, a built Go program"; exit 2; }
	cd $(PACK) && GOWORK=off $(GO) run . sbom -o '$(abspath $(SBOM))' '$(abspath $(PROGRAM))'

.PHONY: sign
sign: ## sign an image, and attest its SBOM, with cosign; skipped where there is none (IMAGE=name@sha256:… SBOM=file)
	@case "$(IMAGE)" in *@sha256:*) ;; *) echo "sign: give IMAGE with its digest, such as registry.example/website@sha256:…"; exit 2;; esac
	@if ! command -v cosign >/dev/null 2>&1; then \
		if [ -n "$(SIGN_REQUIRED)" ]; then echo "sign: there is no cosign, and SIGN_REQUIRED is set"; exit 1; fi; \
		echo "sign: SKIPPED: there is no cosign on this machine; the image is not signed"; exit 0; \
	fi; \
	cosign sign --yes '$(IMAGE)' && cosign attest --yes --type spdxjson --predicate '$(SBOM)' '$(IMAGE)'

.PHONY: format
format: ## fail where gofmt would change a file
	@changed=$$(gofmt -l .) || exit 1; \
	if [ -n "$$changed" ]; then echo "gofmt would change (run make fmt):"; echo "$$changed"; exit 1; fi

.PHONY: fmt
fmt: ## format every Go file
	gofmt -w .

# A test of the command fails where a file differs.
.PHONY: crds
crds: ## write the CustomResourceDefinitions of the examples from their types
	cd $(CRDGEN) && GOWORK=off $(GO) run . -C $(CURDIR)/examples/operator -o config/crd.yaml ./api/...

.PHONY: vet
vet: ## go vet over the root, the examples and simulate
	$(GO) vet $(PACKAGES)

# -modfile and a workspace exclude each other, so each module is linted alone.
.PHONY: lint
lint: ## staticcheck, pinned by hack/tools, over the root, the examples, simulate, the bridge and the commands in modules of their own
	@bad=; for module in . $(EXAMPLES) $(BRIDGE) $(CRDGEN) $(PACK); do \
		echo "staticcheck $$module"; \
		(cd $$module && GOWORK=off $(GO) tool -modfile=$(CURDIR)/hack/tools/go.mod staticcheck ./...) || bad=1; \
	done; test -z "$$bad"

.PHONY: tidy
tidy: ## fail where go mod tidy would change a module, or go.work.sum is incomplete
	@set -e; for module in . $(EXAMPLES) $(SIDE); do \
		echo "go mod tidy -diff in $$module"; \
		(cd $$module && GOWORK=off $(GO) mod tidy -diff); \
	done; \
	before=$$(cksum <go.work.sum); $(GO) mod download; \
	test "$$before" = "$$(cksum <go.work.sum)" || { echo "go mod download has completed go.work.sum: commit it"; exit 1; }

.PHONY: standalone
standalone: ## build and vet every module without the workspace
	@set -e; for module in . $(EXAMPLES) $(SIDE); do \
		if ! (cd $$module && GOWORK=off $(GO) list ./... 2>/dev/null) | grep -q .; then continue; fi; \
		echo "GOWORK=off go build, go vet in $$module"; \
		(cd $$module && GOWORK=off $(GO) build -o /dev/null ./... && GOWORK=off $(GO) vet ./...); \
	done

# The machine's own system is vetted by vet and standalone. Nothing is linked, so packages need not be optimized. Guests are
# tests alone, of programs that others keep fit for other systems.
CROSS ?= darwin/arm64 windows/amd64
.PHONY: cross
cross: ## vet every module for other systems (CROSS=system/processor ...)
	@set -e; for platform in $(CROSS); do for module in . $(EXAMPLES) $(filter-out hack/guests/%,$(SIDE)); do \
		export GOOS=$${platform%/*} GOARCH=$${platform#*/} GOWORK=off CGO_ENABLED=0; \
		if ! (cd $$module && $(GO) list ./... 2>/dev/null) | grep -q .; then continue; fi; \
		echo "go vet for $$platform in $$module"; \
		(cd $$module && $(GO) vet -gcflags='all=-N -l' ./...); \
	done; done

.PHONY: house
house: ## check the rules of the house, and that the documentation's Go blocks are in examples
	$(GO) test -count=1 ./internal/house

.PHONY: bench
bench: ## run the benchmarks beside the peers' in turns, and print medians and ratios (BENCH=regexp BENCHCOUNT=n)
	cd hack/bench && for i in $$(seq $(BENCHCOUNT)); do \
		GOWORK=off $(GO) test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem -timeout 2h . ; \
	done | tee /dev/stderr | GOWORK=off $(GO) run ./ratios

# Nothing is pushed: the command prints what to push.
.PHONY: release
release: ## run make cold, then commit and tag a version of every module that users get (VERSION=v0.2.0)
	@test -n "$(VERSION)" || { echo "release: give VERSION, such as v0.2.0"; exit 2; }
	cd hack/release && GOWORK=off $(GO) run . -version '$(VERSION)' -dir ../.. -check
	@$(MAKE) cold
	cd hack/release && GOWORK=off $(GO) run . -version '$(VERSION)' -dir ../..

.PHONY: release-dry
release-dry: ## release a copy of this tree, and install its programs from it as users do (some 3 minutes the first time)
	cd hack/release && GOWORK=off $(GO) test -count=1 -timeout $(TIMEOUT) .

# Programs of others, each in a module of its own under hack/guests; its README says
# what each does. They are run without the race detector, which would have all of
# Kubernetes compiled a second time.
GUESTS ?= $(notdir $(patsubst %/go.mod,%,$(sort $(wildcard hack/guests/*/go.mod))))
GUESTTIMEOUT ?= 90m
.PHONY: guests
guests: control-plane ## run programs of others on flyball, on the simulated and on a real server (GUESTS="name ...")
	@bad=; for guest in $(GUESTS); do \
		echo "guest $$guest"; \
		(cd hack/guests/$$guest && GOWORK=off $(GO) test -count=1 -timeout $(GUESTTIMEOUT) ./...) || bad="$$bad $$guest"; \
	done; if test -n "$$bad"; then echo "guests that failed:$$bad"; exit 1; fi

.PHONY: bridge
bridge: need-cc control-plane ## test the bridge for controller-runtime and its example with the race detector, and run controller-runtime's own suites and three operators' on it
	@set -e; for module in $(BRIDGE); do echo "go test -race in $$module"; (cd $$module && GOWORK=off CGO_ENABLED=1 $(GO) test -race -count=1 -timeout $(TIMEOUT) ./...); done
	cd hack/guests/controllerruntime && GOWORK=off $(GO) test -count=1 -timeout $(GUESTTIMEOUT) -run '^Test(Suites|Operators)_On(FlyballsInformers|TheBridge)$$' .

# make test does the same with the programs of the first few seeds; this is for
# looking at it alone, for writing, and for many programs.
.PHONY: transcripts
transcripts: control-plane ## hold the transcripts against a real server; UPDATE=1 writes what it answers; SEEDS=n compares n programs on both
ifdef SEEDS
	@set -e; kept=$$(mktemp -d); trap 'rm -r "$$kept"' EXIT; \
	$(GO) test -count=1 -timeout $(TIMEOUT) -run TestRealPrograms ./simulate/transcript/recorded -seeds=$(SEEDS) -golden="$$kept" -update; \
	$(GO) test -count=1 -timeout $(TIMEOUT) -run TestPrograms ./simulate/transcript -seeds=$(SEEDS) -golden="$$kept"
else
	$(GO) test -count=1 -timeout $(TIMEOUT) ./simulate/transcript/recorded $(if $(UPDATE),-update)
endif

# The race detector is on; SEED repeats the choices of an earlier run.
SOAK ?= 5m
SEED ?= 0
# The short form is in make test.
HOSTILE ?= 2m
.PHONY: hostile
hostile: control-plane ## attack an operator on a real server for HOSTILE (2m): bombs and panics at its webhooks, compressed bombs, 429s and garbage from the server
	$(GO) test -count=1 -timeout 30m -v ./hack/hostile -hostile.for $(HOSTILE)

.PHONY: soak
soak: need-cc control-plane ## kill, compact and cut a real server at random for SOAK (5m), then compare every informer with it (SEED=n)
	CGO_ENABLED=1 $(GO) run -race ./hack/soak -for $(SOAK) -seed $(SEED)

.PHONY: election
election: need-cc control-plane ## kill, freeze, cut off and rob the leader of two processes, alone; make test does it too
	CGO_ENABLED=1 $(GO) test -race -count=1 -timeout $(TIMEOUT) -run TestIntegration ./integration -ginkgo.focus 'two processes of an operator'

# hack/oldest has the modules of the oldest server that docs/support.md names, under names that make no module of them.
OLDEST := v1.35.4
OLDEST_TESTS ?= ./integration ./examples/website
.PHONY: oldest
oldest: need-cc control-plane ## play the stories on the oldest server supported, built once beside the newest (some 10 minutes)
	@set -e; newest=$$($(GO) run ./hack/controlplane); dir=$$newest-oldest-$(OLDEST); \
	if ! test -x $$dir/kubectl; then \
		echo "build kube-apiserver $(OLDEST) into $$dir"; work=$$(mktemp -d); trap 'rm -r "$$work"' EXIT; mkdir -p $$dir; \
		cp hack/oldest/gomod $$work/go.mod; cp hack/oldest/gosum $$work/go.sum; \
		(cd $$work && GOWORK=off CGO_ENABLED=0 GOFLAGS=-mod=readonly $(GO) build -trimpath -buildvcs=false \
			-ldflags="-s -w -X k8s.io/component-base/version.gitVersion=$(OLDEST) -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=35" \
			-o $$dir/kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver); \
		cp $$newest/etcd $$newest/kubectl $$dir; \
	fi; \
	KUBEBUILDER_ASSETS=$$dir CGO_ENABLED=1 $(GO) test -race -count=1 -timeout $(TIMEOUT) -run 'TestIntegration|TestControlPlane' $(OLDEST_TESTS)

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME
	@set -e; grep -rn --include='*_test.go' '^func Fuzz' . \
		| sed 's|^\(.*\)/[^/]*_test\.go:[0-9]*:func \(Fuzz[A-Za-z0-9_]*\).*|\1 \2|' \
		| sort -u | while read -r package target; do \
		echo "$$package $$target"; \
		$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$package"; \
	done

.PHONY: mutants
mutants: ## remove each promise's guard in turn and see its test fail (MUTANTS=glob)
	$(GO) run ./hack/mutants $(if $(MUTANTS),'$(MUTANTS)')

# hack/site/sidebar.json lists the pages, which stay where they are.
.PHONY: site
site: hack/site/node_modules/.package-lock.json ## build the documentation as a site into hack/site/dist, and fail on a dead link; needs Node.js
	cd hack/site && npm run --silent build

.PHONY: site-serve
site-serve: hack/site/node_modules/.package-lock.json ## serve what make site has built on 127.0.0.1:4173 (PORT=n)
	cd hack/site && npm run --silent serve

.PHONY: site-versions
site-versions: hack/site/node_modules/.package-lock.json ## build the site of main and of every release in CHANGELOG.md, each from its tag
	cd hack/site && npm run --silent versions

hack/site/node_modules/.package-lock.json: hack/site/package-lock.json | need-node
	cd hack/site && npm ci --ignore-scripts --no-audit --no-fund

.PHONY: need-node
need-node:
	@command -v node >/dev/null && command -v npm >/dev/null || { \
		echo "make: the site needs Node.js 20 or newer, with npm: https://nodejs.org, or your system's packages nodejs and npm" >&2; exit 1; }

.PHONY: control-plane
control-plane: ## build etcd, kube-apiserver and kubectl into the user's cache, once
	@$(GO) run ./hack/controlplane

.PHONY: clean-cache
clean-cache: ## remove the control plane's binaries, and what guests have copied, from the user's cache
	@case "$$(uname -s)" in \
		Darwin) cache="$$HOME/Library/Caches" ;; \
		*) cache="$${XDG_CACHE_HOME:-$$HOME/.cache}" ;; \
	esac; \
	for part in controlplane guests; do echo "remove $$cache/flyball/$$part"; rm -rf "$$cache/flyball/$$part"; done

# The race detector is the one thing that Go alone cannot do.
.PHONY: need-go
need-go:
	@command -v $(GO) >/dev/null || { echo "make: no $(GO) command found; install Go 1.26 or newer: https://go.dev/dl" >&2; exit 1; }
	@said=$$($(GO) list -m 2>&1) || { echo "$$said" >&2; case "$$said" in *"requires go"*) \
		echo "make: install the Go that go.mod asks for, https://go.dev/dl, or unset GOTOOLCHAIN so that Go downloads it" >&2;; esac; exit 1; }
	@dir=$${TMPDIR:-/tmp}; test -d "$$dir" && test -w "$$dir" || { echo "make: $$dir, for temporary files, cannot be written; set TMPDIR to a directory that can" >&2; exit 1; }

.PHONY: need-cc
need-cc: need-go
	@cc=$$($(GO) env CC); command -v $${cc%% *} >/dev/null || { \
		echo "make: the race detector needs a C compiler, and $$cc is not there." >&2; \
		echo "      Install gcc or clang, or name yours in CC." >&2; exit 1; }
