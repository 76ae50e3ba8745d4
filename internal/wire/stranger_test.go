package wire_test

import (
	"context"
	"crypto/tls"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/agent-knock-knock/akk/internal/wire"
)

// Who reaches the socket of a worker without the keys of its Bridge's run gets no answer,
// in the clear or over TLS. The socket is for this user alone.
func TestAWorkerAnswersNobodyWithoutTheKeysOfItsRun(t *testing.T) {
	base := runBase(t)
	o, done, err := newOptions(base, "monitor")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	m := startMonitor(t, o, "silent")
	next(t, m, wire.EventArmed)
	var sockets []string
	if err := filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Type()&fs.ModeSocket != 0 {
			sockets = append(sockets, path)
		}
		if info, err := d.Info(); err == nil && d.IsDir() && info.Mode().Perm() != 0o700 {
			t.Errorf("%s is %s", path, info.Mode())
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(sockets) == 0 {
		t.Fatal("the worker has no socket")
	}
	for name, creds := range map[string]credentials.TransportCredentials{
		"in the clear":               insecure.NewCredentials(),
		"over TLS, without our keys": credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}), // the stranger trusts anybody
	} {
		conn, err := grpc.NewClient("unix:"+sockets[0], grpc.WithTransportCredentials(creds))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		_, err = grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		if late := ctx.Err(); err == nil || late != nil {
			t.Errorf("%s: %v, %v", name, err, late)
		}
		cancel()
		conn.Close()
	}
	m.Stop()
}
