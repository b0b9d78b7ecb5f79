# What one does in this repository; `make help` lists it, and hack has what a target computes. It needs
# Go, git and a C compiler. All else is built from Go modules on first use and kept in the user's cache.
GO ?= go
TIMEOUT ?= 20m
RACE = CGO_ENABLED=1 $(GO) test -race -count=1 -timeout $(TIMEOUT)
.PHONY: $(shell sed -n 's/^\([a-z][a-z -]*\):.*/\1/p' Makefile)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z -]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
run: ## run the example operator on your cluster, or where there is none on a simulated one
	$(GO) run ./examples/website
test: need-go ## run every test, the library's with the race detector; sets up what it needs (STEPS="name ...", FRESH=1)
	@$(GO) run ./hack/test $(if $(FRESH),-fresh) $(STEPS)
quick: need-go ## run the unit tests of the packages, for the inner loop; make house has the rules
	@$(GO) run ./hack/test quick
house: ## check the rules of the house, and that the documentation's Go blocks are in examples
	$(GO) test -count=1 ./internal/house
path: ; $(GO) test -count=1 -v -run PathOfAWatchEvent ./internal/house -path ## count the files and functions of the library that run for each watch event
check: format vet lint tidy licenses standalone cross release-dry test ## all that a change must pass
cold: need-go ## run README's two commands with empty caches, an empty home and only the tools that README names (some 30 minutes)
	@$(GO) run ./hack/cold
nightly: bridge guests scaffold release-dry simulation ## what is too slow for each change: suites and programs of others, many seeds, all under the race detector
	@$(GO) run ./hack/test -fresh programs-race website-race heavy-race

fmt: ## format every Go file
	gofmt -w .
format: ## fail where gofmt would change a file
	@changed=$$(gofmt -l .) && test -z "$$changed" || { echo "gofmt would change (run make fmt): $$changed"; exit 1; }
vet: ## go vet over the workspace
	$(GO) vet github.com/flyball-dev/flyball/...
lint tidy standalone licenses vulncheck minors next: ## check every module; vulncheck is skipped where its database cannot be had (GOVULNDB=url); minors: the bridge with each minor of controller-runtime, with SUITES=1 its own suites too; next: the newest beta of Kubernetes (REPLACE="module@version=module@version")
	@$(GO) run ./hack/modules $@ $(if $(filter next,$@),$(REPLACE)) $(if $(filter minors,$@),$(if $(SUITES),suites))
cross: ## vet every module for other systems (CROSS="system/processor ...")
	@$(GO) run ./hack/modules cross $(or $(CROSS),darwin/arm64 windows/amd64)
crds: ## write the CustomResourceDefinitions of the examples from their types
	$(GO) run ./cmd/flyball crds -C examples/operator -o config/crd.yaml ./api/...
control-plane clean-cache: ## build etcd, kube-apiserver and kubectl into the user's cache, once; clean-cache removes them, and what guests have copied
	@$(GO) run ./hack/controlplane $(if $(filter clean-cache,$@),-clean)
bridge: need-go control-plane ## test the bridge for controller-runtime and its example, and run controller-runtime's own suites and three operators' on it
	$(RACE) ./bridge/controllerruntime/... ./examples/controllerruntime/...
	cd hack/guests/controllerruntime && GOWORK=off $(GO) test -count=1 -timeout 90m -run '^Test(Suites|Operators)_On(FlyballsInformers|TheBridge)$$' .
guests: control-plane ## run programs of others on flyball, on the simulated and on a real server (GUESTS="name ...")
	@$(GO) run ./hack/modules guests $(GUESTS)
scaffold: control-plane ## write three operators with flyball new, run their tests on simulated and real API servers, and type the guide's commands with empty caches
	$(GO) test -count=1 -timeout $(TIMEOUT) ./cmd/flyball -run _Q1 -whole
	kubectl="$$($(GO) run ./hack/controlplane)/kubectl" && cd hack/tools && GOWORK=off $(GO) test -count=1 -timeout $(TIMEOUT) -run _Q1 ./release -kubectl "$$kubectl"
simulation: ## run the example and the kit's programs under SEEDS seeds (200), each with other faults, and replicas alone under MEMBERS (1000)
	@$(GO) run ./hack/test -fresh -seeds $(or $(SEEDS),200) sweeps-website sweeps-replicas sweeps-doubts sweeps-kit
	@$(GO) run ./hack/test -fresh -seeds $(or $(MEMBERS),1000) sweeps-members
own-events: ; FLYBALL_OWN_EVENTS_SEEDS=$(or $(SEEDS),200) $(GO) test -count=1 -timeout 2h -run '^TestOwnEvents_EachForeignWriteWakes_R15' -v ./simulate/simtest ## run two writers under SEEDS seeds (200): each foreign write wakes (SEEDS=10000, some ten minutes)
zoo: ## measure how many seeds find each bug planted in the zoo's operators, and run those without a bug (ZOO_STARTS=n, some 5 minutes)
	$(GO) test -count=1 -timeout 3h -run '^TestZoo_(OperatorsWithoutABugAreRight|SeedsToFindEachBug)' -v ./simulate/kit/zoo -zoo.right=300 -zoo.starts=$(or $(ZOO_STARTS),25) -zoo.most=$(or $(ZOO_MOST),1000)
doctor: ## measure doctor's figures in docs/doctor-bugs.md: bugs that are published and planted, replays, operators that are right (DOCTOR=10m for each, some 3 hours)
	$(GO) test -count=1 -p 1 -timeout 12h -v -run '^TestZoo_(Doctor|FindsPlanted|FindingsReplay|TheRightOperator)' ./simulate/kit/zoo ./bridge/controllerruntime/zoo -zoo.all -zoo.budget=$(or $(DOCTOR),10m)
	$(GO) test -count=1 -p 1 -timeout 3h -v -run '^Test(Doctor|Command_ExaminesASuite)' ./simulate/doctor $(addprefix ./examples/,website operator controllerruntime/cmd configmapsync dynamic) -doctor.budget=$(or $(DOCTOR),10m) && cd hack/guests/kubernetes && GOWORK=off $(GO) test -count=1 -timeout 3h -v -run '^TestDoctor' . -doctor.budget=$(or $(DOCTOR),10m)
transcripts: control-plane ## hold the transcripts against a real server; UPDATE=1 writes what it answers; SEEDS=n compares n programs on both
	kept=$$(mktemp -d) && $(if $(SEEDS),$(GO) test -count=1 -timeout $(TIMEOUT) -run TestRealPrograms ./simulate/internal/transcript/recorded -seeds=$(SEEDS) -golden="$$kept" -update && \
		$(GO) test -count=1 -timeout $(TIMEOUT) -run TestPrograms ./simulate/internal/transcript -seeds=$(SEEDS) -golden="$$kept",$(GO) test -count=1 -timeout $(TIMEOUT) ./simulate/internal/transcript/recorded $(if $(UPDATE),-update)); \
		code=$$?; rm -r "$$kept"; exit $$code
hostile: control-plane ## attack an operator on a real server for HOSTILE (2m): bombs and panics at its webhooks, compressed bombs, 429s and garbage from the server
	$(GO) test -count=1 -timeout 30m -v ./hack/hostile -hostile.for $(or $(HOSTILE),2m)
soak: control-plane ## kill, compact and cut a real server at random for SOAK (5m), then compare every informer with it (SEED=n repeats the choices)
	CGO_ENABLED=1 $(GO) run -race ./hack/soak -for $(or $(SOAK),5m) -seed $(or $(SEED),0)
election: control-plane ; $(RACE) -run TestIntegration ./integration -ginkgo.focus 'two processes of an operator' ## kill, freeze, cut off and rob the leader of two processes, alone; make test does it too
oldest: need-go ## play the stories on the oldest server supported, built once beside the newest (some 10 minutes)
	KUBEBUILDER_ASSETS=$$($(GO) run ./hack/controlplane -oldest) $(RACE) -run 'TestIntegration|TestControlPlane' $(or $(OLDEST_TESTS),./integration ./examples/website)
fuzz: ; @$(GO) run ./hack/modules fuzz $(or $(FUZZTIME),10s) ## run each fuzz target for FUZZTIME (10s)
mutants: ## remove each promise's guard in turn and see its test fail (MUTANTS=glob)
	$(GO) run ./hack/mutants $(if $(MUTANTS),'$(MUTANTS)')
bench: ## run the benchmarks beside the peers' in turns, and print medians and ratios (BENCH=regexp BENCHCOUNT=n BENCHTIME=1s)
	cd hack/tools && for i in $$(seq $(or $(BENCHCOUNT),1)); do GOWORK=off $(GO) test -run '^$$' -bench '$(or $(BENCH),.)' -benchtime $(or $(BENCHTIME),1s) -benchmem -timeout 2h ./bench; done \
		| tee /dev/stderr | GOWORK=off $(GO) run ./bench/ratios
peak: ## draw the memory of the example for controller-runtime without and with the line, on a cluster of 25,000 objects (some 2 minutes)
	cd hack/tools && GOWORK=off $(GO) test -count=1 -timeout $(TIMEOUT) -v -run '^TestPeak$$' ./bench -peak ../../../examples/controllerruntime/peak.svg
browser: ; cd hack/tools && GOWORK=off $(GO) test -count=1 -timeout $(TIMEOUT) -v ./browser ## open each page of the console in Chromium, with faults, on phone and desktop; skipped where there is no Chromium
release: ## run make cold, then commit and tag a version of every module that users get (VERSION=v0.2.0); pushes nothing
	cd hack/tools && GOWORK=off $(GO) run ./release -version '$(VERSION)' -dir ../.. -check
	@$(MAKE) cold
	cd hack/tools && GOWORK=off $(GO) run ./release -version '$(VERSION)' -dir ../..
release-dry: ## release a copy of this tree, and install its programs from it as users do (some 3 minutes the first time)
	cd hack/tools && GOWORK=off $(GO) test -count=1 -timeout $(TIMEOUT) ./release
sbom: ## write what a program was built of as SPDX 2.3 in JSON (PROGRAM=file SBOM=file)
	$(GO) run ./cmd/flyball pack sbom -o '$(or $(SBOM),sbom.spdx.json)' '$(PROGRAM)'
sign: ## sign an image, and attest its SBOM, with cosign; skipped where there is none (IMAGE=name@sha256:... SBOM=file)
	@case "$(IMAGE)" in *@sha256:*) ;; *) echo "sign: give IMAGE with its digest, such as registry.example/website@sha256:..."; exit 2;; esac
	@if command -v cosign >/dev/null || test -n "$(SIGN_REQUIRED)"; then cosign sign --yes '$(IMAGE)' && cosign attest --yes --type spdxjson --predicate '$(or $(SBOM),sbom.spdx.json)' '$(IMAGE)'; \
		else echo "sign: SKIPPED: there is no cosign on this machine; the image is not signed"; fi
site: hack/site/node_modules/.package-lock.json ## build the documentation as a site into hack/site/dist, and fail on a dead link; needs Node.js 20
site-serve: hack/site/node_modules/.package-lock.json ## serve what make site has built on 127.0.0.1:4173 (PORT=n)
site-versions: hack/site/node_modules/.package-lock.json ## build the site of main and of every release in CHANGELOG.md, each from its tag
site site-serve site-versions:
	cd hack/site && npm run --silent $(or $(subst site-,,$(filter site-%,$@)),build)
hack/site/node_modules/.package-lock.json: hack/site/package-lock.json
	@command -v npm >/dev/null || { echo "make: the site needs Node.js 20 or newer, with npm: https://nodejs.org, or your system's packages nodejs and npm" >&2; exit 1; }
	cd hack/site && npm ci --ignore-scripts --no-audit --no-fund
need-go:
	@command -v $(GO) >/dev/null || { echo "make: no $(GO) command found; install Go 1.26 or newer: https://go.dev/dl" >&2; exit 1; }
	@said=$$($(GO) list -m 2>&1) || { echo "$$said" >&2; case "$$said" in *"requires go"*) \
		echo "make: install the Go that go.mod asks for, https://go.dev/dl, or unset GOTOOLCHAIN so that Go downloads it" >&2;; esac; exit 1; }
	@dir=$${TMPDIR:-/tmp}; test -d "$$dir" && test -w "$$dir" || { echo "make: $$dir, for temporary files, cannot be written; set TMPDIR to a directory that can" >&2; exit 1; }
