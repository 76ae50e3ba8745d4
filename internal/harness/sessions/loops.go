package sessions

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/store"
)

const (
	// streamDelay is how long words of agents are collected before they are stored in one
	// transaction for all sessions.
	streamDelay = 50 * time.Millisecond
	// retryDelay is the pace of attempts to store what a full disk refused.
	retryDelay = time.Second
)

// update is one write transaction. It does not end with a caller that went away: a fact is
// stored or it is not.
func (s *Service) update(fn func(*store.Tx) error) error {
	return s.db.Update(context.WithoutCancel(s.group.Context()), fn)
}

// nudge wakes the flush loop.
func (s *Service) nudge() {
	select {
	case s.dirty <- struct{}{}:
	default:
	}
}

// flushLoop stores the streams of all sessions together.
func (s *Service) flushLoop(ctx context.Context) {
	delay := streamDelay
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.dirty:
		}
		timer, stop := s.after(delay)
		select {
		case <-ctx.Done():
			stop()
			return
		case <-timer:
		}
		stop()
		delay = streamDelay
		if err := s.flushAll(); err != nil {
			s.log.Error("sessions are not stored yet", "error", err)
			delay = retryDelay
			s.nudge()
		}
	}
}

// all lists the live sessions in a fixed order.
func (s *Service) all() []*live {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*live, 0, len(s.live))
	for _, l := range s.live {
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b *live) int { return strings.Compare(a.id, b.id) })
	return out
}

// flushAll stores the facts of every session in one transaction. It is the only place that
// holds more than one session's lock, and nobody who holds one waits for another.
func (s *Service) flushAll() error {
	var dirty []*live
	for _, l := range s.all() {
		l.mu.Lock()
		if l.facts.none() {
			l.mu.Unlock()
			continue
		}
		defer l.mu.Unlock()
		dirty = append(dirty, l)
	}
	if len(dirty) == 0 {
		return nil
	}
	err := s.update(func(tx *store.Tx) error {
		for _, l := range dirty {
			if err := l.write(tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, l := range dirty {
		l.stored()
		if !l.rec.State.Live() {
			s.forget(l)
		}
	}
	return nil
}

// forget takes a session without an agent, whose end is stored, out of the live ones.
func (s *Service) forget(l *live) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live[l.id] == l {
		delete(s.live, l.id)
	}
}

// reapLoop closes sessions that nobody used for a while. A session that works, asks or logs
// in is in use.
func (s *Service) reapLoop(ctx context.Context) {
	idle := s.cfg.Sessions.IdleTimeoutSeconds.Duration()
	if idle <= 0 {
		return
	}
	for {
		timer, stop := s.after(min(s.cfg.Sessions.ReapIntervalSeconds.Duration(), idle))
		select {
		case <-ctx.Done():
			stop()
			return
		case <-timer:
		}
		stop()
		for _, l := range s.all() {
			l.mu.Lock()
			old := l.slot() == harness.SlotIdle && len(l.asked) == 0 && !l.ending && l.rec.State != harness.StateStarting && l.now().Sub(l.usedAt) >= idle
			l.mu.Unlock()
			if old {
				l.close(ctx, "idle")
			}
		}
	}
}

// Close ends every session and waits for that; when ctx ends first the agents are killed
// without their grace, also those that somebody else is ending.
func (s *Service) Close(ctx context.Context) {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	defer s.rush()
	defer context.AfterFunc(ctx, s.rush)()
	done := make(chan struct{})
	live := s.all()
	for _, l := range live {
		s.group.Go(func(context.Context) {
			l.close(ctx, "shutdown")
			done <- struct{}{}
		})
	}
	for range live {
		<-done
	}
	s.group.Stop()
}
