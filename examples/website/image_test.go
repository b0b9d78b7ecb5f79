// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
)

const dockerfile = "deploy/Dockerfile"

// buildStep returns the command that the Dockerfile's RUN executes in this directory.
func buildStep() (string, error) {
	text, err := os.ReadFile(dockerfile)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", " ")) {
		if step, run := strings.CutPrefix(line, "RUN "); run && strings.Contains(step, "go build") {
			return regexp.MustCompile(`--mount=\S+`).ReplaceAllString(step, ""), nil
		}
	}
	return "", fmt.Errorf("%s has no RUN with go build", dockerfile)
}

// buildImage runs that step for a platform, without a container, and returns the program
// that it creates in dir.
func buildImage(ctx context.Context, dir, goos, goarch string) (string, error) {
	step, err := buildStep()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "website-"+goos+"-"+goarch)
	here := strings.Replace(step, "-o /website", "-o '"+path+"'", 1)
	if here == step {
		return "", fmt.Errorf("%s does not build /website: %s", dockerfile, step)
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", here)
	cmd.Env = append(os.Environ(), "TARGETOS="+goos, "TARGETARCH="+goarch, "GOFLAGS=-mod=readonly")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", here, err, out)
	}
	return path, nil
}

// imageDir is where imageProgram builds; TestMain removes it.
var imageDir = filepath.Join(os.TempDir(), fmt.Sprint("website-image-", os.Getpid()))

// imageProgram is the image's program, built for this machine.
var imageProgram = sync.OnceValues(func() (string, error) {
	if err := os.MkdirAll(imageDir, 0o700); err != nil {
		return "", err
	}
	return buildImage(context.Background(), imageDir, runtime.GOOS, runtime.GOARCH)
})

// The image contains only this file, so the file must have no dependencies.
func TestImage_HasAStaticProgramWithoutTheSimulation(t *testing.T) {
	path, err := imageProgram()
	if err == nil && runtime.GOOS != "linux" {
		path, err = buildImage(t.Context(), t.TempDir(), "linux", runtime.GOARCH)
	}
	if err != nil {
		t.Fatal(err)
	}
	program, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	for _, part := range program.Progs {
		if part.Type == elf.PT_INTERP || part.Type == elf.PT_DYNAMIC {
			t.Errorf("the program has %s: it is linked dynamically, and the image has no libraries", part.Type)
		}
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range info.Deps {
		if strings.HasSuffix(module.Path, "flyball/simulate") {
			t.Errorf("the program has %s: a simulated API server is for trying out", module.Path)
		}
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	for key, want := range map[string]string{"-tags": "production", "-trimpath": "true", "CGO_ENABLED": "0"} {
		if settings[key] != want {
			t.Errorf("it was built with %s=%q, want %q", key, settings[key], want)
		}
	}
}

func TestImage_IsOfAUserWithoutRightsAndOfTheModulesGo(t *testing.T) {
	text, err := os.ReadFile(dockerfile)
	if err != nil {
		t.Fatal(err)
	}
	// The kubelet recognizes a user other than root only by its number.
	if !regexp.MustCompile(`(?m)^USER [1-9]\d*(:[1-9]\d*)?$`).Match(text) {
		t.Errorf("%s names no user by its number; with runAsNonRoot the kubelet would not start it", dockerfile)
	}
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(mod)
	if version == nil || !strings.Contains(string(text), "golang:"+string(version[1])+" ") {
		t.Errorf("%s does not build with golang:%s, which go.mod asks for", dockerfile, version[1])
	}
}
