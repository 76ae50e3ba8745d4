package autostart

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/harness/client"
)

// A server listens before its database is open, and a ping may wait longer for that than a
// request lasts. It is our own: it is not taken for a stranger, and not ended.
func TestAServerThatIsSlowToOpenItsDatabaseIsWaitedFor(t *testing.T) {
	const serverPID = 4242
	var pings atomic.Int32
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if pings.Add(1) == 1 {
			_, _ = io.Copy(io.Discard, r.Body) // an end of the connection is seen behind the body only
			<-r.Context().Done()               // until the client gives this one up
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"ok":true,"data":{"protocol_version":%d,"pid":%d}}`, client.Protocol, serverPID)
	}))
	t.Cleanup(web.Close)
	u, err := url.Parse(web.URL)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	supervisor := exec.Command("cat") // it ends with its stdin, and with the SIGTERM of a stop
	stdin, err := supervisor.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := supervisor.Start(); err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() { defer close(gone); _ = supervisor.Wait() }()
	t.Cleanup(func() { _ = stdin.Close(); <-gone })
	set := client.Settings{BaseURL: u, ClientDir: dir, Timeout: 50 * time.Millisecond, StartupTimeout: time.Minute}
	s := &Starter{Settings: set, Client: client.New(set), Log: slog.New(slog.DiscardHandler)}
	nonce := strings.Repeat("c", 32)
	proved(t, dir, nonce, serverPID, supervisor.Process.Pid)
	l := &launch{starter: s, nonce: nonce, entry: entry{path: os.Args[0], own: true}, cmd: supervisor, gone: gone}
	found, err := l.await(t.Context())
	if err != nil || !found.Started || found.PID != serverPID || pings.Load() < 2 {
		t.Errorf("%+v %v after %d pings", found, err, pings.Load())
	}
	select {
	case <-gone:
		t.Error("it was ended")
	default:
	}
}
