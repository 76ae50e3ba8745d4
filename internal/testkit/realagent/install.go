package realagent

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// The exact versions, with the checksums of every package.
var (
	//go:embed package.json
	packageJSON []byte
	//go:embed package-lock.json
	packageLock []byte
)

// EnvCache names the folder under which the agents are installed.
const EnvCache = "AKK_AGENT_CACHE"

const complete = ".complete" // written after a whole installation

// Packages is a package.json and its lock file: exact npm packages. The one of the agents
// is [Agents].
type Packages struct{ JSON, Lock []byte }

// Agents are the pinned agents, about 700 MB.
var Agents = Packages{packageJSON, packageLock}

func cacheRoot() (string, error) {
	if root := os.Getenv(EnvCache); root != "" {
		return root, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("realagent: %w; set %s", err, EnvCache)
	}
	return filepath.Join(cache, "akk-agents"), nil
}

func (p Packages) dir() (string, error) {
	root, err := cacheRoot()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append(append([]byte{}, p.JSON...), p.Lock...))
	return filepath.Join(root, fmt.Sprintf("%x", sum[:8])), nil
}

// Installed returns the folder with the executables if they are installed.
func (p Packages) Installed() (bin string, ok bool) {
	dir, err := p.dir()
	if err != nil {
		return "", false
	}
	_, err = os.Stat(filepath.Join(dir, complete))
	return filepath.Join(dir, "node_modules", ".bin"), err == nil
}

// Install installs the packages with npm ci if they are not yet there, from the npm
// registry, and returns the folder with their executables. Several processes may call it
// at once: one installs, the others wait for it.
func (p Packages) Install(ctx context.Context) (bin string, err error) {
	if bin, ok := p.Installed(); ok {
		return bin, nil
	}
	dir, err := p.dir()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("realagent: %w", err)
	}
	unlock, err := lock(filepath.Join(filepath.Dir(dir), filepath.Base(dir)+".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if bin, ok := p.Installed(); ok {
		return bin, nil
	}
	for name, data := range map[string][]byte{"package.json": p.JSON, "package-lock.json": p.Lock} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return "", fmt.Errorf("realagent: %w", err)
		}
	}
	cmd := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("realagent: npm ci in %s: %w: %s", dir, err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, complete), nil, 0o644); err != nil {
		return "", fmt.Errorf("realagent: %w", err)
	}
	bin, _ = p.Installed()
	return bin, nil
}

// lock waits for the exclusive lock of path.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("realagent: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("realagent: lock %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}
