// Package store is the one SQLite file of a Bridge: it opens, migrates and fences it, and
// runs transactions. It knows no table of a domain beyond its own meta table; a domain's
// SQL lives in the domain's own package and takes a *[Tx].
//
// Writes of one process queue on a mutex, writes of several processes on a flock beside
// the file: SQLite's own busy handler polls and starves writers (measured: one of four
// processes got a single transaction in five seconds), a flock queues them fairly. Every
// write transaction is BEGIN IMMEDIATE, because a deferred one that reads first fails
// with SQLITE_BUSY_SNAPSHOT whatever the busy timeout is.
package store

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/crashpoint"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/version"

	_ "modernc.org/sqlite" // the driver: pure Go, so that no C compiler is needed to install
)

// Codes of this package.
const (
	// CodeIncompatible: the Store was written by a newer release. Reading may work,
	// writing never does.
	CodeIncompatible fault.Code = "store_incompatible"
	// CodeUnwritable: the Store cannot be created or written here.
	CodeUnwritable fault.Code = "store_unwritable"
	// CodeUnsafe: a path of the Store is a symlink, of another user, or open to others.
	CodeUnsafe fault.Code = "store_unsafe"
	// CodeBusy: another process kept the Store locked for longer than LockWait.
	CodeBusy fault.Code = "store_busy"
	// CodeStorage: the disk failed or is full, or the file is damaged, see Damaged.
	CodeStorage fault.Code = "storage"
)

const (
	// FileName is the database inside the Store directory.
	FileName = "akk.db"
	// LockName is the file beside it whose flock a writer holds.
	LockName = "akk.lock"
	// Format is the file format. A higher number in the file is neither read nor written.
	Format = 1
	// LockWait bounds how long a write waits for another process.
	LockWait = 10 * time.Second
	// readers is the size of the read pool: list, status and doctor at once.
	readers = 4
)

// Options configure [Open]. The zero value opens for writing with full durability.
type Options struct {
	// ReadOnly opens without creating, migrating or ever writing.
	ReadOnly bool
	// Relaxed uses synchronous=NORMAL: commits survive a killed process but not a power
	// cut. For tests and benchmarks.
	Relaxed bool
	// Clock gives Tx.Now; nil means the system clock.
	Clock clock.Clock
	// Sets are the tables of further domains that live in the same file.
	Sets []Set
}

// DB is an open Store.
type DB struct {
	dir    string
	file   string // of the database; empty in memory
	own    bool   // the file holds nothing but its sets: see OpenFile
	sets   []Set
	clock  clock.Clock
	write  *sql.DB // nil when read-only
	read   *sql.DB
	lock   *fileLock       // nil when read-only
	slot   chan struct{}   // holds one token: who wrote it may write
	first  func(*Tx) error // see First; guarded by slot
	newer  atomic.Int64    // the file's writer protocol or schema when it is newer than ours, else 0
	steps  int             // how many migrations this release knows
	secret []byte
}

// Open opens the Store in dir, creating and migrating it when it may. The directory is
// made with mode 0700, files with 0600. A Store of a newer release opens for reading;
// [DB.Update] then fails with [CodeIncompatible] before any effect.
func Open(ctx context.Context, dir string, o Options) (*DB, error) {
	const op = "store.open"
	if dir == "" {
		return nil, fault.New(fault.Invalid, op, "no Store directory given").WithHint("pass --store-dir or set HOME")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, op, "Store directory %q has no absolute form", dir)
	}
	db := newDB(dir, filepath.Join(dir, FileName), o)
	if o.ReadOnly {
		return db.opened(db.openReader(ctx))
	}
	if err := prepareStoreDir(dir); err != nil {
		return nil, err
	}
	return db.opened(db.openWriter(ctx, o, filepath.Join(dir, LockName)))
}

// opened is the end of an opening: one that failed keeps no connection.
func (db *DB) opened(err error) (*DB, error) {
	if err != nil {
		db.Close()
		return nil, db.named(err)
	}
	return db, nil
}

func newDB(dir, file string, o Options) *DB {
	db := &DB{dir: dir, file: file, clock: o.Clock, sets: o.Sets, slot: make(chan struct{}, 1)}
	if db.clock == nil {
		db.clock = clock.System{}
	}
	return db
}

func (db *DB) openReader(ctx context.Context) error {
	const op = "store.open"
	path := db.file
	if _, err := os.Lstat(path); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return fault.New(fault.NotFound, op, "there is no Store in %s", db.dir).WithHint("a Bridge creates it at its first start")
		}
		return fault.Wrap(err, CodeStorage, op, "cannot look at %s", path)
	}
	if _, err := checkOurs(path); err != nil {
		return err
	}
	db.read = openPool(readDSN(path), readers)
	err := db.loadMeta(ctx, db.read)
	if !fault.Is(err, CodeUnwritable) {
		return err
	}
	// A reader of a WAL database makes its -shm file, which a read-only disk refuses. A
	// Store that was closed in order has no log beside it: the file is all there is, and
	// nobody can write it.
	if _, logErr := os.Lstat(path + "-wal"); !errors.Is(logErr, os.ErrNotExist) {
		return err
	}
	db.read.Close()
	db.read = openPool(readDSN(path)+"&immutable=1", readers)
	return db.loadMeta(ctx, db.read)
}

func (db *DB) openWriter(ctx context.Context, o Options, lockPath string) error {
	path := db.file
	lock, err := openFileLock(lockPath)
	if err != nil {
		return err
	}
	db.lock = lock
	// Only the holder of the lock creates the file, switches it to WAL and migrates:
	// processes that open a fresh file at once race in the WAL switch (3 of 240 failed).
	unlock, err := lock.acquire(ctx, LockWait)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		if err := db.create(ctx); err != nil {
			return err
		}
	} else if err := makePrivate(path); err != nil {
		return err
	}
	sync := "FULL"
	if o.Relaxed {
		sync = "NORMAL"
	}
	db.write = openPool(writeDSN(path, sync), 1)
	db.read = openPool(readDSN(path), readers)
	if err := migrate(ctx, db); err != nil {
		return err
	}
	// On the connection that is open anyway: another one would read the whole schema again,
	// and a start waits for that.
	return db.loadMeta(ctx, db.write)
}

func openPool(dsn string, n int) *sql.DB {
	pool, err := sql.Open("sqlite", dsn)
	if err != nil {
		panic(err) // the driver is registered in this file and the DSN is ours
	}
	pool.SetMaxOpenConns(n)
	pool.SetMaxIdleConns(n)
	pool.SetConnMaxIdleTime(0)
	return pool
}

// Every setting is in the DSN, because a PRAGMA sent by Exec holds for one pooled
// connection only (cases L13, L14).
func writeDSN(path, sync string) string {
	return dsn(path, "_busy_timeout=5000&_journal_mode=WAL&_synchronous="+sync+"&_foreign_keys=on&_txlock=immediate&_dqs=0&_defensive=1&_pragma=auto_vacuum(2)")
}

func readDSN(path string) string {
	return dsn(path, "mode=ro&_busy_timeout=5000&_query_only=1&_foreign_keys=on&_dqs=0")
}

func dsn(path, query string) string {
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: query}
	return u.String()
}

// Dir is the Store's absolute directory.
func (db *DB) Dir() string { return db.dir }

// Writable reports whether Update may work: the Store is open for writing and not newer.
// A nil DB stands for a Store that does not exist yet.
func (db *DB) Writable() bool { return db != nil && db.write != nil && db.newer.Load() == 0 }

// Secret is the Store's own random key, for digests of values that must not be stored.
func (db *DB) Secret() []byte { return db.secret }

// Close closes the file. Transactions must have ended.
func (db *DB) Close() error {
	var errs []error
	if db.read != nil {
		errs = append(errs, db.read.Close())
	}
	if db.write != nil && db.write != db.read {
		errs = append(errs, db.write.Close())
	}
	return errors.Join(errs...)
}

// View runs fn in a read transaction: everything it reads is of one moment.
func (db *DB) View(ctx context.Context, fn func(*Tx) error) error {
	tx, err := db.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return mapError(err, "store.view")
	}
	defer tx.Rollback() // a read transaction has nothing to commit
	return fn(&Tx{ctx: ctx, tx: tx, Now: db.now()})
}

// Update runs fn in the write transaction and commits when fn returns nil. fn must not
// start processes, send keys or call out: effects follow the commit. fn runs once.
func (db *DB) Update(ctx context.Context, fn func(*Tx) error) error {
	const op = "store.update"
	if err := db.CheckWritable(); err != nil {
		return err
	}
	if err := db.enter(ctx); err != nil {
		return err
	}
	defer db.leave()
	if db.lock != nil { // a Store in memory is nobody else's
		unlock, err := db.lock.acquire(ctx, LockWait)
		if err != nil {
			return err
		}
		defer unlock()
	}
	tx, err := db.write.BeginTx(ctx, nil)
	if err != nil {
		return mapError(err, op)
	}
	defer tx.Rollback() // after Commit it does nothing
	t := &Tx{ctx: ctx, tx: tx, Now: db.now()}
	if err := db.fence(t); err != nil {
		return err
	}
	if db.first != nil {
		if err := db.first(t); err != nil {
			return err
		}
	}
	if err := fn(t); err != nil {
		return err
	}
	crashpoint.At(crashpoint.StoreCommit)
	if err := crashpoint.Err(crashpoint.StoreCommit); err != nil {
		return fault.Wrap(err, CodeStorage, op, "the disk of the Store fails")
	}
	if err := tx.Commit(); err != nil {
		return mapError(err, op)
	}
	db.first = nil
	crashpoint.At(crashpoint.StoreCommitted)
	return nil
}

// fence refuses to write when a newer release has changed the Store since it was opened.
func (db *DB) fence(tx *Tx) error {
	var protocol, schema int
	if err := tx.QueryRow("SELECT writer_protocol, (SELECT user_version FROM pragma_user_version) FROM meta").Scan(&protocol, &schema); err != nil {
		return mapError(err, "store.update")
	}
	if db.outgrown(protocol, schema) {
		return db.CheckWritable()
	}
	return nil
}

// outgrown notes whether the file's writer protocol or schema is newer than ours.
func (db *DB) outgrown(protocol, schema int) bool {
	switch {
	case protocol > version.WriterProtocol:
		db.newer.Store(int64(protocol))
	case !db.own && schema > db.steps:
		db.newer.Store(int64(schema))
	default:
		return false
	}
	return true
}

// First makes fn the beginning of the first transaction that [DB.Update] commits, whoever
// asks for that: fn is stored together with the first thing that needs it, and costs no
// wait for the disk of its own. Until then fn runs in every transaction that is tried.
func (db *DB) First(fn func(*Tx) error) {
	db.slot <- struct{}{}
	defer db.leave()
	db.first = fn
}

// enter waits for its turn among the writers of this process, no longer than ctx.
func (db *DB) enter(ctx context.Context) error {
	select {
	case db.slot <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (db *DB) leave() { <-db.slot }

// CheckWritable returns why Update cannot work, or nil. A command calls it before its
// first side effect. A model reads the text: it names no path of the Store.
func (db *DB) CheckWritable() error {
	const op = "store.update"
	if db == nil {
		return fault.New(fault.NotFound, op, "there is no Store yet").WithHint("a Bridge creates it at its first start")
	}
	if db.write == nil {
		return fault.New(CodeUnwritable, op, "this command only reads the Store").WithHint("tasks are sent through a Bridge")
	}
	return db.CheckRelease()
}

// CheckRelease returns an error when the file is of a newer release, which forbids this one
// to write: a Store that is open for reading is asked too.
func (db *DB) CheckRelease() error {
	newer := db.newer.Load()
	if newer == 0 {
		return nil
	}
	return fault.New(CodeIncompatible, "store.update", "the Store was written by a newer release (%d, this one writes %d)", newer, version.WriterProtocol).
		WithHint("install that release or use another --store-dir; reading still works")
}

func (db *DB) now() time.Time { return db.clock.Now().UTC().Truncate(time.Millisecond) }
