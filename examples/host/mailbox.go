package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// mailbox is where the Host takes knocks. The session value proves that a knock is meant
// for this Host and this conversation; the delivery id makes repeated knocks one.
type mailbox struct {
	path    string
	session string
	knocks  chan knock
	l       net.Listener
	wg      sync.WaitGroup

	mu   sync.Mutex
	seen map[string]receipt // by delivery id
}

// pendingKnocks is more than one Turn can cause.
const pendingKnocks = 64

func openMailbox(path string) (*mailbox, error) {
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	b := &mailbox{path: path, session: "session-" + rand.Text(), knocks: make(chan knock, pendingKnocks),
		l: l, seen: map[string]receipt{}}
	b.wg.Go(b.serve)
	return b, nil
}

func (b *mailbox) close() {
	b.l.Close()
	b.wg.Wait()
}

func (b *mailbox) serve() {
	for {
		conn, err := b.l.Accept()
		if err != nil {
			return // closed
		}
		b.wg.Go(func() {
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(handOverTime))
			var k knock
			if json.NewDecoder(io.LimitReader(conn, 2*maxBody)).Decode(&k) == nil {
				json.NewEncoder(conn).Encode(b.take(k)) // a lost receipt makes the Bridge ask again
			}
		})
	}
}

// take accepts a knock once. The same delivery again gets the same receipt and is not
// shown twice.
func (b *mailbox) take(k knock) receipt {
	b.mu.Lock()
	defer b.mu.Unlock()
	if k.Session != b.session {
		return receipt{Refused: "another session"}
	}
	if r, ok := b.seen[k.Delivery]; ok {
		return r
	}
	select {
	case b.knocks <- k:
	default:
		return receipt{Refused: "too many knocks wait"}
	}
	r := receipt{AcceptanceID: fmt.Sprintf("%s-%d", hostName, len(b.seen)+1)}
	b.seen[k.Delivery] = r
	return r
}

// writeProfile writes the Host Profile: which Host this is, where its trusted session
// comes from, which program is the callback and how to read its answer. A real Host ships
// such a file; an administrator installs it.
func writeProfile(path string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	type dict = map[string]any
	doc := dict{
		"schema": "agent-knock-knock/host-profile", "version": 1, "id": "example-host-command", "revision": "1",
		"compatibility":     dict{"host": hostName, "range": ">=1.0.0 <2.0.0"},
		"controllerContext": dict{"driver": "environment_v1", "sessionIdVariable": sessionVariable},
		"callback": dict{
			"driver": "command_json_v1", "executable": self,
			"arguments": []string{"callback", "--session", "${controller.session_id}",
				"--delivery", "${envelope.delivery_id}", "--message", "${envelope.message_id}"},
			"stdin":       "${envelope.body}",
			"environment": dict{"allow": []string{socketVariable}},
			"timeoutMs":   10_000, "maxOutputBytes": 65_536,
			"acknowledgement": dict{
				"disposition": dict{"jsonPointer": "/status", "mapping": dict{
					"accepted": "accepted", "retry": "retryable_failure", "rejected": "permanent_failure"}},
				"acceptanceId":           dict{"jsonPointer": "/acceptance_id"},
				"acknowledgedDeliveryId": dict{"jsonPointer": "/delivery_id"},
				"acknowledgedMessageId":  dict{"jsonPointer": "/message_id"},
			},
		},
	}
	b, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o600)
}
