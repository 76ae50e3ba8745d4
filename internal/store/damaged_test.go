package store_test

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/store"
)

// A reader may never write, so that it may not write says nothing: who looks at a Store
// asks whether its file is of a newer release.
func TestAReaderTellsAFileOfANewerRelease(t *testing.T) {
	for name, change := range map[string]string{"ours": "UPDATE meta SET writer_protocol = writer_protocol", "protocol": "UPDATE meta SET writer_protocol = 99", "schema": "PRAGMA user_version = 99"} {
		dir := t.TempDir()
		if err := open(t, dir).Update(t.Context(), func(tx *store.Tx) error { _, err := tx.Exec(change); return err }); err != nil {
			t.Fatal(err)
		}
		reader, err := store.Open(t.Context(), dir, store.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		err = reader.CheckRelease()
		if name == "ours" {
			if err != nil {
				t.Errorf("ours: %v", err)
			}
			continue
		}
		if _, _, hint := fault.Public(err); !fault.Is(err, store.CodeIncompatible) || !strings.Contains(hint, "--store-dir") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A file that was damaged is not called a stranger's: its owner has a copy to bring back.
func TestADamagedFileIsCalledDamagedAndLeftAlone(t *testing.T) {
	for name, damage := range map[string]func(b []byte) []byte{
		"head":  func(b []byte) []byte { return append(make([]byte, 4096), b[4096:]...) },
		"cut":   func(b []byte) []byte { return b[:5000] },
		"pages": func(b []byte) []byte { return append(b[:4096:4096], bytes.Repeat([]byte{0xa5}, len(b)-4096)...) },
		"text":  func([]byte) []byte { return []byte(strings.Repeat("this is no database\n", 500)) },
	} {
		dir := filepath.Join(t.TempDir(), "s")
		open(t, dir).Close()
		file := filepath.Join(dir, store.FileName)
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		bad := damage(whole)
		if err := os.WriteFile(file, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, o := range []store.Options{{ReadOnly: true}, {}} {
			db, err := store.Open(t.Context(), dir, o)
			if err == nil {
				db.Close()
			}
			_, msg, hint := fault.Public(err)
			if !store.Damaged(err) || !fault.Is(err, store.CodeStorage) || !strings.Contains(msg, "damaged") || !strings.Contains(msg, file) || !strings.Contains(hint, "copy") {
				t.Errorf("%s, read only %v: %v", name, o.ReadOnly, err)
			}
		}
		if after, err := os.ReadFile(file); err != nil || string(after) != string(bad) {
			t.Errorf("%s: the file was changed, %v", name, err)
		}
	}
}

func TestADatabaseOfAnotherProgramIsNotCalledDamaged(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, store.FileName)
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("CREATE TABLE theirs (x)"); err != nil {
		t.Fatal(err)
	}
	db.Close()
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = store.Open(t.Context(), dir, store.Options{ReadOnly: true})
	if store.Damaged(err) || !fault.Is(err, store.CodeStorage) || !strings.Contains(err.Error(), "not a Store of this product") {
		t.Error(err)
	}
}
