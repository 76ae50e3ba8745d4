package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// The environment of the callback program: everything it gets is named in the Profile.
const (
	sessionVariable = "EXAMPLE_HOST_SESSION_ID"
	socketVariable  = "EXAMPLE_HOST_SOCKET"
)

const (
	maxBody      = 1 << 20
	handOverTime = 5 * time.Second // below timeoutMs of the Profile
)

// knock is what the callback program hands to the Host.
type knock struct {
	Session  string `json:"session"`
	Delivery string `json:"delivery"`
	Message  string `json:"message"`
	Body     string `json:"body"`
}

// receipt is the Host's answer: its own id for the knock, or why it was refused.
type receipt struct {
	AcceptanceID string `json:"acceptance_id"`
	Refused      string `json:"refused"`
}

// callback is the program that the Bridge runs for every event. It says "accepted" only
// when the Host really has the event, "retry" when the Host cannot be reached, and
// "rejected" when the Host wants no such event. It echoes both ids, because the Bridge
// believes no acknowledgement that does not name exactly its delivery and message.
func callback(args []string) int {
	var k knock
	flags := flag.NewFlagSet("callback", flag.ContinueOnError)
	flags.StringVar(&k.Session, "session", "", "")
	flags.StringVar(&k.Delivery, "delivery", "", "")
	flags.StringVar(&k.Message, "message", "", "")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	body, err := io.ReadAll(io.LimitReader(os.Stdin, maxBody))
	if err != nil {
		return 2
	}
	k.Body = string(body)
	status := "accepted"
	r, err := handOver(os.Getenv(socketVariable), k)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "callback:", err)
		status = "retry"
	case r.Refused != "":
		fmt.Fprintln(os.Stderr, "callback: refused:", r.Refused)
		status = "rejected"
	}
	ack := map[string]any{
		"status": status, "acceptance_id": r.AcceptanceID,
		"delivery_id": k.Delivery, "message_id": k.Message,
	}
	if err := json.NewEncoder(os.Stdout).Encode(ack); err != nil {
		return 2
	}
	return 0
}

func handOver(socket string, k knock) (r receipt, err error) {
	conn, err := net.DialTimeout("unix", socket, handOverTime)
	if err != nil {
		return r, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(handOverTime)); err != nil {
		return r, err
	}
	if err := json.NewEncoder(conn).Encode(k); err != nil {
		return r, err
	}
	err = json.NewDecoder(conn).Decode(&r)
	return r, err
}
