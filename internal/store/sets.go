package store

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
)

// Set is the tables of a domain that is optional in a Store: its own numbered migrations
// (0001_name.sql and on, at the root of Files) and its own fence against older writers.
type Set struct {
	Name  string
	Files fs.FS
	// Writer is the domain's writer protocol. A file with a higher one is only read.
	Writer int
}

// ownTables is what a file of [OpenFile] holds beside its sets.
const ownTables = `CREATE TABLE meta (
	format          INTEGER NOT NULL,
	writer_protocol INTEGER NOT NULL,
	secret          TEXT NOT NULL,
	created_at      TEXT NOT NULL
) STRICT;`

const setTable = `CREATE TABLE IF NOT EXISTS schema_set (
	name   TEXT PRIMARY KEY,
	number INTEGER NOT NULL,
	writer INTEGER NOT NULL
) STRICT;`

// OpenFile opens one database file that holds nothing but o.Sets, creating it when it may.
// Its directory must exist and keeps its mode; the file gets mode 0600, and a lock file
// stands beside it.
func OpenFile(ctx context.Context, path string, o Options) (*DB, error) {
	path, err := filePlace(path)
	if err != nil {
		return nil, err
	}
	db := newDB(filepath.Dir(path), path, o)
	db.own = true
	if o.ReadOnly {
		return db.opened(db.openReader(ctx))
	}
	return db.opened(db.openWriter(ctx, o, path+".lock"))
}

// sqliteMagic is how every SQLite database that is not empty begins (the file format's 1.3).
const sqliteMagic = "SQLite format 3\x00"

// CheckFile refuses a path that [OpenFile] can only fail on, at the cost of a look: no
// directory that may be written, or a file that is no database. It changes nothing and says
// nothing of what a database holds. No database of that path may be open in this process:
// the end of the look would drop the locks of all that have it open (POSIX record locks).
func CheckFile(path string) error {
	const op = "store.open"
	path, err := filePlace(path)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		if err := unix.Access(filepath.Dir(path), unix.W_OK|unix.X_OK); err != nil {
			return fault.Wrap(err, CodeUnwritable, op, "cannot create %s: %v", path, err).WithHint("name another file")
		}
		return nil
	}
	if _, err := checkOurs(path); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return fault.Wrap(err, CodeStorage, op, "%s cannot be read: %v", path, rootCause(err)).WithHint("check who may read it, or name another file")
	}
	defer f.Close()
	head := make([]byte, len(sqliteMagic))
	if n, _ := io.ReadFull(f, head); n > 0 && string(head[:n]) != sqliteMagic {
		return fault.New(CodeStorage, op, "%s cannot be read: it is not a SQLite database", path).WithHint("name another file")
	}
	return nil
}

// filePlace returns the absolute path of a database whose directory exists.
func filePlace(path string) (string, error) {
	const op = "store.open"
	if path == "" {
		return "", fault.New(fault.Invalid, op, "no database file given")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fault.Wrap(err, fault.Invalid, op, "the file %q has no absolute form", path)
	}
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", fault.New(CodeUnwritable, op, "%s is not a directory", dir).WithHint("make it first, or name another file")
	}
	return path, nil
}

// OpenMemory opens a Store of o.Sets that ends with the process. Readers wait for the
// writer: there is one connection.
func OpenMemory(ctx context.Context, o Options) (*DB, error) {
	db := newDB("", "", o)
	db.own = true
	name := ids.Derive("mem", string(ids.NewBridge()), string(ids.NewAttempt()))
	db.write = openPool("file:/"+name+"?vfs=memdb&_journal_mode=MEMORY&_synchronous=OFF&_foreign_keys=on&_txlock=immediate&_dqs=0", 1)
	db.read = db.write
	if err := migrate(ctx, db); err != nil {
		db.Close()
		return nil, err
	}
	if err := db.loadMeta(ctx, db.write); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

func (db *DB) place() string {
	if db.own && db.file != "" {
		return db.file
	}
	return db.dir
}

// migrateOwn makes or brings forward a file of sets, in one transaction: a start waits
// for the disk once.
func (db *DB) migrateOwn(ctx context.Context) error {
	var tables, meta int
	if err := db.write.QueryRowContext(ctx, "SELECT count(*), count(CASE WHEN name = 'meta' THEN 1 END) FROM sqlite_schema").Scan(&tables, &meta); err != nil {
		return mapError(err, "store.migrate")
	}
	if tables > 0 && meta == 0 {
		return fault.New(CodeStorage, "store.open", "%s is not a Store of this product", db.place()).WithHint("name another file")
	}
	return db.migrateSets(ctx, tables == 0)
}

func (db *DB) migrateSets(ctx context.Context, fresh bool) error {
	const op = "store.migrate"
	if len(db.sets) == 0 && !fresh {
		return nil
	}
	have, err := db.setNumbers(ctx, db.write)
	if err != nil {
		return err
	}
	type todo struct {
		set   Set
		steps []migration
		last  int
	}
	var work []todo
	for _, s := range db.sets {
		steps, err := migrationsIn(s.Files, ".")
		if err != nil {
			return fault.Wrap(err, fault.Internal, op, "this build holds a wrong list of migrations of %s", s.Name)
		}
		h := have[s.Name]
		if h.writer > s.Writer || h.number >= len(steps) {
			continue
		}
		work = append(work, todo{s, steps[h.number:], len(steps)})
	}
	if len(work) == 0 && !fresh {
		return nil
	}
	tx, err := db.write.BeginTx(ctx, nil)
	if err != nil {
		return mapError(err, op)
	}
	defer tx.Rollback()
	if fresh {
		if _, err := tx.ExecContext(ctx, ownTables); err != nil {
			return mapError(err, op)
		}
		if err := insertMeta(ctx, db, tx); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, setTable); err != nil {
		return mapError(err, op)
	}
	for _, w := range work {
		for _, m := range w.steps {
			if _, err := tx.ExecContext(ctx, m.sql); err != nil {
				return fault.Wrap(mapError(err, op), fault.Internal, op, "migration %s of %s failed", m.name, w.set.Name)
			}
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO schema_set (name, number, writer) VALUES (?, ?, ?)
			ON CONFLICT (name) DO UPDATE SET number = excluded.number, writer = excluded.writer`, w.set.Name, w.last, w.set.Writer); err != nil {
			return mapError(err, op)
		}
	}
	if err := tx.Commit(); err != nil {
		return mapError(err, op)
	}
	return nil
}

type setState struct{ number, writer int }

func (db *DB) setNumbers(ctx context.Context, pool *sql.DB) (map[string]setState, error) {
	const op = "store.open"
	out := map[string]setState{}
	var there int
	if err := pool.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE name = 'schema_set'").Scan(&there); err != nil {
		return nil, mapError(err, op)
	}
	if there == 0 {
		return out, nil
	}
	rows, err := pool.QueryContext(ctx, "SELECT name, number, writer FROM schema_set")
	if err != nil {
		return nil, mapError(err, op)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var s setState
		if err := rows.Scan(&name, &s.number, &s.writer); err != nil {
			return nil, mapError(err, op)
		}
		out[name] = s
	}
	return out, mapError(rows.Err(), op)
}

// loadSets reads the fences of the sets. A newer set only forbids writing; a set that is
// not there yet cannot be read.
func (db *DB) loadSets(ctx context.Context, pool *sql.DB) error {
	if len(db.sets) == 0 {
		return nil
	}
	have, err := db.setNumbers(ctx, pool)
	if err != nil {
		return err
	}
	for _, s := range db.sets {
		h, ok := have[s.Name]
		if !ok {
			return fault.New(fault.NotFound, "store.open", "%s holds no %s", db.place(), s.Name).WithHint("open it for writing once")
		}
		steps, err := migrationsIn(s.Files, ".")
		if err != nil {
			return fault.Wrap(err, fault.Internal, "store.open", "this build holds a wrong list of migrations of %s", s.Name)
		}
		if h.writer > s.Writer || h.number > len(steps) {
			db.newer.Store(int64(max(h.writer, h.number)))
		}
	}
	return nil
}
