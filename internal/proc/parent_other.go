//go:build !linux

package proc

import "context"

func watchParent(ctx context.Context, ppid int, gone chan<- struct{}) error {
	go pollParent(ctx, ppid, gone)
	return nil
}
