package store

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"go.uber.org/zap"

	"convls/protocol"
)

// Reserve is the free disk space, in bytes, below which mutations are refused.
// What is running seals its replies out of it.
const Reserve = 64 << 20

// free returns the free space of the store's disk, in bytes; false if the file
// system can not tell, which is no reason to refuse anything.
func (s *Store) free() (uint64, bool) {
	u, err := s.opts.FS.GetDiskUsage(s.opts.Dir)
	return u.AvailBytes, err == nil
}

// space returns disk_full if the disk is below the reserve.
func (s *Store) space() error {
	free, known := s.free()
	if !known || free >= Reserve {
		return nil
	}
	return &protocol.Error{Code: protocol.CodeDiskFull,
		Message: fmt.Sprintf("the disk of %s has %d MiB left, and convls stops writing below %d MiB: make room and try again",
			s.opts.Dir, free>>20, Reserve>>20),
		Data: protocol.ErrorData{Retryable: true}}
}

// hindrance returns why Pebble may not come to an end: the disk is full, or takes no
// new files. Nil if all is well and it is only slow.
func (s *Store) hindrance() error {
	if err := s.unwritable.Load(); err != nil {
		return &protocol.Error{Code: protocol.CodeDiskFull, Message: "files can not be written to " + s.opts.Dir + ": " + (*err).Error(),
			Data: protocol.ErrorData{Retryable: true}}
	}
	return s.space()
}

// readOnlyError refuses a mutation of a store that was opened read-only.
func (s *Store) readOnlyError() error {
	if s.nearlyFull.Load() {
		return &protocol.Error{Code: protocol.CodeDiskFull,
			Message: fmt.Sprintf("the store %s was opened read-only, because its disk had less than %d MiB left: make room and try again", s.opts.Dir, Reserve>>20),
			Data:    protocol.ErrorData{Retryable: true}}
	}
	return protocol.Errorf(protocol.CodeNotSupported, "the store %s is open read-only", s.opts.Dir)
}

// regain opens the ledger for writing if Open had to open it read-only and there is
// room by now. Whoever asks for a mutation asks for this first, and must not be
// within the store. Pebble can only be opened again while nobody reads: where that
// does not come to pass, the mutation is refused as before, and the next one tries
// again.
func (s *Store) regain(ctx context.Context) error {
	if !s.nearlyFull.Load() || s.space() != nil {
		return nil
	}
	limit := time.NewTimer(s.stuckAfter)
	defer limit.Stop()
	for {
		s.life.Lock()
		if !s.nearlyFull.Load() || s.closed || s.fatal != nil {
			s.life.Unlock()
			return nil
		}
		wait := s.reopening
		switch {
		case wait != nil:
		case s.uses > 0:
			if s.quiet == nil {
				s.quiet = make(chan struct{})
			}
			wait = s.quiet
		default:
			s.reopening = make(chan struct{})
			s.uses++ // so that Close waits
			s.life.Unlock()
			s.reopen(context.WithoutCancel(ctx)) // it is there for the others, too
			s.life.Lock()
			close(s.reopening)
			s.reopening = nil
			s.life.Unlock()
			s.leave()
			return nil
		}
		s.life.Unlock()
		select {
		case <-wait:
		case <-limit.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// reopen opens the ledger anew; nobody else is within the store. Sessions stay
// what they are: nothing has written to the ledger meanwhile.
func (s *Store) reopen(ctx context.Context) {
	err := s.closePebble()
	s.opened.Store(false)
	s.nearlyFull.Store(false)
	if err = errors.Join(err, s.open(ctx)); err != nil {
		s.fail(fmt.Errorf("open the store again, for writing: %w", err))
		return
	}
	if s.ReadOnly() {
		return // the room is gone again
	}
	s.log.Info("the store is opened for writing", zap.Int("replies interrupted", len(s.recovered)))
	s.begin()
}

// enter begins a use of the store, which leave ends. It refuses one that begins
// after Close, or after Pebble could not go on.
func (s *Store) enter() error {
	s.life.Lock()
	defer s.life.Unlock()
	for s.reopening != nil {
		reopened := s.reopening
		s.life.Unlock()
		<-reopened
		s.life.Lock()
	}
	if s.closed {
		return &protocol.Error{Code: protocol.CodeServerRestarted, Message: "the store " + s.opts.Dir + " is closed",
			Data: protocol.ErrorData{Retryable: true}}
	}
	if s.fatal != nil {
		return s.fatal
	}
	s.uses++
	return nil
}

func (s *Store) leave() {
	s.life.Lock()
	defer s.life.Unlock()
	s.uses--
	if s.uses > 0 {
		return
	}
	if s.quiet != nil {
		close(s.quiet)
		s.quiet = nil
	}
	if s.closed {
		close(s.idle)
	}
}

// failed returns why the ledger can not go on, nil if it can.
func (s *Store) failed() error {
	s.life.Lock()
	defer s.life.Unlock()
	return s.fatal
}

// fail is called when Pebble can not go on. Those who wait for a commit get an
// answer, that of an unknown outcome; OnFatal ends the process.
func (s *Store) fail(err error) {
	e := &protocol.Error{Code: protocol.CodeServerRestarted, Message: "the ledger could not be written and convls has to start again; sending the request again, with its request_id, tells what became of it",
		Data: protocol.ErrorData{Retryable: true}, Cause: err}
	if errors.Is(err, syscall.ENOSPC) {
		e.Code, e.Message = protocol.CodeDiskFull, fmt.Sprintf("the disk of %s is full: make room; sending the request again, with its request_id, tells what became of it", s.opts.Dir)
	}
	s.life.Lock()
	first := s.fatal == nil
	if first {
		s.fatal = e
		close(s.dead)
	}
	s.life.Unlock()
	if first {
		s.log.Error("the ledger can not go on", zap.Error(err))
		s.opts.OnFatal(err)
	}
}

// pebbleLogger passes on what Pebble says.
type pebbleLogger struct{ store *Store }

// Infof logs at level debug.
func (l pebbleLogger) Infof(format string, args ...any) {
	if l.store.log.Core().Enabled(zap.DebugLevel) {
		l.store.log.Debug("pebble", zap.String("said", fmt.Sprintf(format, args...)))
	}
}

// Errorf logs at level error.
func (l pebbleLogger) Errorf(format string, args ...any) {
	l.store.log.Error("pebble", zap.String("said", fmt.Sprintf(format, args...)))
}

// Fatalf never returns: if it did, Pebble would acknowledge a write that is not on
// disk.
func (l pebbleLogger) Fatalf(format string, args ...any) {
	err := fmt.Errorf("pebble: %s", fmt.Sprintf(format, args...))
	for _, a := range args {
		if cause, ok := a.(error); ok {
			err = fmt.Errorf("pebble: %s: %w", fmt.Sprintf(format, args...), cause)
		}
	}
	l.store.fail(err)
	select {}
}
