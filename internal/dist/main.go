// Command dist makes the archives of a release: the five programs for each platform, with
// completions, man pages and an install note, and their checksums. The same commit always
// gives the same bytes: no clock, no user, no path and no order of a map is in them.
//
// It is run by `make dist` and is part of no archive. It publishes nothing.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// platforms are what a release is built for.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"}

// programs are the packages of a release with the names of their programs.
var programs = [][2]string{{"bridge", "agent-knock-knock"}, {"monitor", "akk-monitor"}, {"worker", "akk-callback"}, {"internal/top/akktop", "akk-top"}, {"internal/telemetry/akktelemetry", "akk-telemetry"}}

const versionVar = "github.com/agent-knock-knock/akk/internal/version.Version"

type release struct {
	version   string
	epoch     time.Time
	out       string
	platforms []string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var r release
	var epoch int64
	var only string
	flag.StringVar(&r.version, "version", "", "the release")
	flag.Int64Var(&epoch, "epoch", 0, "time of every file, in seconds: that of the commit")
	flag.StringVar(&r.out, "out", "dist", "folder to make")
	flag.StringVar(&only, "platforms", strings.Join(platforms, ","), "os/arch, with commas")
	flag.Parse()
	r.epoch, r.platforms = time.Unix(epoch, 0).UTC(), strings.Split(only, ",")
	if err := r.make(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func (r release) make(ctx context.Context) error {
	if r.version == "" || r.epoch.Unix() <= 0 {
		return errors.New("-version and -epoch are needed")
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	common, err := documents(r.version, r.epoch)
	if err != nil {
		return err
	}
	var sums []string
	for _, p := range r.platforms {
		name := fmt.Sprintf("agent-knock-knock_%s_%s", r.version, strings.ReplaceAll(p, "/", "_"))
		entries := slices.Clone(common)
		for _, program := range programs {
			body, err := r.build(ctx, p, program[0])
			if err != nil {
				return err
			}
			entries = append(entries, entry{name: program[1], body: body, program: true})
		}
		data, err := archive(name, entries, r.epoch)
		if err != nil {
			return err
		}
		file := name + ".tar.gz"
		if err := os.WriteFile(filepath.Join(r.out, file), data, 0o644); err != nil {
			return err
		}
		sum := fmt.Sprintf("%x  %s", sha256.Sum256(data), file)
		sums = append(sums, sum)
		fmt.Fprintln(os.Stderr, sum)
	}
	slices.Sort(sums)
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(strings.Join(sums, "\n")+"\n"), 0o644)
}

// build compiles one program for one platform.
func (r release) build(ctx context.Context, platform, pkg string) ([]byte, error) {
	goos, arch, ok := strings.Cut(platform, "/")
	if !ok {
		return nil, fmt.Errorf("%q is no os/arch", platform)
	}
	dir, err := os.MkdirTemp("", "dist")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "program")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", "grpcnotrace",
		"-ldflags", "-s -w -buildid= -X "+versionVar+"="+r.version, "-o", bin, "./"+pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+arch, "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s for %s: %w: %s", pkg, platform, err, out)
	}
	return os.ReadFile(bin)
}
