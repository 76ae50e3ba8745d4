// Package skillfind looks for SKILL.md files below the active roots of a project. It is
// the only part of the ledger that reads a root, and it reads only: at most
// [ledger.MaxSkillFile] bytes of files whose names it expects.
//
// Every file is opened through [os.Root], so that neither "..", nor an absolute path, nor
// a symlink leads out of the root. What cannot be read is not there.
package skillfind

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/agent-knock-knock/akk/internal/ledger"
)

const (
	maxBases  = 64  // below one root
	maxSkills = 500 // below one base
)

// Finder reads the disk.
type Finder struct{}

// Find returns the skills of every active root, in the order of roots, bases and names.
func (Finder) Find(ctx context.Context, p ledger.Project) ([]ledger.FoundSkill, error) {
	var out []ledger.FoundSkill
	for _, r := range p.Roots {
		if !r.Active || r.Path == "" {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		root, err := os.OpenRoot(r.Path)
		if err != nil {
			continue
		}
		for _, b := range bases(root, r, p.ContextSources) {
			out = append(out, b.skills(root, r.ID)...)
		}
		root.Close()
	}
	return out, nil
}

// base is a folder that holds one folder for each skill.
type base struct {
	dir  string
	refs []string // the context sources that named it
}

func bases(root *os.Root, r ledger.Root, sources []ledger.Source) []base {
	var out []base
	add := func(dir, ref string) {
		i := slices.IndexFunc(out, func(b base) bool { return b.dir == dir })
		if i < 0 {
			if len(out) == maxBases {
				return
			}
			out = append(out, base{dir: dir})
			i = len(out) - 1
		}
		if ref != "" && !slices.Contains(out[i].refs, ref) {
			out[i].refs = append(out[i].refs, ref)
		}
	}
	for _, dir := range ledger.SkillBases {
		add(dir, "")
	}
	for _, s := range sources {
		if !guides(s, r) {
			continue
		}
		file := path.Clean(strings.TrimPrefix(s.Locator, "./"))
		text, whole, err := read(root, file)
		if err != nil || !whole {
			continue
		}
		for _, dir := range named(path.Dir(file), text) {
			add(dir, s.ID)
		}
	}
	return out
}

func (b base) skills(root *os.Root, rootID string) []ledger.FoundSkill {
	dir, err := root.Open(b.dir)
	if err != nil {
		return nil
	}
	entries, err := dir.ReadDir(maxSkills)
	dir.Close()
	if err != nil {
		return nil
	}
	slices.SortFunc(entries, func(x, y fs.DirEntry) int { return strings.Compare(x.Name(), y.Name()) })
	var out []ledger.FoundSkill
	for _, e := range entries {
		file := path.Join(b.dir, e.Name(), "SKILL.md")
		text, _, err := read(root, file)
		if err != nil {
			continue
		}
		s := ledger.ReadSkill(e.Name(), text)
		if s.ID == "" {
			continue
		}
		s.Path, s.RootID, s.SourceRefs = file, rootID, b.refs
		out = append(out, s)
	}
	return out
}

// read returns the beginning of a regular file and whether that is all of it.
func read(root *os.Root, name string) (text string, whole bool, err error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would wait for ever
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", false, err
	}
	if !info.Mode().IsRegular() {
		return "", false, fs.ErrInvalid
	}
	b, err := io.ReadAll(io.LimitReader(f, ledger.MaxSkillFile+1))
	if err != nil {
		return "", false, err
	}
	whole = len(b) <= ledger.MaxSkillFile
	return strings.ToValidUTF8(string(b[:min(len(b), ledger.MaxSkillFile)]), "�"), whole, nil
}
