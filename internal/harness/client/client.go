package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/config"
)

const (
	// MaxReply bounds one response.
	MaxReply   = 16<<20 + 64<<10
	dialLimit  = 5 * time.Second
	pingLimit  = 10 * time.Second
	maxToken   = 4 << 10
	idleLimit  = 30 * time.Second
	maxMessage = 2048
)

// Client posts operations to one server. It is safe for concurrent use.
type Client struct {
	settings Settings
	web      *http.Client
}

// New returns a client. It connects to nothing.
func New(s Settings) *Client {
	t := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialLimit}).DialContext,
		MaxIdleConnsPerHost: 8,
		IdleConnTimeout:     idleLimit,
		TLSHandshakeTimeout: dialLimit,
	}
	if !s.Loopback() {
		t.Proxy = http.ProxyFromEnvironment
	}
	return &Client{settings: s, web: &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close lets go of idle connections.
func (c *Client) Close() { c.web.CloseIdleConnections() }

// Call posts an operation with params that marshal to an object and returns the data of the
// reply, an object as the server wrote it. It never repeats a request. extra is added to
// the time limit, for an operation that waits on the server.
//
// Errors are [*harness.Error]: the server's own with its code and detail, or one of ours;
// [Unsent] tells whether the server can have seen the request.
func (c *Client) Call(ctx context.Context, op string, params any, extra time.Duration) (json.RawMessage, error) {
	return c.post(ctx, op, params, c.settings.Timeout+extra)
}

func (c *Client) post(ctx context.Context, op string, params any, limit time.Duration) (json.RawMessage, error) {
	body, err := json.Marshal(params)
	if err != nil {
		return nil, harness.Fail(err, fault.Internal, "the parameters of %s are not JSON", op)
	}
	within, stop := context.WithTimeout(ctx, limit)
	defer stop()
	req, err := http.NewRequestWithContext(within, http.MethodPost, c.settings.Key()+"/api/"+op, bytes.NewReader(body))
	if err != nil {
		return nil, harness.Fail(err, harness.InvalidConfig, "the base URL cannot be used")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if op != "ping" {
		if token := c.token(); token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
	}
	res, err := c.web.Do(req)
	if err != nil {
		return nil, c.failed(ctx, within, op, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, MaxReply+1))
	switch {
	case err != nil:
		return nil, c.failed(ctx, within, op, err)
	case len(text) > MaxReply:
		return nil, harness.Refuse(harness.ResponseTooLarge, "the reply to %s has more than %d bytes", op, MaxReply)
	}
	return c.open(op, res.StatusCode, text)
}

// open reads the envelope.
func (c *Client) open(op string, status int, text []byte) (json.RawMessage, error) {
	var e struct {
		OK    *bool           `json:"ok"`
		Data  json.RawMessage `json:"data"`
		Error *struct {
			Code    string          `json:"code"`
			Message string          `json:"message"`
			Detail  json.RawMessage `json:"detail"`
		} `json:"error"`
	}
	err := json.Unmarshal(text, &e)
	switch {
	case err != nil || e.OK == nil:
		return nil, invalidReply(op, status, "it is no envelope")
	case *e.OK:
		data := bytes.TrimSpace(e.Data)
		if len(data) == 0 || data[0] != '{' {
			return nil, invalidReply(op, status, "its data is no object")
		}
		return data, nil
	case e.Error == nil || e.Error.Code == "":
		return nil, invalidReply(op, status, "its error has no code")
	}
	msg := e.Error.Message
	if len(msg) > maxMessage {
		msg = strings.ToValidUTF8(msg[:maxMessage], "") + "..."
	}
	if msg == "" {
		msg = e.Error.Code
	}
	return nil, harness.Refuse(fault.Code(e.Error.Code), "%s", msg).With(detail(e.Error.Detail))
}

func invalidReply(op string, status int, why string) error {
	return harness.Refuse(InvalidReply, "the reply to %s (HTTP %d) is not one of a harness server: %s", op, status, why)
}

// detail decodes an error's detail without losing a digit.
func detail(raw json.RawMessage) harness.Detail {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil
	}
	if d, ok := v.(map[string]any); ok {
		return d
	}
	return harness.Detail{"value": v}
}

// errUnsent marks requests that no server can have seen.
var errUnsent = errors.New("nothing was sent")

// errSlow marks requests that were given up.
var errSlow = errors.New("no answer in time")

// Unsent reports whether a failed call provably reached no server.
func Unsent(err error) bool { return errors.Is(err, errUnsent) }

// Absent reports whether a failed call shows that nothing listens at the address.
func Absent(err error) bool { return Unsent(err) && errors.Is(err, syscall.ECONNREFUSED) }

// Slow reports whether a call failed because no answer came in its time, and so says nothing
// of who listens.
func Slow(err error) bool { return errors.Is(err, errSlow) }

func (c *Client) failed(ctx, within context.Context, op string, err error) error {
	var dial *net.OpError
	unsent := errors.As(err, &dial) && dial.Op == "dial"
	cause := err
	if unsent {
		cause = errors.Join(err, errUnsent)
	}
	switch {
	case ctx.Err() != nil:
		return harness.Fail(errors.Join(context.Cause(ctx), cause), Cancelled, "%s was not waited for", op)
	case within.Err() != nil:
		return harness.Fail(errors.Join(cause, errSlow), HTTPTimeout, "%s was not answered in time by %s", op, c.settings.Key()).
			Advise("the server may still carry it out; look before you repeat it")
	case unsent:
		return harness.Fail(cause, ServerUnreachable, "nothing answers at %s", c.settings.Key())
	}
	return harness.Fail(cause, ServerUnreachable, "the connection to %s broke during %s", c.settings.Key(), op).
		Advise("the server may have carried it out; look before you repeat it")
}

// token reads the owner's token of a server on this machine. It changes with each start of
// the server, so it is read each time. Only a private file of this user counts, and only
// in the directory that our own configuration names: an address alone proves nothing.
func (c *Client) token() string {
	if c.settings.StateDir == "" || !c.settings.Loopback() {
		return ""
	}
	f, err := os.OpenFile(config.TokenFile(c.settings.StateDir), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !private(info) {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(f, maxToken))
	if err != nil {
		return ""
	}
	token := strings.TrimSpace(string(text))
	if strings.ContainsAny(token, " \r\n\t\x00") {
		return ""
	}
	return token
}

func private(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return info.Mode().IsRegular() && info.Mode().Perm()&0o077 == 0 && ok && int(st.Uid) == os.Getuid()
}

// Pong is what a compatible server answers.
type Pong struct {
	PID  int
	Data json.RawMessage
}

// Ping asks whether a compatible server answers. An answer of any other kind, or none from
// something that took the connection, is incompatible_server.
func (c *Client) Ping(ctx context.Context) (Pong, error) {
	data, err := c.post(ctx, "ping", struct{}{}, min(c.settings.Timeout, pingLimit))
	code := fault.CodeOf(err)
	switch {
	case err == nil:
	case Unsent(err) || code == Cancelled:
		return Pong{}, err
	case code == ServerUnreachable && errors.Is(err, syscall.ECONNRESET):
		return Pong{}, err // a server that ends; the caller may ask again
	default:
		return Pong{}, c.incompatible(err, "it does not answer ping as a harness server does")
	}
	var p struct {
		Version json.Number `json:"protocol_version"`
		PID     json.Number `json:"pid"`
	}
	if json.Unmarshal(data, &p) != nil {
		return Pong{}, c.incompatible(nil, "it does not answer ping as a harness server does")
	}
	version, err := p.Version.Int64()
	if err != nil || version != Protocol {
		return Pong{}, c.incompatible(err, "its protocol_version is "+clip(cmpEmpty(p.Version.String(), "missing"))+", needed is 4").
			With(harness.Detail{"protocol_version": p.Version})
	}
	pid, err := p.PID.Int64()
	if err != nil || pid < 1 {
		return Pong{}, c.incompatible(err, "its ping has no pid")
	}
	return Pong{PID: int(pid), Data: data}, nil
}

func cmpEmpty(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func (c *Client) incompatible(cause error, why string) *harness.Error {
	return harness.Fail(cause, IncompatibleServer, "what listens at %s cannot be used: %s", c.settings.Key(), why).
		Advise("nothing was started and nothing was stopped; end it yourself, or set another address")
}
