package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/crashpoint"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/version"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one forward step. There is no way back: an older release opens a newer
// Store for reading only.
type migration struct {
	number int
	name   string
	sql    string
}

func migrations() ([]migration, error) { return migrationsIn(migrationFiles, "migrations") }

func migrationsIn(files fs.FS, dir string) ([]migration, error) {
	entries, err := fs.ReadDir(files, dir)
	if err != nil {
		return nil, fmt.Errorf("embedded migrations: %w", err)
	}
	var out []migration
	for _, e := range entries {
		num, _, ok := strings.Cut(e.Name(), "_")
		n, err := strconv.Atoi(num)
		if !ok || err != nil {
			return nil, fmt.Errorf("embedded migration %q has no number", e.Name())
		}
		b, err := fs.ReadFile(files, path.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("embedded migration: %w", err)
		}
		out = append(out, migration{n, e.Name(), string(b)})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].number < out[j].number })
	for i, m := range out {
		if m.number != i+1 {
			return nil, fmt.Errorf("embedded migration %q should have number %d", m.name, i+1)
		}
	}
	return out, nil
}

// migrate brings the file to our schema. The caller holds the Store's lock. A file that
// is newer than us is left as it is.
func migrate(ctx context.Context, db *DB) error {
	const op = "store.migrate"
	if db.own {
		return db.migrateOwn(ctx)
	}
	steps, err := migrations()
	if err != nil {
		return fault.Wrap(err, fault.Internal, op, "this build holds a wrong list of migrations")
	}
	var have int
	if err := db.write.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil {
		return mapError(err, op)
	}
	if have > len(steps) {
		return nil
	}
	if have > 0 {
		var format, protocol int
		if err := db.write.QueryRowContext(ctx, "SELECT format, writer_protocol FROM meta").Scan(&format, &protocol); err != nil {
			return mapError(err, op)
		}
		if format > Format || protocol > version.WriterProtocol {
			return nil
		}
	}
	for _, m := range steps[have:] {
		if err := applyMigration(ctx, db, m); err != nil {
			return err
		}
	}
	return db.migrateSets(ctx, false)
}

func applyMigration(ctx context.Context, db *DB, m migration) error {
	const op = "store.migrate"
	tx, err := db.write.BeginTx(ctx, nil)
	if err != nil {
		return mapError(err, op)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, m.sql); err != nil {
		return fault.Wrap(mapError(err, op), fault.Internal, op, "migration %s failed", m.name)
	}
	if m.number == 1 {
		if err := insertMeta(ctx, db, tx); err != nil {
			return err
		}
	} else if _, err := tx.ExecContext(ctx, "UPDATE meta SET writer_protocol = max(writer_protocol, ?)", version.WriterProtocol); err != nil {
		return mapError(err, op) // from now on no older release writes
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", m.number)); err != nil {
		return mapError(err, op)
	}
	crashpoint.At(crashpoint.StoreMigrate)
	if err := crashpoint.Err(crashpoint.StoreMigrate); err != nil {
		return fault.Wrap(err, CodeStorage, op, "the disk of the Store fails")
	}
	if err := tx.Commit(); err != nil {
		return mapError(err, op)
	}
	return nil
}

func insertMeta(ctx context.Context, db *DB, tx *sql.Tx) error {
	secret := make([]byte, 32)
	rand.Read(secret)
	if _, err := tx.ExecContext(ctx, "INSERT INTO meta (format, writer_protocol, secret, created_at) VALUES (?, ?, ?, ?)",
		Format, version.WriterProtocol, hex.EncodeToString(secret), db.now().Format(time.RFC3339)); err != nil {
		return mapError(err, "store.migrate")
	}
	return nil
}

// loadMeta reads the fences. A newer format is refused; a newer writer protocol or schema
// only forbids writing.
func (db *DB) loadMeta(ctx context.Context, pool *sql.DB) error {
	const op = "store.open"
	steps, err := migrations()
	if err != nil {
		return fault.Wrap(err, fault.Internal, op, "this build holds a wrong list of migrations")
	}
	var format, protocol, schema int
	var secret string
	row := pool.QueryRowContext(ctx, "SELECT format, writer_protocol, secret, (SELECT user_version FROM pragma_user_version) FROM meta")
	if err := row.Scan(&format, &protocol, &secret, &schema); err != nil {
		if err = mapError(err, op); fault.Is(err, CodeUnwritable) || fault.Is(err, CodeBusy) || Damaged(err) || ctx.Err() != nil {
			return err // it says nothing of whose file it is
		}
		return fault.Wrap(err, CodeStorage, op, "%s is not a Store of this product", db.place()).
			WithHint("pass another --store-dir")
	}
	if format > Format {
		return fault.New(CodeIncompatible, op, "the Store in %s has format %d, this release knows %d", db.dir, format, Format).
			WithHint("install the newer release or use another --store-dir")
	}
	db.steps = len(steps)
	db.outgrown(protocol, schema)
	if err := db.loadSets(ctx, pool); err != nil {
		return err
	}
	if db.secret, err = hex.DecodeString(secret); err != nil {
		return fault.Wrap(err, CodeStorage, op, "the Store's key is damaged")
	}
	return nil
}
