// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// repository returns one with a module below its top, of two modules.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for file, text := range map[string]string{
		"operator/go.mod":       "module github.com/me/fleet/operator\n\ngo 1.26.0\n\nrequire example.com/part v0.0.0\n\nreplace example.com/part => ../part\n",
		"operator/main.go":      "package main\n\nimport (\n\t_ \"embed\"\n\n\t\"example.com/part\"\n)\n\n//go:embed text.txt\nvar text string\n\nfunc main() { println(text, part.One) }\n",
		"operator/simulated.go": "//go:build !production\n\npackage main\n\nfunc init() { undefined() }\n",
		"operator/text.txt":     "embedded\n",
		"operator/README.md":    "not in the program\n",
		"part/go.mod":           "module example.com/part\n\ngo 1.26.0\n",
		"part/part.go":          "package part\n\nconst One = 1\n",
		".gitignore":            "ignored.go\n",
	} {
		write(t, filepath.Join(dir, filepath.FromSlash(file)), text)
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"}, {"config", "user.name", "Test"}, {"config", "user.email", "test@example.com"},
		{"config", "commit.gpgsign", "false"}, {"add", "--all"}, {"commit", "--quiet", "--message", "all", "--date", "2030-01-02T03:04:05+02:00"},
	} {
		mustRun(t, dir, "git", args...)
	}
	return dir
}

func TestImage_SameCommitSameDigest_L1(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it needs a shell")
	}
	origin := repository(t)
	clone := filepath.Join(t.TempDir(), "another", "directory")
	mustRun(t, origin, "git", "clone", "--quiet", origin, clone)
	first := mustPack(t, "image", "-C", filepath.Join(origin, "operator"), "-o", "dist/image")

	// Another directory, time of the files, umask, order, tag, remote, and environment.
	mustRun(t, clone, "git", "remote", "set-url", "origin", "git@example.com:me/fleet.git")
	mustRun(t, clone, "git", "-c", "user.name=Test", "-c", "user.email=test@example.com", "tag", "-m", "v1", "operator/v1.2.3")
	long := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := os.Chtimes(filepath.Join(clone, "operator", "main.go"), long, long); err != nil {
		t.Fatal(err)
	}
	this, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `umask 077 && exec "$0" image -o "$1" -platform linux/arm64,linux/amd64`, this, filepath.Join(t.TempDir(), "out"))
	cmd.Dir = filepath.Join(clone, "operator")
	cmd.Env = append(os.Environ(), asPack+"=1", "TZ=Asia/Tokyo", "GOFLAGS=-race", "GOAMD64=v3", "CGO_ENABLED=1", "GOWORK=", "GOEXPERIMENT=nosuch", "SOURCE_DATE_EPOCH=1")
	cmd.Stderr = os.Stderr
	second, err := cmd.Output()
	if err != nil || string(second) != first || !strings.HasPrefix(first, "sha256:") {
		t.Errorf("the digests are %q and %q (%v), want the same", first, second, err)
	}
}

// A toolchain line is the Go that builds, and not only the oldest one that may.
func TestImage_ToolchainOfTheModuleBuilds_L1(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOMODCACHE", t.TempDir())
	dir, older := repository(t), "go1.26.0"
	if runtime.Version() == older {
		older = "go1.26.1"
	}
	mod := filepath.Join(dir, "operator", "go.mod")
	write(t, mod, strings.Replace(read(t, mod), "go 1.26.0\n", "go 1.26.0\n\ntoolchain "+older+"\n", 1))
	mustRun(t, dir, "git", "commit", "--quiet", "--all", "--message", "toolchain")
	code, _, messages := pack(t, "image", "-C", filepath.Join(dir, "operator"), "-o", "dist", "-platform", "linux/"+runtime.GOARCH)
	if code != failure || !strings.Contains(messages, older) {
		t.Errorf("exit code %d, want %d, because %s is not there:\n%s", code, failure, older, messages)
	}
}

func TestImage_IsTheProgramOfAUserWithoutRights_L2(t *testing.T) {
	dir := repository(t)
	sboms := filepath.Join(t.TempDir(), "sboms")
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true)))
	defer server.Close()
	image := strings.TrimPrefix(server.URL, "http://") + "/me/operator:v1"
	said := strings.TrimSpace(mustPack(t, "image", "-C", filepath.Join(dir, "operator"), "-o", "dist/image", "-sbom", sboms, "-image", image, "-push"))

	tag, err := name.ParseReference(image)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(tag, remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	digest, err := index.Digest()
	if err != nil || said != strings.TrimSuffix(image, ":v1")+"@"+digest.String() {
		t.Errorf("the command prints %q, and the registry has %s (%v)", said, digest, err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	written, err := layout.ImageIndexFromPath(filepath.Join(dir, "operator", "dist", "image"))
	if err != nil {
		t.Fatal(err)
	}
	top, err := written.IndexManifest()
	if err != nil || top.Manifests[0].Digest != digest || top.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "v1" || len(top.Manifests) != 3 {
		t.Errorf("the layout has %+v (%v), want the image as v1 and two SBOMs", top, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, one := range manifest.Manifests {
		platforms = append(platforms, one.Platform.String())
		img, err := index.Image(one.Digest)
		if err != nil {
			t.Fatal(err)
		}
		checkImage(t, dir, img, *one.Platform)
		checkReferrer(t, tag.Context().Digest(one.Digest.String()), read(t, filepath.Join(sboms, "operator-linux-"+one.Platform.Architecture+".spdx.json")))
	}
	if !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("the platforms are %v", platforms)
	}
}

// checkImage checks the image for one platform.
func checkImage(t *testing.T, dir string, img v1.Image, platform v1.Platform) {
	t.Helper()
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	commit := mustRun(t, dir, "git", "rev-parse", "HEAD")
	want := map[string]string{"org.opencontainers.image.revision": commit, "org.opencontainers.image.source": "https://github.com/me/fleet"}
	manifest, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range want {
		if manifest.Annotations[key] != value || config.Config.Labels[key] != value {
			t.Errorf("%s is annotated with %q and labelled with %q, want %q", key, manifest.Annotations[key], config.Config.Labels[key], value)
		}
	}
	if config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/operator"}) || config.Architecture != platform.Architecture {
		t.Errorf("the configuration is %+v", config)
	}
	if at := mustRun(t, dir, "git", "log", "-1", "--format=%ct"); strconv.FormatInt(config.Created.Unix(), 10) != at {
		t.Errorf("it was created at %v, want the time of the commit, %s", config.Created, at)
	}
	files := tar.NewReader(mutate.Extract(img))
	header, err := files.Next()
	if err != nil || header.Name != "operator" || header.Mode != 0o555 || header.Uid != 0 || header.Gid != 0 {
		t.Fatalf("the first file is %+v (%v)", header, err)
	}
	text, err := io.ReadAll(files)
	if err != nil {
		t.Fatal(err)
	}
	program, err := elf.NewFile(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range program.Progs {
		if part.Type == elf.PT_INTERP || part.Type == elf.PT_DYNAMIC {
			t.Errorf("the program has %s: it is linked dynamically, and the image has no libraries", part.Type)
		}
	}
	if header, err := files.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("there is another file: %+v (%v)", header, err)
	}
}

// checkReferrer checks that the SBOM of an image refers to it.
func checkReferrer(t *testing.T, image name.Digest, want string) {
	t.Helper()
	referrers, err := remote.Referrers(image)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := referrers.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("%s has the referrers %+v (%v), want one", image, manifest, err)
	}
	artifact, err := remote.Image(image.Context().Digest(manifest.Manifests[0].Digest.String()))
	if err != nil {
		t.Fatal(err)
	}
	about, err := artifact.Manifest()
	if err != nil || about.ArtifactType != "application/spdx+json" || about.Subject.Digest.String() != image.DigestStr() {
		t.Errorf("the artifact is %+v (%v), want an SBOM of %s", about, err, image)
	}
	layers, err := artifact.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("the SBOM has %d layers (%v), want one", len(layers), err)
	}
	content, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(content)
	if err != nil || string(text) != want {
		t.Errorf("the SBOM differs from the file (%v):\n%s", err, text)
	}
	for _, part := range []string{`"example.com/part"`, `"github.com/me/fleet/operator"`, `"stdlib"`} {
		if !strings.Contains(want, `"name": `+part) {
			t.Errorf("the SBOM does not name %s:\n%s", part, want)
		}
	}
}

func TestImage_OtherFilesThanTheCommitsAreRefusedOrMarked_L3(t *testing.T) {
	for _, c := range []struct {
		name, file, text string
		want             string // empty: the file is not in the program
	}{
		{"a changed file", "operator/main.go", "package main\n\nfunc main() {}\n", "operator/main.go was changed"},
		{"an embedded file", "operator/text.txt", "other\n", "operator/text.txt was changed"},
		{"a new file", "operator/new.go", "package main\n", "operator/new.go is not in the commit"},
		{"an ignored file", "operator/ignored.go", "package main\n", "operator/ignored.go is not in the commit"},
		{"a profile", "operator/default.pgo", "", "operator/default.pgo is not in the commit"},
		{"a replaced module", "part/part.go", "package part\n\nconst One = 2\n", "part/part.go was changed"},
		{"go.mod of a replaced module", "part/go.mod", "module example.com/part\n\ngo 1.26.0\n\n", "part/go.mod was changed"},
		{"another file", "operator/README.md", "changed\n", ""},
		{"a file of other tags", "operator/simulated.go", "//go:build !production\n\npackage main\n", ""},
		{"a test", "operator/main_test.go", "package main\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := repository(t)
			write(t, filepath.Join(dir, filepath.FromSlash(c.file)), c.text)
			args := []string{"image", "-C", filepath.Join(dir, "operator"), "-o", "dist", "-platform", "linux/" + runtime.GOARCH}
			code, _, messages := pack(t, args...)
			if c.want == "" {
				if code != success {
					t.Errorf("exit code %d\n%s", code, messages)
				}
				return
			}
			if code != failure || !strings.Contains(messages, c.want) || !strings.Contains(messages, "-dirty") {
				t.Fatalf("exit code %d, want %d, and %q in\n%s", code, failure, c.want, messages)
			}
			if _, err := os.Stat(filepath.Join(dir, "operator", "dist")); err == nil {
				t.Error("an image was written")
			}
			code, _, messages = pack(t, append(args, "-dirty")...)
			if code != success || !strings.Contains(messages, c.want) {
				t.Fatalf("with -dirty: exit code %d, want a warning with %q\n%s", code, c.want, messages)
			}
			index, err := layout.ImageIndexFromPath(filepath.Join(dir, "operator", "dist"))
			if err != nil {
				t.Fatal(err)
			}
			top, err := index.IndexManifest()
			if err != nil {
				t.Fatal(err)
			}
			nested, err := index.ImageIndex(top.Manifests[0].Digest)
			if err != nil {
				t.Fatal(err)
			}
			manifest, err := nested.IndexManifest()
			if err != nil || !strings.HasSuffix(manifest.Annotations["org.opencontainers.image.revision"], "-dirty") {
				t.Errorf("the annotations are %v (%v), want a revision that ends in -dirty", manifest.Annotations, err)
			}
		})
	}
}

func TestImage_CertificatesAreOfTheCommit_L3(t *testing.T) {
	dir, elsewhere := repository(t), filepath.Join(t.TempDir(), "ca.crt")
	write(t, filepath.Join(dir, "ca.crt"), "certificates\n")
	write(t, elsewhere, "certificates\n")
	args := []string{"image", "-C", filepath.Join(dir, "operator"), "-o", "dist", "-platform", "linux/" + runtime.GOARCH, "-ca-certificates"}
	for file, want := range map[string]string{"../ca.crt": "ca.crt is not in the commit", elsewhere: "ca.crt is outside the repository"} {
		if code, _, messages := pack(t, append(args, file)...); code != failure || !strings.Contains(messages, want) {
			t.Errorf("%s: exit code %d, want %d, and %q in\n%s", file, code, failure, want, messages)
		}
	}
	mustRun(t, dir, "git", "add", "ca.crt")
	mustRun(t, dir, "git", "commit", "--quiet", "--message", "certificates")
	mustPack(t, append(args, "../ca.crt")...)
}

func TestImage_AModuleOutsideTheRepositoryIsNamedOnce_L3(t *testing.T) {
	dir, part := repository(t), filepath.Join(t.TempDir(), "part")
	if err := os.Rename(filepath.Join(dir, "part"), part); err != nil {
		t.Fatal(err)
	}
	mod := filepath.Join(dir, "operator", "go.mod")
	write(t, mod, strings.Replace(read(t, mod), "../part", strconv.Quote(part), 1))
	mustRun(t, dir, "git", "commit", "--quiet", "--all", "--message", "outside")
	code, _, messages := pack(t, "image", "-C", filepath.Join(dir, "operator"), "-o", "dist", "-platform", "linux/"+runtime.GOARCH)
	if code != failure || strings.Count(messages, "the module example.com/part is outside the repository") != 1 || strings.Count(messages, "\n") != 2 {
		t.Errorf("exit code %d, want %d, and one line on the module:\n%s", code, failure, messages)
	}
}

func TestImage_OutsideARepositoryIsExplained_L3(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(dir))
	write(t, filepath.Join(dir, "go.mod"), "module example.com/me/operator\n\ngo 1.26.0\n")
	write(t, filepath.Join(dir, "main.go"), "package main\n\nfunc main() {}\n")
	code, _, messages := pack(t, "image", "-C", dir, "-o", "dist")
	if code != failure || !strings.Contains(messages, "git init") {
		t.Errorf("exit code %d, want %d, and git init in\n%s", code, failure, messages)
	}
}

func TestImage_ArchiveIsTheLayoutWithoutSBOMs(t *testing.T) {
	dir := repository(t)
	args := []string{"image", "-C", filepath.Join(dir, "operator"), "-platform", "linux/" + runtime.GOARCH, "-image", "registry.example.com/operator:v1", "-o"}
	mustPack(t, append(args, "dist/layout")...)
	for range 2 {
		mustPack(t, append(args, "dist/image.tar")...)
	}
	archive, err := os.Open(filepath.Join(dir, "operator", "dist", "image.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	files, count := tar.NewReader(archive), 0
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeDir {
			continue
		}
		count++
		text, err := io.ReadAll(files)
		if header.Name == "index.json" {
			if names := `"io.containerd.image.name": "registry.example.com/operator:v1"`; strings.Count(string(text), `"digest"`) != 1 || !strings.Contains(string(text), names) {
				t.Errorf("the index has other images, or not %s:\n%s", names, text)
			}
		} else if err != nil || string(text) != read(t, filepath.Join(dir, "operator", "dist", "layout", header.Name)) {
			t.Errorf("%s differs from that of the layout (%v)", header.Name, err)
		}
	}
	if count != 6 { // layout, index, and of the image index, manifest, configuration, layer
		t.Errorf("the archive has %d files", count)
	}
	write(t, filepath.Join(dir, "mine.tar"), "mine")
	if code, _, messages := pack(t, append(args, "../mine.tar")...); code != failure || read(t, filepath.Join(dir, "mine.tar")) != "mine" {
		t.Errorf("exit code %d, and the file was overwritten\n%s", code, messages)
	}
}
