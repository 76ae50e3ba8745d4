// Package logkeeper is the process between a background server and its log: it starts the
// server with pipes as stdout and stderr, masks what comes out of them, and appends the
// rest to a private file.
//
// It outlives the client that started it. It stops the server when the log cannot be kept,
// and its own end, however it comes, ends the server through the server's stdin. Bytes
// that were not masked are never written. It must never know what the server does.
package logkeeper
