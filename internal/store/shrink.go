package store

import (
	"context"
	"fmt"
	"os"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// Space is how much the Store's file holds, in bytes.
type Space struct {
	Size int64 // of the file
	Free int64 // of its pages that hold nothing
	// Shrinks: free pages can be given back in small steps. A file that an older release
	// made keeps them until Compact.
	Shrinks bool
}

// Space measures the file.
func (db *DB) Space(ctx context.Context) (Space, error) {
	const op = "store.space"
	var s Space
	var page, pages, free, mode int64
	row := db.read.QueryRowContext(ctx, "SELECT page_size, page_count, freelist_count, auto_vacuum FROM pragma_page_size, pragma_page_count, pragma_freelist_count, pragma_auto_vacuum")
	if err := row.Scan(&page, &pages, &free, &mode); err != nil {
		return s, mapError(err, op)
	}
	s.Size, s.Free, s.Shrinks = page*pages, page*free, mode != 0
	if info, err := os.Stat(db.file); err == nil { // by name: no descriptor of the database is opened
		s.Size = info.Size()
	}
	return s, nil
}

// Shrink gives at most pages free pages back to the disk, and tries to shorten the file.
// It waits for nobody: what a reader still needs stays for the next time.
func (db *DB) Shrink(ctx context.Context, pages int) error {
	return db.alone(ctx, "store.shrink", func() error {
		// A row for each page; they must be read, or nothing happens.
		rows, err := db.write.QueryContext(ctx, fmt.Sprintf("PRAGMA incremental_vacuum(%d)", pages))
		if err != nil {
			return err
		}
		for rows.Next() {
		}
		if err := rows.Err(); err != nil {
			rows.Close()
			return err
		}
		if err := rows.Close(); err != nil {
			return err
		}
		_, err = db.write.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)")
		return err
	})
}

// Compact writes the whole file anew without its free pages, and lets it shrink in small
// steps from then on. It needs as much free space as the file holds, and keeps others from
// writing meanwhile: it is for an operator.
func (db *DB) Compact(ctx context.Context) error {
	return db.alone(ctx, "store.compact", func() error {
		for _, sql := range []string{"PRAGMA auto_vacuum = INCREMENTAL", "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"} {
			if _, err := db.write.ExecContext(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
}

// alone runs f while no other process and no other part of this one writes.
func (db *DB) alone(ctx context.Context, op string, f func() error) error {
	if err := db.CheckWritable(); err != nil {
		return err
	}
	if db.lock == nil {
		return fault.New(fault.Invalid, op, "a Store in memory has no file")
	}
	if err := db.enter(ctx); err != nil {
		return err
	}
	defer db.leave()
	unlock, err := db.lock.acquire(ctx, LockWait)
	if err != nil {
		return err
	}
	defer unlock()
	if err := f(); err != nil {
		return mapError(err, op)
	}
	return nil
}
