package fakehost

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Survivors lists the live processes whose environment has CASE_ID=caseID, at the start
// of the process. Zombies are not alive; this process itself is not counted.
func Survivors(caseID string) ([]Survivor, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	mark := []byte(EnvCase + "=" + caseID + "\x00")
	var out []Survivor
	for _, dir := range dirs {
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || !bytes.Contains(append([]byte{0}, env...), append([]byte{0}, mark...)) {
			continue // gone, of another user, or not of this case
		}
		s := Survivor{}
		if s.PID, err = strconv.Atoi(filepath.Base(dir)); err != nil || s.PID == os.Getpid() {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue
		}
		// "pid (name) state ppid": the name may hold blanks and brackets.
		rest := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(rest) < 2 || rest[0] == "Z" || rest[0] == "X" {
			continue
		}
		s.State = rest[0][0]
		if s.PPID, err = strconv.Atoi(rest[1]); err != nil {
			continue
		}
		cmd, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil {
			continue
		}
		s.Args = strings.TrimSpace(string(bytes.ReplaceAll(cmd, []byte{0}, []byte{' '})))
		out = append(out, s)
	}
	return out, nil
}
